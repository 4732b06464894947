"""Progress of long computations: a bar on a terminal, plain lines in a log, or no output if switched off."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProgressStep(Protocol):
    """A function to call when `steps` further steps are done."""

    def __call__(self, steps: int = 1) -> None: ...


@contextmanager
def progress(total: int, what: str, *, show: bool | None = None) -> Iterator[ProgressStep]:
    """Yield a function to call after each step. `show=None` shows progress only on a terminal."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda steps=1: None
    elif sys.stderr.isatty():
        with _bar(total, what) as step:
            yield step
    else:
        yield _Lines(total, what)


@contextmanager
def _bar(total: int, what: str) -> Iterator[ProgressStep]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def step(steps: int = 1) -> None:
            bar.advance(task, steps)

        yield step


class _Lines:
    """Prints progress as plain lines, at most one line every ten seconds."""

    def __init__(self, total: int, what: str) -> None:
        self.total, self.what, self.done = total, what, 0
        self.said = time.monotonic()

    def __call__(self, steps: int = 1) -> None:
        self.done += steps
        if time.monotonic() - self.said >= 10:
            self.said = time.monotonic()
            print(f"{self.what}: {self.done} of {self.total}", file=sys.stderr, flush=True)
