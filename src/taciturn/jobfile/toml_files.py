"""Read TOML files into checked models, and write TOML. Errors name the line of a mistake in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError

from ..core.errors import ExitCode, ParameterError, SiteError, WrongFiles
from ..core.toml import complaint, read_toml

LONGEST = 2**20  # characters; an error about a longer file does not name the line

Model = TypeVar("Model", bound=BaseModel)
Given = ParamSpec("Given")
Made = TypeVar("Made")


def about_files(read: Callable[Given, Made]) -> Callable[Given, Made]:
    """Make `read` raise `WrongFiles`, not a general error: no retry helps until a file is corrected."""

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
    """Read the file as `model`. `more` adds or replaces keys. An error names the file, line and key."""
    text, entries = read_toml(path)
    return check_entries(path, model, entries | dict(more or {}), text)


def check_entries(path: Path, model: type[Model], entries: dict[str, Any], text: str = "") -> Model:
    """Turn `entries`, which were read from `path`, into `model`; `text` is the content of the file."""
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
    """The part of a mistake's path that only the message states, because the message begins with a key.

    In a schema, the message begins with the name of a field, and the path needs the number of that field.
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
    """`entries` as TOML: one line per key, with inline tables."""
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

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_STRINGS = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'|#.*""")


def line_of(text: str, path: KeyPath) -> int | None:
    """The number of the line (the first is 1) with the key at `path`, or with the innermost table around it.

    None if the text has neither.

    >>> line_of('a = 1\\n[[sites]]\\nname = "x"\\n', ("sites", 0, "data"))
    2
    """
    found = dict(_places(text))
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return None


def _places(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every key, every table and every entry of a list, with its line number; `text` must be valid TOML."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    open_list: list[int | KeyPath] = []  # of the value that is still open: path, open brackets, entries
    for number, line in enumerate(text.splitlines(), start=1):
        bare = _STRINGS.sub(lambda match: "" if match[0][0] == "#" else '""', line)
        if open_list:
            yield from _entries(open_list, bare, number)
            continue
        header = _HEADER.match(line)
        if header is not None and "=" not in bare:
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            yield table, number
            continue
        key = _KEY.match(line)
        if key is not None:
            path = (*table, *_parts(key[1]))
            yield path, number
            open_list = [path, 0, 0]
            yield from _entries(open_list, bare[bare.index("=") + 1 :], number)


def _entries(state: list[int | KeyPath], bare: str, number: int) -> Iterator[tuple[KeyPath, int]]:
    """The tables and lists that begin on this line directly inside the open list; its end clears `state`."""
    path, depth, seen = state
    if not isinstance(path, tuple) or not isinstance(depth, int) or not isinstance(seen, int):
        return
    for character in bare:
        if character in "[{":
            depth += 1
            if depth == 2:
                yield (*path, seen), number
                seen += 1
        elif character in "]}":
            depth -= 1
    state[1:] = [depth, seen]
    if depth == 0:
        state.clear()


def _parts(key: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.split(r"\s*\.\s*", key))
