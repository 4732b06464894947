"""TOML files as checked facts: read with the line of a mistake, and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError

from ..core.errors import ExitCode, ParameterError, SiteError, WrongFiles
from ..core.toml import complaint, read_toml
from .key_lines import line_of

LONGEST = 2**20  # characters of a text in which a line is looked for

Model = TypeVar("Model", bound=BaseModel)
Given = ParamSpec("Given")
Made = TypeVar("Made")


def about_files(read: Callable[Given, Made]) -> Callable[Given, Made]:
    """What goes wrong in `read` is wrong in a file, and stays wrong however often it is read."""

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
    """The file as `model`, with `more` keys from elsewhere; one line names file, line and key otherwise."""
    text, entries = read_toml(path)
    return check_entries(path, model, entries | dict(more or {}), text)


def check_entries(path: Path, model: type[Model], entries: dict[str, Any], text: str = "") -> Model:
    """`entries`, read from `path`, as `model`."""
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
        raise ParameterError(f"{path}: a number in it is too large or too small to compute with.") from error


def _inside(path: tuple[str | int, ...], message: str, entries: dict[str, Any]) -> tuple[str | int, ...]:
    """The rest of a path, from the key that the message begins with; a field of the schema by its name."""
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
    """`entries` as TOML: one line per key, tables inside the line."""
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
