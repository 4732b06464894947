"""Load a user's program (a subclass of `taciturn.Program`) that is installed at this site.

A job names the program and the SHA-256 of its file. A file with another SHA-256 is refused, so that all sites
run the same program.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ...methods.programs.own_program import Program


def load_program(name: str, sha256: str, settings: Mapping[str, Any]) -> Program:
    """The installed program, if its file has the SHA-256 that the job names; else an error."""
    module, made = name.split(":")
    found = program_digest(name)
    if found != sha256:
        raise ParameterError(
            f"`program` {name} must have the SHA-256 that the job names; the installed file has {found}."
        )
    kind = getattr(import_module(module), made, None)
    if not (isinstance(kind, type) and issubclass(kind, Program)):
        raise ParameterError(f"`program` {name} must be a class derived from taciturn.Program.")
    return kind(**settings)


def program_digest(name: str) -> str:
    """SHA-256 of the file of an installed program."""
    module = name.split(":")[0]
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ParameterError(f"`program` {name} must be installed here: Python finds no module {module}.")
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()


def plain_value(value: Any) -> Any:
    """A result as JSON values; a value that JSON does not have becomes text."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain_value(value.tolist())
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
