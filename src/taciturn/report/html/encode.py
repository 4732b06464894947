"""A report's facts as JSON that is safe inside an HTML page, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ...errors import ParameterError
from ..data import ReportData

FORMAT = "taciturn-report/1"


def to_plain(data: ReportData) -> dict[str, Any]:
    """Mappings, lists, text and finite numbers only; infinity is the text "inf", not-a-number is null."""
    return {"format": FORMAT, "names": list(data.names), **_plain(data)}


def embed(data: ReportData) -> str:
    """JSON for a script block: nothing in it can end the block, whatever a name or a title holds.

    All of <, > and & are written as escapes, and so is everything outside ASCII (U+2028 and U+2029 too).
    """
    text = json.dumps(to_plain(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, list | tuple | range):
        return [_plain(entry) for entry in value]
    raise ParameterError(
        f"`data` must hold numbers, text, lists and mappings only; got {type(value).__name__}."
    )


def _finite(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
