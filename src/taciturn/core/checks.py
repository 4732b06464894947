"""Parameter checks. Each check returns the value as a float, int, bool or str, or raises a one-line error."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .errors import ParameterError

LEAST, MOST = 1e-100, 1e100  # the range of `magnitude`
_HALF = 0.5  # a delta of at least 0.5 is always large
_MANY = 10**300  # much larger whole numbers cannot be multiplied by a float


def real(name: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(f"`{name}` must be a number; got {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:  # a whole number with hundreds of digits
        number = math.inf
    if not math.isfinite(number):
        raise ParameterError(f"`{name}` must be finite; got {number}.")
    return number


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    number = real(name, value)
    if number <= 0:
        raise ParameterError(f"`{name}` must be above 0; got {number:g}.")
    return number


def magnitude(name: str, value: Any) -> float:
    """A number from 1e-100 to 1e100, so that squares and inverse squares stay within the range of floats."""
    number = positive(name, value)
    if not LEAST <= number <= MOST:
        raise ParameterError(f"`{name}` must be between {LEAST:g} and {MOST:g}; got {number:g}.")
    return number


def nonnegative(name: str, value: Any) -> float:
    """A finite number of at least 0."""
    number = real(name, value)
    if number < 0:
        raise ParameterError(f"`{name}` must be at least 0; got {number:g}.")
    return number


def probability(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ParameterError(f"`{name}` must be strictly between 0 and 1; got {number:g}.")
    return number


def is_large_delta(delta: float, units: int) -> bool:
    """Whether delta is so large that it hardly protects a record: at least 0.5, or above 1 / units."""
    return delta >= _HALF or delta * min(units, _MANY) > 1


def usual_delta(value: Any, units: int, *, insisted: bool) -> float:
    """Check and return delta. If `value` is None, delta is the smaller of 0.1/units and 1e-5.

    A delta of 0 means pure epsilon-DP. A delta of at least 0.5, or above 1/units, is refused unless
    `insisted` is True. `units` is the number of records or persons.
    """
    if value is None:
        return min(1e-5, 0.1 / units)
    delta = 0.0 if value == 0 and not isinstance(value, bool) else probability("delta", value)
    if is_large_delta(delta, units) and not insisted:
        raise ParameterError(
            f"`delta` must be at most 1/{units:,} (1 divided by the number of records or persons) and below "
            f"0.5; got {delta:g}. A method that publishes one record in {max(1, round(1 / delta)):,} "
            "unchanged would also satisfy this delta. To allow it anyway, set `large_delta`; the "
            "certificate then states this."
        )
    return delta


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ParameterError(f"`{name}` must be a whole number; got {type(value).__name__}.")
    if value < least:
        raise ParameterError(f"`{name}` must be at least {least}; got {value}.")
    return int(value)


def among_sites(name: str, value: Any, sites: int, *, least: int = 0) -> int:
    """A whole number that is at least `least` and below the number of sites."""
    number = whole(name, value, least=least)
    if number >= sites:
        raise ParameterError(f"`{name}` must be below the number of sites, {sites}; got {number}.")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False. A text such as "no" is refused, because Python would treat it as true."""
    if not isinstance(value, bool):
        raise ParameterError(f"`{name}` must be True or False; got {value!r}.")
    return value


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of the texts in `choices`."""
    if value not in choices:
        raise ParameterError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}.")
    return str(value)
