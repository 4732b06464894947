"""Parameter checks: the value in its proper type, or one line that names parameter, value and range."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .errors import ParameterError

LEAST, MOST = 1e-100, 1e100


def real(name: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(f"`{name}` must be a number; got {type(value).__name__}.")
    number = float(value)
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
    """A number above 0 whose square, and that of its inverse, is far from where floats end."""
    number = positive(name, value)
    if not LEAST <= number <= MOST:
        raise ParameterError(f"`{name}` must lie between {LEAST:g} and {MOST:g}; got {number:g}.")
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


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ParameterError(f"`{name}` must be a whole number; got {type(value).__name__}.")
    if value < least:
        raise ParameterError(f"`{name}` must be at least {least}; got {value}.")
    return int(value)


def choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        raise ParameterError(f"`{name}` must be one of {', '.join(choices)}; got {value!r}.")
    return str(value)
