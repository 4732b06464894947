"""Format the numbers of a report for readers, and write its facts as JSON that is safe inside a page.

`scale.js` formats numbers by the same rules. Upper bounds are formatted by `format_cost`, so a printed
epsilon is never below the certified epsilon.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from ...core.canonical import plain
from ...core.formatting import format_cost
from ..data import ReportData

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TINY = 1e-15  # a relative error below this is a rounding error of floats; it must not raise a digit


def written(value: float | None, form: str = "plain") -> str:
    """A number in its format: "plain", "percent" (1 is 100%) or "bound" (rounded up).

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
    """All digits of a number, for programs; empty if the number is not known."""
    return "" if value is None else repr(float(value))


def power(value: float) -> str:
    """A small number, such as delta, in scientific notation, rounded up.

    >>> power(1e-5), power(2.5e-6), power(0.3)
    ('10⁻⁵', '2.5 × 10⁻⁶', '0.3')
    """
    if not 0 < value < 1e-2:
        return f"{value:g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    ten = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    short = float(f"{mantissa}e{exponent}") < value * (1 - _TINY)  # never show a delta that is too small
    digits = f"{float(mantissa) + 1e-3 * short:g}"
    return ten if digits == "1" else f"{digits} × {ten}"


def _plain(value: float) -> str:
    """Four significant digits; in scientific notation below 0.001 and from 10^6 on."""
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
    """The report as mappings, lists, texts and finite numbers. Infinity is the text "inf", and NaN is null.

    The illustration and the effects are left out: the page contains them as pictures.
    """
    facts = plain(replace(data, illustration=None, effects=()))
    return {"format": FORMAT, "names": list(data.names), **facts}


def embed(data: ReportData) -> str:
    """The report as JSON for a script block. No name or title can end the block.

    The characters <, > and &, and all characters outside ASCII (including U+2028 and U+2029), are escaped.
    """
    text = json.dumps(to_plain(data), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
