"""TOML files as checked facts, or one line that names file, key and what is wrong with it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import ParameterError, SiteError

Model = TypeVar("Model", bound=BaseModel)


class Facts(BaseModel):
    """A part of a file: typed, complete, frozen, and with no key that nobody reads."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


def read(path: Path, model: type[Model]) -> Model:
    """The file as `model`."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SiteError(f"{path}: cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SiteError(f"{path}: not TOML: {error}.") from error
    return checked(path, model, entries)


def checked(path: Path, model: type[Model], entries: dict[str, Any]) -> Model:
    """`entries`, read from `path`, as `model`."""
    try:
        return model.model_validate(entries)
    except ValidationError as error:
        raise SiteError(f"{path}: {_first(error)}") from error
    except ParameterError as error:
        raise SiteError(f"{path}: {error}") from error


def write(entries: Mapping[str, Any]) -> str:
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


def _first(error: ValidationError) -> str:
    """The first problem, as `key`: what is wrong. Input values stay out: one could be a path to data."""
    problem = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(
        str(part) for part in problem["loc"] if not str(part).startswith(("function-", "literal["))
    )
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    message = problem["msg"].removeprefix("Value error, ").rstrip(".")
    return f"`{key}`: {message}.{more}" if key else f"{message}.{more}"
