"""The log of a site: lines for people, or one JSON object per line, on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from ...core.errors import TaciturnError


class LogForm(StrEnum):
    """How a line of the log is written."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """The lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Log = Annotated[LogForm, typer.Option("--log", help="The format of the log on standard error.")]
Level = Annotated[LogLevel, typer.Option("--level", help="The lowest level that is logged.")]


class JsonLines(logging.Formatter):
    """`at` (UTC), `level`, `message`, and what the event adds to them."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        facts: dict[str, Any] = {
            "at": f"{clock}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        return json.dumps(facts | getattr(record, "facts", {}))


def log_to_stderr(form: LogForm = LogForm.TEXT, level: LogLevel = LogLevel.INFO) -> None:
    """Write everything that a site logs from now on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    words = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(JsonLines() if form is LogForm.JSON else words)
    log = logging.getLogger("taciturn.site")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


@contextmanager
def errors_logged(form: LogForm) -> Iterator[None]:
    """Also log the error that ends a command, if the log is JSON."""
    try:
        yield
    except TaciturnError as error:
        if form is not LogForm.JSON:
            raise
        facts = {"event": "failed", "error": type(error).__name__, "exit_code": int(error.exit_code)}
        logging.getLogger("taciturn.site").error(str(error), extra={"facts": facts})
        raise typer.Exit(error.exit_code) from error
