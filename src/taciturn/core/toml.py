"""Read TOML files as checked values. An error is one line that names the file, the key and the mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from .errors import ParameterError

LARGEST = 2**24  # the largest size of a file, in bytes
_DEEP = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){64}""")
"""Matches a dotted key with so many parts that reading the key would take too much time and memory."""
# Pydantic puts names of types between the keys in the path of a mistake. These two match such names.
_TAG = re.compile(r"(function-|literal\[|list\[|tuple\[|dict\[|union\[|constrained-|lax-|json-|is-instance)")
_PLAIN_TAGS = frozenset({"int", "float", "str", "bool", "none", "list", "tuple", "dict", "any"})


class Facts(BaseModel):
    """The base class for a table in a file. It is typed and frozen; missing and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and its tables."""
    text = _text(path)
    try:
        return text, tomllib.loads(text)
    except RecursionError as error:
        raise ParameterError(f"{path} is nested too deeply.") from error
    except ValueError as error:  # not TOML, or a number with thousands of digits
        raise ParameterError(f"{path} is not TOML: {error}.") from error


def _text(path: Path) -> str:
    """The text of a file; files that are too large or nested too deeply are refused."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ParameterError(f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not TOML: {error}.") from error
    if len(data) > LARGEST:
        raise ParameterError(f"{path} must have at most {LARGEST} bytes.")
    if _DEEP.search(text):
        raise ParameterError(f"{path} is nested too deeply.")
    return text


# -- one-line messages for the errors of pydantic -----------------------------------------------------


_VERBS = "must ", "is ", "cannot ", "belongs "  # how a message begins whose subject is the key


class Complaint(NamedTuple):
    """A mistake in a file, the path of the wrong key, and the number of other mistakes in the file."""

    path: tuple[str | int, ...]
    message: str
    others: int

    @property
    def more(self) -> str:
        """The number of other mistakes, in brackets; an empty text if there are none."""
        return f" (and {self.others} more)" if self.others else ""

    def __str__(self) -> str:
        key = ".".join(map(str, self.path))
        gap = " " if self.message.startswith(_VERBS) else ": "
        return f"`{key}`{gap}{self.message}." if key else f"{self.message}."


def complaint(error: ValidationError, *, deepest: bool = False, quote: bool = False) -> Complaint:
    """The first mistake, or with `deepest` the mistake with the longest path.

    The message quotes wrong numbers and keywords. If `quote` is True, it also quotes wrong texts; use
    this only for files that contain nothing private.
    """
    problems = error.errors(include_url=False)
    found = max(problems, key=lambda entry: len(entry["loc"])) if deepest else _first(problems)
    message = translate(found) + _got(found, quote=quote) + _meant(found, problems)
    return Complaint(_keys(found["loc"]), message, len(problems) - 1)


def translate(problem: ErrorDetails | Mapping[str, Any]) -> str:
    """One mistake in plain words, without its key and without the value."""
    kind, facts = problem["type"], problem.get("ctx", {})
    if kind in ("value_error", "assertion_error"):
        return str(facts.get("error") or "is not valid here").rstrip(".")
    said = _WORDS.get(kind, "is not valid here")
    return said if isinstance(said, str) else said(facts)


def _first(problems: list[ErrorDetails]) -> ErrorDetails:
    """The first mistake. If it is a missing key, an unknown key comes first: it may be a misspelling."""
    strange = [problem for problem in problems if problem["type"] == "extra_forbidden"]
    return strange[0] if strange and problems[0]["type"] == "missing" else problems[0]


def _keys(place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The keys in the path of a mistake, without the names of types that pydantic puts between the keys."""
    models = _model_names(BaseModel)
    return tuple(
        part
        for part in place
        if isinstance(part, int) or not (_TAG.match(part) or part in _PLAIN_TAGS or part in models)
    )


def _model_names(kind: type[BaseModel]) -> set[str]:
    below = kind.__subclasses__()
    return {one.__name__ for one in below}.union(*map(_model_names, below))


def _got(problem: ErrorDetails, *, quote: bool) -> str:
    value, kind = problem["input"], problem["type"]
    if kind in ("extra_forbidden", "missing", "value_error", "assertion_error"):
        return ""
    told = isinstance(value, bool | int | float) or kind in ("literal_error", "enum")
    told = told or (quote and isinstance(value, str))
    return f"; got {value!r}" if told and len(repr(value)) < 40 else ""


def _meant(problem: ErrorDetails, problems: list[ErrorDetails]) -> str:
    """A hint for an unknown key: the name of a missing key in the same table, if one is missing."""
    if problem["type"] != "extra_forbidden":
        return ""
    beside = [entry["loc"] for entry in problems if entry["type"] == "missing"]
    names = [str(place[-1]) for place in beside if place[:-1] == problem["loc"][:-1]]
    return f"; `{names[0]}` is missing" if names else ""


# -- the wording of each error ----------------------------------------------------------------------


def _short(noun: str) -> Callable[[Mapping[str, Any]], str]:
    plural = {"entry": "entries"}.get(noun, f"{noun}s")

    def words(facts: Mapping[str, Any]) -> str:
        number = facts.get("min_length", 1)
        return f"must have at least {number} {noun if number == 1 else plural}"

    return words


def _long(plural: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda facts: f"must have at most {facts.get('max_length')} {plural}"


def _bound(words: str, key: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda facts: f"must be {words} {facts.get(key)}"


_SAME = {
    "must be a whole number": "int_type int_parsing int_parsing_size int_from_float",
    "must be a number": "float_type float_parsing",
    "must be true or false": "bool_type bool_parsing",
    "must be a text": "string_type string_sub_type",
    "must be a list": "list_type tuple_type set_type frozen_set_type iterable_type",
    "must be a table": "dict_type mapping_type model_type model_attributes_type dataclass_type",
    "is not JSON": "json_invalid json_type",
    "cannot be changed": "frozen_field frozen_instance",
}
_WORDS: dict[str, str | Callable[[Mapping[str, Any]], str]] = {
    **{kind: words for words, kinds in _SAME.items() for kind in kinds.split()},
    "missing": "must be given",
    "extra_forbidden": "is not a known key",
    "none_required": "must be left out",
    "greater_than": _bound("above", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than": _bound("below", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "multiple_of": _bound("a multiple of", "multiple_of"),
    "finite_number": "must be a finite number",
    "literal_error": lambda facts: f"must be {facts.get('expected')}",
    "enum": lambda facts: f"must be {facts.get('expected')}",
    "string_unicode": "must be a text in UTF-8",
    "string_too_short": _short("character"),
    "string_too_long": _long("characters"),
    "string_pattern_mismatch": lambda facts: f"must match the pattern {facts.get('pattern')}",
    "path_type": "must be the path of a file",
    "path_not_file": "must be a file that exists",
    "path_not_directory": "must be a folder that exists",
    "too_short": _short("entry"),
    "too_long": _long("entries"),
    "invalid_key": "must have keys that are texts",
}
