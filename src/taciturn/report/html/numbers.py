"""Numbers as a reader sees them; `page.js` writes them by the same rules.

Upper bounds are rounded up: a printed epsilon is never below the certified one.
"""

from __future__ import annotations

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TINY = 1e-15  # relative; so that 1.1, which is stored as 1.100000000000000089, is not printed as 1.11


def written(value: float | None, form: str = "plain") -> str:
    """A number in its format: "plain", "percent" (of 1) or "bound" (rounded up).

    >>> written(0.36912), written(0.8453, "percent"), written(2.9631, "bound")
    ('0.3691', '84.53%', '2.97')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if form == "percent":
        return f"{100 * value:.2f}%".replace("-", "−")
    if form == "bound":
        return _bound(value)
    return _plain(value)


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


def _bound(value: float) -> str:
    """Two decimals, rounded up; three significant digits below 0.1."""
    if value <= 0:
        return "0"
    decimals = 2 if value >= 0.1 else 2 - math.floor(math.log10(value))
    if decimals > 8:
        return "< 10⁻⁶"
    return f"{math.ceil(value * (1 - _TINY) * 10**decimals) / 10**decimals:.{decimals}f}"
