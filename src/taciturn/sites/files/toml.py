"""The two TOML files of a site, read and written; what is wrong with one stops the site, in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError

from ...errors import ExitCode, ParameterError, SiteError, WrongFiles
from ...toml import complaint, read_toml

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


def read_file(path: Path, model: type[Model]) -> Model:
    """The file as `model`."""
    try:
        _, entries = read_toml(path)
    except ParameterError as error:
        raise SiteError(str(error)) from error
    return check_entries(path, model, entries)


def check_entries(path: Path, model: type[Model], entries: dict[str, Any]) -> Model:
    """`entries`, read from `path`, as `model`."""
    try:
        return model.model_validate(entries)
    except ValidationError as error:
        found = complaint(error)
        raise SiteError(f"{path}: {found}{found.more}") from error
    except ParameterError as error:
        raise SiteError(f"{path}: {error}") from error
    except ArithmeticError as error:
        raise SiteError(f"{path}: a number in it is too large or too small to compute with.") from error


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
