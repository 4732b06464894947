"""Numbers of a promise as people read them: what bounds a cost is never below the truth, wherever shown."""

from __future__ import annotations

import math

_SELDOM = 1e-15
_SMALLEST = 1e-290


def odds(delta: float) -> str:
    """1 in 100,000, say; never below delta.

    >>> odds(1e-5), odds(3e-320)
    ('1 in 100,000', '1 in 10 to the power of 319')
    """
    if delta < _SELDOM:
        return f"1 in 10 to the power of {math.floor(-math.log10(delta) * (1 - 1e-12))}"
    return f"1 in {math.floor(1 / delta + 1e-9):,}"


def rounded_up(epsilon: float) -> str:
    """Three digits, never below the truth.

    >>> rounded_up(2.9611), rounded_up(58.05), rounded_up(0.0), rounded_up(1234.5)
    ('2.97', '58.1', '0', '1240')
    """
    if epsilon == 0:
        return "0"
    if epsilon < _SMALLEST:
        return f"{_SMALLEST:g}"
    if math.isinf(epsilon):
        return "infinite"
    digits = 2 - math.floor(math.log10(epsilon))
    scaled = math.ceil(epsilon * 10.0**digits * (1 - 1e-15))
    return f"{scaled / 10.0**digits:.{max(digits, 0)}f}"


def shown_delta(delta: float) -> str:
    """Up to six digits, never below the truth.

    >>> shown_delta(1e-5), shown_delta(1.2345671e-5), shown_delta(0.0)
    ('1e-05', '1.23457e-05', '0')
    """
    near = f"{delta:g}"
    if float(near) >= delta:
        return near
    whole, _, exponent = f"{delta:.5e}".partition("e")
    return f"{(round(float(whole) * 1e5) + 1) / 1e5:.5f}".rstrip("0").rstrip(".") + f"e{exponent}"


def rounded_down(epsilon: float) -> str:
    """Three digits of what is left of a budget, never above the truth.

    >>> rounded_down(2.9689), rounded_down(58.09), rounded_down(0.0), rounded_down(1239.0)
    ('2.96', '58.0', '0', '1230')
    """
    if epsilon < _SMALLEST:
        return "0"
    if math.isinf(epsilon):
        return "infinite"
    digits = 2 - math.floor(math.log10(epsilon))
    scaled = math.floor(epsilon * 10.0**digits * (1 + 1e-15))
    return f"{scaled / 10.0**digits:.{max(digits, 0)}f}"
