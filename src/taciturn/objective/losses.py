"""L(z): the loss of one sample, with proven bounds on its slope L' and its curvature L''.

For a model f and a sample (x, y): z = y f.x in a classification, with y in {-1, +1}; z = y - f.x in a
regression.

To add your own loss, write a class with the members of `Loss`. The loss is checked when it is first used: L
must be convex and at least 0, |L'| at most `slope_bound`, and L' Lipschitz with the constant
`curvature_bound`. These members are optional:

    slope_in_place(z)         overwrite z with L'(z), which saves an array in the solver's loop; intermediate
                              results may overflow, since the solver ignores floating-point warnings
    curvature_within(z, r)    the largest L'' over [z - r, z + r]; makes error bounds tighter where L is flat
    shift                     no intermediate result of slope(z) is larger than |z| + shift; 0 if absent

The error bound of the solver assumes that a computed slope differs from the true slope by at most
8 u |L'| + 2 u (|z| + shift) L'', where u = 2^-53. A formula of a few operations, each with an error of about
one unit in the last place, satisfies this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from ..core import checks
from ..core.types import Array

Kind = Literal["classification", "regression"]

_EXP_MAX = 700.0  # exp(700) is finite, and exp(-700) is not subnormal


class Loss(Protocol):
    """A convex L(z) with |L'| <= slope_bound and 0 <= L'' <= curvature_bound, elementwise on arrays."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def slope_bound(self) -> float: ...
    @property
    def curvature_bound(self) -> float: ...

    def value(self, z: Array) -> Array: ...
    def slope(self, z: Array) -> Array: ...
    def curvature(self, z: Array) -> Array: ...


@dataclass(frozen=True)
class Logistic:
    """L(z) = log(1 + exp(-z)); |L'| <= 1, L'' <= 1/4.

    >>> float(Logistic().slope(np.array(0.0)))
    -0.5
    """

    name: ClassVar[str] = "logistic"
    kind: ClassVar[Kind] = "classification"
    slope_bound: ClassVar[float] = 1.0
    curvature_bound: ClassVar[float] = 0.25

    def value(self, z: Array) -> Array:
        tail = np.asarray(-np.abs(z))
        np.log1p(np.exp(tail, out=tail), out=tail)
        return np.asarray(np.maximum(-z, 0.0) + tail)

    def slope(self, z: Array) -> Array:
        return self.slope_in_place(np.asarray(np.minimum(z, _EXP_MAX), dtype=np.float64))

    def slope_in_place(self, z: Array) -> Array:
        """Overwrite z with L'(z) = -1 / (1 + exp(z)). If z > 709, exp(z) overflows and L' is 0."""
        np.exp(z, out=z)
        np.add(z, 1.0, out=z)
        return np.divide(-1.0, z, out=z)

    def curvature(self, z: Array) -> Array:
        e = np.exp(-np.abs(z))
        return np.asarray(e / np.square(1.0 + e))

    def curvature_within(self, z: Array, radius: Array) -> Array:
        """The largest L'' over [z - radius, z + radius]; L'' decreases with |z|."""
        return self.curvature(np.maximum(np.abs(z) - radius, 0.0))


@dataclass(frozen=True)
class SmoothHinge:
    """The Huber hinge: max(0, 1 - z), but a parabola where |1 - z| <= h; |L'| <= 1, L'' <= 1/(2h).

    This is the hinge loss of a support vector machine, smoothed at z = 1, because privacy needs a bounded
    L''.

    >>> SmoothHinge(0.5).slope(np.array([0.0, 1.0, 2.0])).tolist()
    [-1.0, -0.5, 0.0]
    """

    h: float = 0.5

    name: ClassVar[str] = "smooth-hinge"
    kind: ClassVar[Kind] = "classification"
    slope_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "h", checks.magnitude("h", self.h))

    @property
    def curvature_bound(self) -> float:
        """c1 = 1 / (2h)."""
        return 0.5 / self.h

    @property
    def shift(self) -> float:
        """1 + h, because slope(z) computes z - (1 + h)."""
        return 1.0 + self.h

    def value(self, z: Array) -> Array:
        into = np.clip(1.0 + self.h - z, 0.0, 2.0 * self.h)
        return np.asarray(np.square(into) / (4.0 * self.h) + np.maximum(1.0 - self.h - z, 0.0))

    def slope(self, z: Array) -> Array:
        return self.slope_in_place(np.array(z, dtype=np.float64))

    def slope_in_place(self, z: Array) -> Array:
        """Overwrite z with L'(z) = -clip((1 + h - z) / (2h), 0, 1)."""
        np.subtract(z, 1.0 + self.h, out=z)
        np.clip(z, -2.0 * self.h, 0.0, out=z)
        return np.divide(z, 2.0 * self.h, out=z)

    def curvature(self, z: Array) -> Array:
        return np.where(np.abs(1.0 - z) <= self.h, self.curvature_bound, 0.0)

    def curvature_within(self, z: Array, radius: Array) -> Array:
        """The largest L'' over [z - radius, z + radius]."""
        return np.where(np.abs(1.0 - z) <= self.h + radius, self.curvature_bound, 0.0)


