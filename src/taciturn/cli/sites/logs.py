"""Write the log of a site to standard error, as text or JSON; end a command cleanly after a signal.

If a signal handler raises an exception inside a finaliser, a weak reference's callback or a callback from C,
Python drops the exception. So a timer calls the handler again until the exception propagates. From then on
the handler does nothing, so that it does not interrupt the clean-up.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any, Literal

import typer

from ...core.errors import ExitCode, TaciturnError

Log = Annotated[
    Literal["text", "json"], typer.Option("--log", help="The format of the log on standard error.")
]
Level = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option("--level", help="The lowest level of events to log."),
]


class JsonLines(logging.Formatter):
    """One JSON object per event: `at` (UTC), `level`, `message`, and the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        facts: dict[str, Any] = {
            "at": f"{clock}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        return json.dumps(facts | getattr(record, "facts", {}))


class _CurrentStderr:
    """Look up `sys.stderr` at each write: a progress bar replaces it, to print the log above the bar."""

    def write(self, text: str) -> None:
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def log_to_stderr(form: str = "text", level: str = "info") -> None:
    """Write everything that a site logs from now on to standard error."""
    handler = logging.StreamHandler(_CurrentStderr())
    words = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(JsonLines() if form == "json" else words)
    log = logging.getLogger("taciturn.site")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


@contextmanager
def errors_logged(form: str) -> Iterator[None]:
    """If the log is JSON, write the error that ends a command to the log; the exit code stays the same."""
    try:
        yield
    except TaciturnError as error:
        if form != "json":
            raise
        facts = {"event": "failed", "error": type(error).__name__, "exit_code": int(error.exit_code)}
        logging.getLogger("taciturn.site").error(str(error), extra={"facts": facts})
        raise typer.Exit(error.exit_code) from error


AGAIN = 0.2  # seconds between two calls of the handler


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, with which the operator of the machine stops the site. This is not a failure."""


@contextmanager
def until_stopped() -> Iterator[None]:
    """Let a signal end the block and the command: with exit code 0 after SIGTERM, 130 after Ctrl-C."""
    asked: list[KeyboardInterrupt] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if not asked:
            asked.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
            signal.setitimer(signal.ITIMER_REAL, AGAIN, AGAIN)
        if not _leaves(asked[0]):
            raise asked[0]

    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
    before = [signal.signal(number, stop) for number in signals]
    try:
        yield
    except KeyboardInterrupt as stopped:
        logging.getLogger("taciturn.site").warning(
            "stopped; everything is kept: run the same command to continue",
            extra={"facts": {"event": "stopped"}},
        )
        code = ExitCode.DONE if isinstance(stopped, Terminated) else ExitCode.INTERRUPTED
        raise typer.Exit(code) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _leaves(stopped: BaseException) -> bool:
    """Whether `stopped` already propagates, or the clean-up after it has raised another exception."""
    error = sys.exception()
    while error is not None and error is not stopped:
        error = error.__context__
    return error is stopped
