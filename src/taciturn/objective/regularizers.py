"""R(f), the regulariser: a convex sum over the coordinates of f with a bounded second derivative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from ..core.types import Array


class Regularizer(Protocol):
    """A convex R(f) = sum_j r(f_j), with strong_convexity <= r'' <= curvature_bound.

    The argument f is (repeats, d), with one model per row. `value` returns R, (repeats,); `gradient` and
    `curvature` return r' and r'' of every entry, (repeats, d). A regulariser of your own is checked when it
    is first used.
    """

    @property
    def name(self) -> str: ...
    @property
    def strong_convexity(self) -> float: ...
    @property
    def curvature_bound(self) -> float: ...

    def value(self, f: Array) -> Array: ...
    def gradient(self, f: Array) -> Array: ...
    def curvature(self, f: Array) -> Array: ...


@dataclass(frozen=True)
class L2:
    """R(f) = ||f||^2 / 2; its strong convexity constant is 1.

    >>> L2().value(np.array([[3.0, 4.0]]))
    array([12.5])
    """

    name: ClassVar[str] = "l2"
    strong_convexity: ClassVar[float] = 1.0
    curvature_bound: ClassVar[float] = 1.0

    def value(self, f: Array) -> Array:
        return np.asarray(0.5 * np.sum(np.square(f), axis=-1))

    def gradient(self, f: Array) -> Array:
        return f

    def curvature(self, f: Array) -> Array:
        return np.ones_like(f)
