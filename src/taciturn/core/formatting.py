"""Format the numbers of a privacy guarantee as text: one function for each kind of number.

A privacy cost is rounded up. The rest of a budget is rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_SELDOM = 1e-15  # the odds of a smaller delta are shown as a power of ten
_SMALLEST = 1e-290  # a smaller positive cost is shown as this number


def format_cost(epsilon: float) -> str:
    """A privacy cost, or another upper bound: three significant digits, rounded up.

    >>> format_cost(2.9611), format_cost(58.05), format_cost(0.0), format_cost(1234.5)
    ('2.97', '58.1', '0', '1240')
    """
    if epsilon == 0 or epsilon >= _SMALLEST:
        return _three_digits(epsilon, math.ceil, 1 - 1e-15)
    return f"{_SMALLEST:g}"


def format_at_least(epsilon: float) -> str:
    """The rest of a budget, or another lower bound: three significant digits, rounded down.

    >>> format_at_least(2.9689), format_at_least(58.09), format_at_least(0.0), format_at_least(1239.0)
    ('2.96', '58.0', '0', '1230')
    """
    return "0" if epsilon < _SMALLEST else _three_digits(epsilon, math.floor, 1 + 1e-15)


def format_given(number: float) -> str:
    """A number that a person chose, such as the limit of a budget: all digits, as a person would type them.

    >>> format_given(2.0), format_given(0.12345678), format_given(1e-5)
    ('2', '0.12345678', '1e-05')
    """
    return repr(float(number)).removesuffix(".0")


def format_delta(delta: float) -> str:
    """A delta with up to six significant digits, never rounded down.

    >>> format_delta(1e-5), format_delta(1.2345671e-5), format_delta(0.0)
    ('1e-05', '1.23457e-05', '0')
    """
    near = f"{delta:g}"
    if float(near) >= delta:
        return near
    whole, _, exponent = f"{delta:.5e}".partition("e")
    return f"{(round(float(whole) * 1e5) + 1) / 1e5:.5f}".rstrip("0").rstrip(".") + f"e{exponent}"


def format_odds(delta: float) -> str:
    """A delta as odds, such as 1 in 100,000. The probability is rounded up, except for floating-point error.

    >>> format_odds(1e-5), format_odds(3e-320)
    ('1 in 100,000', '1 in 10 to the power of 319')
    """
    if delta < _SELDOM:
        return f"1 in 10 to the power of {math.floor(-math.log10(delta) * (1 - 1e-12))}"
    return f"1 in {math.floor(1 / delta + 1e-9):,}"


def join_words(words: Sequence[str]) -> str:
    """The words with commas, and with "and" before the last word.

    >>> join_words(["a", "b", "c"]), join_words(["a"])
    ('a, b and c', 'a')
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _three_digits(value: float, to_whole: Callable[[float], int], slack: float) -> str:
    if value == 0 or math.isinf(value):
        return "infinite" if value else "0"
    digits = 2 - math.floor(math.log10(value))
    return f"{to_whole(value * 10.0**digits * slack) / 10.0**digits:.{max(digits, 0)}f}"
