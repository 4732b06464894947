"""Leave a command on SIGTERM or Ctrl-C, wherever it is at that moment.

Python raises from a signal handler, and drops the exception where it cannot be caught: in a finaliser, a weak
reference's callback, a callback from C. So the handler is called again and again until the exception is on
its way out, and leaves alone what then cleans up.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from ...core.errors import ExitCode

AGAIN = 0.2  # seconds


class Terminated(KeyboardInterrupt):
    """SIGTERM: the machine's operator stops the site, which is not a failure."""


@contextmanager
def until_stopped() -> Iterator[None]:
    """Leave the block and the command on a signal: SIGTERM with code 0, Ctrl-C with 130."""
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
    """Whether that exception is being handled: it is on its way out, or what cleans up has failed since."""
    error = sys.exception()
    while error is not None and error is not stopped:
        error = error.__context__
    return error is stopped
