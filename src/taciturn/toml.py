"""TOML files as checked facts, or one line that names the file, the key and what is wrong with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from .errors import ParameterError

LARGEST = 2**24  # bytes of a file
_DEEP = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""A key of so many parts that reading it would take time and memory without end."""


class Facts(BaseModel):
    """A part of a file: typed, complete, frozen, and with no key that nobody reads."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Complaint(NamedTuple):
    """What is wrong with a file, and where. Only a number, or a word out of a few, is quoted."""

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
    text = _text(path)
    try:
        return text, tomllib.loads(text)
    except RecursionError as error:
        raise ParameterError(f"{path}: is nested too deeply.") from error
    except ValueError as error:  # no TOML, or a number of thousands of digits
        raise ParameterError(f"{path}: is not TOML: {error}.") from error


def _text(path: Path) -> str:
    """What is in a file that is not too large to be read, nor nested too deeply."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        text = data.decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path}: is not TOML: {error}.") from error
    if len(data) > LARGEST:
        raise ParameterError(f"{path}: must have at most {LARGEST} bytes.")
    if _DEEP.search(text):
        raise ParameterError(f"{path}: is nested too deeply.")
    return text


def complaint(error: ValidationError, *, deepest: bool = False) -> Complaint:
    """The first one; or the deepest, which is that of the nearest form where several are allowed."""
    problems = error.errors(include_url=False)
    found = max(problems, key=lambda entry: len(entry["loc"])) if deepest else _first(problems)
    path = tuple(part for part in found["loc"] if not str(part).startswith(("function-", "literal[")))
    message = found["msg"].removeprefix("Value error, ").rstrip(".")
    return Complaint(path, message + _got(found) + _meant(found, problems), len(problems) - 1)


def _first(problems: list[ErrorDetails]) -> ErrorDetails:
    """A key that nobody reads before one that is missing: the first may be the second, misspelt."""
    strange = [problem for problem in problems if problem["type"] == "extra_forbidden"]
    return strange[0] if strange and problems[0]["type"] == "missing" else problems[0]


def _got(problem: ErrorDetails) -> str:
    value = problem["input"]
    told = isinstance(value, bool | int | float) or problem["type"] == "literal_error"
    return (
        f"; got {value!r}" if told and len(repr(value)) < 40 and problem["type"] != "extra_forbidden" else ""
    )


def _meant(problem: ErrorDetails, problems: list[ErrorDetails]) -> str:
    """The key beside it that is missing, if there is one."""
    if problem["type"] != "extra_forbidden":
        return ""
    beside = [entry["loc"] for entry in problems if entry["type"] == "missing"]
    names = [str(place[-1]) for place in beside if place[:-1] == problem["loc"][:-1]]
    return f"; `{names[0]}` is missing" if names else ""
