"""Read TOML files into pydantic models, and write TOML. An error names the line of the mistake.

The path of a key is the tuple of the keys and list indices that lead to it, such as ("sites", 0, "name").
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError

from ..core.errors import ExitCode, ParameterError, SiteError, WrongFiles
from ..core.toml import complaint, read_toml

LONGEST = 2**20  # characters; an error in a longer file does not name the line

Model = TypeVar("Model", bound=BaseModel)
Given = ParamSpec("Given")
Made = TypeVar("Made")


def about_files(read: Callable[Given, Made]) -> Callable[Given, Made]:
    """Make `read` raise `WrongFiles` instead of a general error, because only a corrected file helps."""

    @wraps(read)
    def reading(*args: Given.args, **options: Given.kwargs) -> Made:
        try:
            return read(*args, **options)
        except (SiteError, ParameterError) as error:
            if error.exit_code != ExitCode.FAILED:
                raise
            raise WrongFiles(str(error)) from error
        except ArithmeticError as error:
            raise WrongFiles(
                f"a number in the job or in site.toml is too large or too small to compute with ({error})."
            ) from error

    return reading


def read_file(path: Path, model: type[Model], *, more: Mapping[str, Any] | None = None) -> Model:
    """Read the file into `model`. `more` adds or replaces keys. An error names the file, line and key."""
    text, entries = read_toml(path)
    return check_entries(path, model, entries | dict(more or {}), text)


def check_entries(path: Path, model: type[Model], entries: dict[str, Any], text: str = "") -> Model:
    """Make a `model` from `entries`. `path` and `text` are the file and its content, for error messages."""
    try:
        return model.model_validate(entries)
    except ValidationError as error:
        found = complaint(error)
        line = None
        if len(text) <= LONGEST:
            line = line_of(text, found.path + _inside(found.path, found.message, entries))
        where = path if line is None else f"{path}, line {line}"
        raise ParameterError(f"{where}: {found}{found.more}") from error
    except ArithmeticError as error:
        raise ParameterError(
            f"{path}: a number in this file is too large or too small to compute with."
        ) from error


def _inside(path: tuple[str | int, ...], message: str, entries: dict[str, Any]) -> tuple[str | int, ...]:
    """The rest of the path of a wrong key, of which pydantic reports only the start `path`.

    The message begins with this rest in backquotes; if it does not, the result is (). But a message about the
    schema begins with the name of a field; the result then ends with the index of this field.
    """
    if not message.startswith("`"):
        return ()
    key = message.split("`")[1]
    if path != ("schema",):
        return tuple(int(part) if part.isdigit() else part for part in key.split("."))
    numbered = re.fullmatch(r"fields\[(\d+)\]", key)
    if numbered:
        return "fields", int(numbered[1])
    fields = entries["schema"].get("fields")
    names = [field.get("name") for field in fields if isinstance(field, dict)] if fields else []
    name = key.rsplit(".", 1)[0]
    return ("fields", names.index(name)) if name in names else ("fields",)


def write_toml(entries: Mapping[str, Any]) -> str:
    """`entries` as TOML: one line per key, with nested tables inside braces."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in entries.items() if value is not None)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(entry) for entry in value)}]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False, allow_nan=False)


KeyPath = tuple[str | int, ...]


def line_of(text: str, path: KeyPath) -> int | None:
    """The number of the line that has the key at `path`; line 1 is the first.

    If the key is missing, the result is the line of the innermost table on the path, or None if there is no
    such table. The text must be valid TOML.

    >>> line_of('a = 1\\n[[sites]]\\nname = "x"\\n', ("sites", 0, "data"))
    2
    """
    whole = tomllib.loads(text)
    found = next((path[:n] for n in range(len(path), 0, -1) if _has(whole, path[:n])), None)
    if found is None:
        return None
    starts = _starts(text)
    first = bisect_left(
        starts, True, key=lambda start: _has(tomllib.loads(text[: start[0]] + start[1]), found)
    )
    return 1 + text.count("\n", 0, starts[first - 1][0] if first else 0)


def _has(value: Any, path: KeyPath) -> bool:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


_MARK = re.compile(  # matches a string, a comment, a bracket or the end of a line
    r'''"""(?:[^"\\]|\\.|""?(?!"))*+"{3,5}|"(?:[^"\\\n]|\\.)*+"'''
    r"""|'''(?:[^']|''?(?!'))*+'{3,5}|'[^'\n]*'|#[^\n]*|[\[\]{}\n]""",
    re.DOTALL,
)


def _starts(text: str) -> list[tuple[int, str]]:
    """(n, brackets) for the end of each line: the first n characters followed by `brackets` are valid TOML.

    The brackets close the lists that are still open. Lines inside a multi-line string are left out.
    """
    found, open_lists = [], ""
    for mark in _MARK.finditer(text):
        if mark[0] in ("[", "{"):
            open_lists = {"[": "]", "{": "}"}[mark[0]] + open_lists
        elif mark[0] in ("]", "}"):
            open_lists = open_lists[1:]
        elif mark[0] == "\n":
            found.append((mark.end(), open_lists))
    return found
