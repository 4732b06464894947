"""Check a user's own loss or regulariser at many points when it is first used.

A finite difference of a convex L lies between two values of its derivative: for a < b,

    L'(a) <= (L(b) - L(a)) / (b - a) <= L'(b),

so the check finds a wrong L', with no tolerance except for rounding errors. L'' is compared with differences
of L'; there the tolerance is 1% of the bound on L''.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from .losses import SHIPPED, Loss
from .regularizers import L2, Regularizer

_ROUND = 64 * np.finfo(np.float64).eps
_passed: set[object] = set()


def check_loss(loss: Loss) -> None:
    """Raise an error unless the loss is convex, and its derivatives and bounds are correct."""
    if type(loss) in SHIPPED.values() or _known(loss):  # subclasses of shipped losses are checked
        return
    for member in ("name", "kind", "slope_bound", "curvature_bound", "value", "slope", "curvature"):
        if not hasattr(loss, member):
            raise ParameterError(f"`loss` must have the member `{member}`; {type(loss).__name__} lacks it.")
    checks.choice("loss.kind", loss.kind, ("classification", "regression"))
    s1 = checks.positive("loss.slope_bound", loss.slope_bound)
    c1 = checks.positive("loss.curvature_bound", loss.curvature_bound)
    z = _samples()
    value, slope, curvature = (
        _evaluate("loss", name, function, z)
        for name, function in (("value", loss.value), ("slope", loss.slope), ("curvature", loss.curvature))
    )
    _require("loss", np.abs(slope) <= s1 * (1 + _ROUND), z, f"|slope(z)| <= slope_bound = {s1:g}")
    _check_derivatives("loss", z, value, slope, curvature, c1)
    _require("loss", value >= 0, z, "value(z) >= 0")
    with suppress(TypeError):
        _passed.add(loss)


def check_regularizer(regularizer: Regularizer) -> None:
    """Raise an error unless the regulariser is convex, and its derivatives and bounds are correct."""
    if type(regularizer) is L2 or _known(regularizer):
        return
    what = "regularizer"
    for member in ("name", "strong_convexity", "curvature_bound", "value", "gradient", "curvature"):
        if not hasattr(regularizer, member):
            raise ParameterError(
                f"`{what}` must have the member `{member}`; {type(regularizer).__name__} lacks it."
            )
    least = checks.nonnegative("regularizer.strong_convexity", regularizer.strong_convexity)
    most = checks.nonnegative("regularizer.curvature_bound", regularizer.curvature_bound)
    f = _samples(largest=1e6)
    if np.shape(regularizer.value(f[:, None])) != f.shape:
        raise ParameterError(f"`{what}`: value must map an array (repeats, d) to an array (repeats,).")
    value = np.asarray(regularizer.value(f[:, None]), dtype=np.float64)
    slope = _evaluate(what, "gradient", regularizer.gradient, f[:, None])[:, 0]
    curvature = _evaluate(what, "curvature", regularizer.curvature, f[:, None])[:, 0]
    _require(what, curvature >= least * (1 - _ROUND), f, f"curvature >= strong_convexity = {least:g}")
    _check_derivatives(what, f, value, slope, curvature, most)
    steps = np.diff(slope) >= least * np.diff(f) - _ROUND * _pairwise(slope)
    _require(what, steps, f[:-1], f"gradient grows at least at the rate strong_convexity = {least:g}")
    pair = np.stack([f[:-1], f[1:]], axis=1)
    together = np.abs(regularizer.value(pair) - (value[:-1] + value[1:]))
    _require(what, together <= _ROUND * _pairwise(value), f[:-1], "the value is a sum over coordinates")
    with suppress(TypeError):
        _passed.add(regularizer)


def _check_derivatives(
    what: str, z: Array, value: Array, slope: Array, curvature: Array, most: float
) -> None:
    """Check that L is convex, that L' and L'' match finite differences, and that L'' is within its bound."""
    step = np.diff(z)
    tiny = _ROUND * (_pairwise(slope) + min(1.0, float(np.max(np.abs(slope)))))
    noise = _ROUND * (1.0 + _pairwise(value)) / step + tiny
    secant = np.diff(value) / step
    _require(what, np.diff(slope) >= -tiny, z[:-1], "convex: the slope never falls")
    right = (secant >= slope[:-1] - noise) & (secant <= slope[1:] + noise)
    _require(what, right, z[:-1], "the slope is the derivative of the value")
    _require(what, curvature >= 0, z, "convex: curvature(z) >= 0")
    _require(what, curvature <= most * (1 + _ROUND), z, f"curvature(z) <= curvature_bound = {most:g}")
    bend, noise = np.diff(slope) / step, tiny / step
    _require(what, bend <= most * (1 + 1e-9) + noise, z[:-1], f"slope is Lipschitz with {most:g}")
    low, high = np.minimum(curvature[:-1], curvature[1:]), np.maximum(curvature[:-1], curvature[1:])
    slack = 1e-2 * most + noise
    near = (bend >= low - slack) & (bend <= high + slack) | (step > 0.05 * np.abs(z[1:]) + 1e-3)
    _require(what, near, z[:-1], "the curvature is the derivative of the slope")


def _samples(largest: float = 1e12) -> Array:
    """Sorted points of many magnitudes, with many points in [-12, 12], where most losses are curved."""
    scales = np.geomspace(1e-8, largest, 400)
    return np.unique(np.concatenate([-scales, [0.0], scales, np.linspace(-12.0, 12.0, 24_001)]))


def _evaluate(what: str, name: str, function: Callable[[Array], Array], z: Array) -> Array:
    """function(z). Raise an error if it overflows, is not finite, or does not have the shape of z."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        try:
            result = np.asarray(function(z.copy()), dtype=np.float64)
            if what == "loss":
                function(np.array([-1e308, 1e308]))
        except FloatingPointError as error:
            far = " for |z| up to 1e308" if what == "loss" else ""
            raise ParameterError(
                f"`{what}`: {name} must be computed without overflow{far}; {error}."
            ) from None
    if result.shape != z.shape:
        raise ParameterError(f"`{what}`: {name} must return the shape {z.shape}; got {result.shape}.")
    _require(what, np.isfinite(result), z, f"{name} is finite")
    return result


def _require(what: str, holds: NDArray[np.bool_], z: Array, claim: str) -> None:
    if not np.all(holds):
        at = float(np.ravel(z)[np.argmin(np.ravel(holds))])
        raise ParameterError(f"`{what}` fails the check '{claim}' at z = {at:g}.")


def _pairwise(values: Array) -> Array:
    """For every two consecutive entries, the larger of their absolute values."""
    return np.asarray(np.maximum(np.abs(values[:-1]), np.abs(values[1:])))


def _known(part: object) -> bool:
    try:
        return part in _passed
    except TypeError:  # the object cannot be hashed, so it is checked at each use
        return False
