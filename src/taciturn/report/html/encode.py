"""A report's facts as JSON that is safe inside an HTML page, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ..data import ReportData

FORMAT = "taciturn-report/1"


def to_plain(data: ReportData) -> dict[str, Any]:
    """All but what is drawn already, as mappings, lists, text and finite numbers.

    Infinity is the text "inf", not-a-number is null.
    """
    facts = plain(replace(data, illustration=None, effects=()))
    return {"format": FORMAT, "names": list(data.names), **facts}


def embed(data: ReportData) -> str:
    """JSON for a script block: nothing in it can end the block, whatever a name or a title holds.

    All of <, > and & are written as escapes, and so is everything outside ASCII (U+2028 and U+2029 too).
    """
    text = json.dumps(to_plain(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(value: Any) -> Any:
    """Facts as JSON knows them: mappings, lists, text, and numbers as in `to_plain`."""
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
        f"`data` must contain numbers, text, lists and mappings only; got {type(value).__name__}."
    )
