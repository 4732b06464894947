"""Canonical JSON: equal values have the same text, so the text can be hashed and compared."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .errors import ParameterError


def canonical(value: Any) -> str:
    """The canonical JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """The SHA-256 of the canonical JSON text of a value, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def plain(value: Any) -> Any:
    """The value in types that JSON can store: infinity becomes "inf" or "-inf", and NaN becomes None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else f"{value}"
    if isinstance(value, list | tuple | range):
        return [plain(entry) for entry in value]
    raise ParameterError(
        f"`value` must contain numbers, text, lists and mappings only; got {type(value).__name__}."
    )
