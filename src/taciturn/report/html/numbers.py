"""Numbers as a reader sees them, and facts as JSON that is safe inside a page.

`page.js` writes numbers by the same rules.
Upper bounds go through `format_cost`: a printed epsilon is never below the certified one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ...core.errors import ParameterError
from ...core.formatting import format_cost
from ..data import ReportData

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TINY = 1e-15  # relative; so that 1.1, which is stored as 1.100000000000000089, is not printed as 1.11


def written(value: float | None, form: str = "plain") -> str:
    """A number in its format: "plain", "percent" (of 1) or "bound" (rounded up).

    >>> written(0.36912), written(0.8453, "percent"), written(2.9631, "bound")
    ('0.3691', '84.53%', '2.97')
    """
    if value is None or math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if form == "percent":
        return f"{100 * value:.2f}%".replace("-", "−")
    if form == "bound":
        return format_cost(value)
    return _plain(value)


def exact(value: float | None) -> str:
    """All digits of a number, for machines; nothing where it is not known."""
    return "" if value is None else repr(float(value))


def power(value: float) -> str:
    """A small number such as delta as a power of ten, rounded up.

    >>> power(1e-5), power(2.5e-6), power(0.3)
    ('10⁻⁵', '2.5 × 10⁻⁶', '0.3')
    """
    if not 0 < value < 1e-2:
        return f"{value:g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    ten = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    short = float(f"{mantissa}e{exponent}") < value * (1 - _TINY)  # a delta is never shown below itself
    digits = f"{float(mantissa) + 1e-3 * short:g}"
    return ten if digits == "1" else f"{digits} × {ten}"


def _plain(value: float) -> str:
    """Four significant digits; powers of ten outside 0.001 .. 10^6."""
    if value == 0:
        return "0"
    size = abs(value)
    sign = "−" if value < 0 else ""
    if size < 1e-3 or size >= 1e6:
        mantissa, exponent = f"{size:.2e}".split("e")
        return f"{sign}{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    decimals = max(0, 3 - math.floor(math.log10(size)))
    return f"{sign}{size:.{decimals}f}"


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
