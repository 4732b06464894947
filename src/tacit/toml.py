"""TOML files as checked facts, or one line that names the file, the key and what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import ParameterError


class Facts(BaseModel):
    """A part of a file: typed, complete, frozen, and with no key that nobody reads."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Complaint(NamedTuple):
    """What is wrong with a file, and where. The value stays out: it could be a path to data."""

    path: tuple[str | int, ...]
    message: str
    others: int

    @property
    def more(self) -> str:
        """What else there is to be said, in brackets."""
        return f" (and {self.others} more)" if self.others else ""

    def __str__(self) -> str:
        key = ".".join(map(str, self.path))
        return f"`{key}`: {self.message}." if key else f"{self.message}."


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and the tables in it."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path}: is not TOML: {error}.") from error


def complaint(error: ValidationError, *, deepest: bool = False) -> Complaint:
    """The first one; or the deepest, which is that of the nearest form where several are allowed."""
    problems = error.errors(include_url=False, include_input=False)
    found = max(problems, key=lambda entry: len(entry["loc"])) if deepest else problems[0]
    path = tuple(part for part in found["loc"] if not str(part).startswith(("function-", "literal[")))
    message = found["msg"].removeprefix("Value error, ").rstrip(".")
    return Complaint(path, message, len(problems) - 1)