@dataclass(frozen=True)
class LogCosh:
    """L(z) = s log cosh(z / s) for residuals z, where s is the scale; |L'| <= 1, L'' <= 1/s.

    L is nearly quadratic for small residuals and nearly linear for large residuals. So L' is bounded, however
    large the target y is.

    >>> LogCosh(2.0).curvature_bound
    0.5
    """

    scale: float = 1.0

    name: ClassVar[str] = "log-cosh"
    kind: ClassVar[Kind] = "regression"
    slope_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.magnitude("scale", self.scale))

    @property
    def curvature_bound(self) -> float:
        """c1 = 1 / s."""
        return 1.0 / self.scale

    def value(self, z: Array) -> Array:
        size = np.abs(z)
        near = np.log1p(2.0 * np.square(np.sinh(0.5 * self._ratio(size, 1.0))))
        far = size + self.scale * (np.log1p(np.exp(-2.0 * self._ratio(size))) - np.log(2.0))
        return np.where(size <= self.scale, self.scale * near, far)

    def slope(self, z: Array) -> Array:
        return self.slope_in_place(np.array(z, dtype=np.float64))

    def slope_in_place(self, z: Array) -> Array:
        """Overwrite z with L'(z) = tanh(z / s)."""
        np.clip(z, -_EXP_MAX * self.scale, _EXP_MAX * self.scale, out=z)
        np.divide(z, self.scale, out=z)
        return np.tanh(z, out=z)

    def curvature(self, z: Array) -> Array:
        return np.asarray(self.curvature_bound / np.square(np.cosh(self._ratio(np.abs(z), 350.0))))

    def curvature_within(self, z: Array, radius: Array) -> Array:
        """The largest L'' over [z - radius, z + radius]; L'' decreases with |z|."""
        return self.curvature(np.maximum(np.abs(z) - radius, 0.0))

    def _ratio(self, size: Array, most: float = _EXP_MAX) -> Array:
        """min(|z| / s, most): the limit prevents an overflow in exp or cosh."""
        return np.asarray(np.minimum(size, most * self.scale) / self.scale)


@dataclass(frozen=True)
class Squared:
    """L(z) = z^2 / 2 for residuals |z| <= reach, and linear for larger residuals (a Huber loss); L'' <= 1.

    target_bound : a public bound on |y|, which privacy needs: |L'| <= reach = 2 target_bound. If |f.x| is
        also within `target_bound`, no residual exceeds `reach`, and L is exactly the squared loss. With
        `target_bound` = None, the slope has no useful bound.

    >>> Squared(target_bound=3.0).slope(np.array([1.0, 5.0, 9.0])).tolist()
    [1.0, 5.0, 6.0]
    """

    reach: float = checks.MOST

    name: ClassVar[str] = "squared"
    kind: ClassVar[Kind] = "regression"
    curvature_bound: ClassVar[float] = 1.0

    def __init__(self, target_bound: float | None = None) -> None:
        reach = checks.MOST if target_bound is None else 2.0 * checks.magnitude("target_bound", target_bound)
        object.__setattr__(self, "reach", reach)

    def __repr__(self) -> str:
        return "Squared()" if self.reach == checks.MOST else f"Squared(target_bound={self.reach / 2!r})"

    @property
    def slope_bound(self) -> float:
        return self.reach

    def value(self, z: Array) -> Array:
        size = np.minimum(np.abs(z), 1e300 / max(1.0, self.reach))  # larger values would overflow
        inside = np.minimum(size, self.reach)
        return np.asarray(inside * (size - 0.5 * inside))

    def slope(self, z: Array) -> Array:
        return self.slope_in_place(np.array(z, dtype=np.float64))

    def slope_in_place(self, z: Array) -> Array:
        """Overwrite z with L'(z): z clipped to [-reach, reach]."""
        return np.clip(z, -self.reach, self.reach, out=z)

    def curvature(self, z: Array) -> Array:
        return np.where(np.abs(z) <= self.reach, 1.0, 0.0)

    def curvature_within(self, z: Array, radius: Array) -> Array:
        """The largest L'' over [z - radius, z + radius]."""
        return np.where(np.abs(z) <= self.reach + radius, 1.0, 0.0)


SHIPPED: dict[str, type[Logistic] | type[SmoothHinge] | type[LogCosh] | type[Squared]] = {
    kind.name: kind for kind in (Logistic, SmoothHinge, LogCosh, Squared)
}
"""The losses of this file, by name. Some bounds were proven for these losses and are used only for them."""
