"""Every loss keeps what `Loss` promises: derivatives, bounds, convexity, and no float warnings."""

from __future__ import annotations

from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.objective import LogCosh, Logistic, Loss, SmoothHinge, Squared, check_loss
from taciturn.objective.solver.continuation import SoftenedLoss

LOSSES = [
    Logistic(),
    SmoothHinge(),
    SmoothHinge(0.01),
    SmoothHinge(3.0),
    LogCosh(),
    LogCosh(0.1),
    LogCosh(20.0),
    Squared(target_bound=2.0),
]
CENTRE = {"logistic": 0.0, "smooth-hinge": 1.0, "log-cosh": 0.0, "squared": 0.0}  # where each bends
POINTS = np.concatenate([np.linspace(-8, 8, 1601), np.geomspace(1e-9, 1e3, 60), -np.geomspace(1e-9, 1e3, 60)])

every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


class Disguised:
    """A loss as a user's own class would be: not one that the checker knows, with some members replaced."""

    def __init__(self, loss: Loss, **replaced: object) -> None:
        for member in ("name", "kind", "slope_bound", "curvature_bound", "value", "slope", "curvature"):
            setattr(self, member, replaced.get(member, getattr(loss, member)))


@every_loss
def test_the_slope_is_the_derivative_of_the_value(loss: Loss) -> None:
    z, h = np.sort(POINTS), 1e-6
    assert loss.slope(z) == pytest.approx(
        (loss.value(z + h) - loss.value(z - h)) / (2 * h), abs=1e-6 * (1 + loss.curvature_bound)
    )


@every_loss
def test_the_curvature_is_the_derivative_of_the_slope(loss: Loss) -> None:
    h = 1e-6
    kinks = np.array([1 - getattr(loss, "h", 9.0), 1 + getattr(loss, "h", 9.0), -4.0, 4.0])  # 4: of Squared
    z = POINTS[np.min(np.abs(POINTS[:, None] - kinks), axis=1) > 2 * h]
    bend = (loss.slope(z + h) - loss.slope(z - h)) / (2 * h)
    assert loss.curvature(z) == pytest.approx(bend, abs=1e-6 * loss.curvature_bound + 1e-9)


@every_loss
def test_the_bounds_hold_and_are_reached(loss: Loss) -> None:
    slope, curvature = np.abs(loss.slope(1e3 * POINTS)), loss.curvature(POINTS)
    assert np.max(slope) <= loss.slope_bound
    assert np.max(slope) == pytest.approx(loss.slope_bound, rel=1e-6)
    assert np.all(curvature >= 0)
    assert np.max(curvature) <= loss.curvature_bound * (1 + 1e-15)
    top = loss.curvature(np.array([CENTRE[loss.name]]))
    assert top == pytest.approx(loss.curvature_bound, rel=1e-12)


@every_loss
def test_it_is_convex_and_never_negative(loss: Loss) -> None:
    z = np.sort(POINTS)
    assert np.all(np.diff(loss.slope(z)) >= -1e-15)
    assert np.all(loss.value(z) >= 0)


@every_loss
@pytest.mark.parametrize("size", [1e3, 1e8, 1e154, 1e308])
def test_huge_margins_cause_no_float_warnings(loss: Loss, size: float) -> None:
    z = np.array([-size, size])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, slope, curvature = loss.value(z), loss.slope(z), loss.curvature(z)
    assert np.all(np.isfinite(value)) and np.all(np.isfinite(slope))
    assert np.all(np.abs(slope) <= loss.slope_bound)
    assert curvature == pytest.approx(0, abs=1e-6 * loss.curvature_bound)


@every_loss
def test_any_array_shape_is_accepted(loss: Loss) -> None:
    for shape in ((), (0,), (3,), (2, 3), (2, 1, 3)):
        z = np.full(shape, 0.4)
        for function in (loss.value, loss.slope, loss.curvature):
            assert np.shape(function(z)) == shape
            assert np.all(function(z) == function(np.array([0.4]))[0])


@every_loss
def test_arguments_are_not_modified_unless_requested(loss: Loss) -> None:
    z = POINTS.copy()
    slope = loss.slope(z)
    loss.value(z), loss.curvature(z)
    assert np.array_equal(z, POINTS)
    with np.errstate(over="ignore"):
        in_place = loss.slope_in_place(z)
    assert in_place is z
    assert z == pytest.approx(slope, rel=0, abs=1e-300)


@every_loss
def test_computed_slopes_are_as_close_as_the_certificate_takes_them(loss: Loss) -> None:
    u = 2.0**-53
    z = np.concatenate([POINTS[::7], [700.5, 709.0, 720.0, -720.0]])
    bound = 8 * u * np.abs(loss.slope(z))
    bound += 2 * u * (np.abs(z) + getattr(loss, "shift", 0.0)) * loss.curvature_within(z, 1e-9 * np.abs(z))
    getcontext().prec = 50
    for at, slope, most in zip(z, loss.slope(z), bound, strict=True):
        off = abs(Decimal(float(slope)) - exact_slope(loss, Decimal(float(at))))
        assert off <= Decimal(float(most)) + Decimal("1e-300"), at


def exact_slope(loss: Loss, z: Decimal) -> Decimal:
    """L'(z) to 50 digits."""
    if isinstance(loss, Logistic):
        return -1 / (1 + min(z, Decimal(10**4)).exp())
    if isinstance(loss, SmoothHinge):
        h = Decimal(loss.h)
        return -min(max((1 + h - z) / (2 * h), Decimal(0)), Decimal(1))
    if isinstance(loss, Squared):
        return min(max(z, Decimal(-loss.reach)), Decimal(loss.reach))
    assert isinstance(loss, LogCosh)
    e = (-2 * min(abs(z) / Decimal(loss.scale), Decimal(10**4))).exp()
    return (1 - e) / (1 + e) * (1 if z >= 0 else -1)


@pytest.mark.parametrize(
    ("loss", "at_slope"),
    [
        (Logistic(), lambda p, c1: p * (1 - p)),
        (LogCosh(), lambda p, c1: c1 * (1 - p**2)),
        (LogCosh(0.3), lambda p, c1: c1 * (1 - p**2)),
    ],
    ids=["logistic", "log-cosh", "log-cosh 0.3"],
)
def test_steep_and_curved_exclude_each_other_as_the_tight_bounds_assume(loss: Loss, at_slope: Any) -> None:
    slope, c1 = np.abs(loss.slope(POINTS)), loss.curvature_bound
    assert loss.curvature(POINTS) == pytest.approx(at_slope(slope, c1), abs=1e-15 * c1)


@every_loss
def test_curvature_within_bounds_the_neighbourhood(loss: Loss) -> None:
    radius = np.full_like(POINTS, 0.3)
    most = loss.curvature_within(POINTS, radius)
    for share in np.linspace(-1, 1, 21):
        assert np.all(loss.curvature(POINTS + share * radius) <= most * (1 + 1e-12))


@every_loss
def test_the_checker_passes_it_as_a_users_own(loss: Loss) -> None:
    check_loss(Disguised(loss))


@every_loss
@pytest.mark.parametrize("tau", [1e-2, 1.0, 1e4])
def test_the_softened_loss_is_a_loss_too(loss: Loss, tau: float) -> None:
    soft = SoftenedLoss(loss, tau)
    z, h = np.linspace(-9, 9, 301), 1e-4
    assert soft.slope(z) == pytest.approx(
        (soft.value(z + h) - soft.value(z - h)) / (2 * h), abs=1e-6 + h * soft.curvature_bound
    )
    assert np.all(soft.curvature(z) <= soft.curvature_bound * (1 + 1e-9))
    assert np.all(np.diff(soft.slope(z)) >= -1e-10)
    assert np.all(soft.value(z) <= loss.value(z) * (1 + 1e-9) + 1e-12)


@every_loss
def test_the_checker_catches_what_is_wrong(loss: Loss) -> None:
    wrong = {
        "slope_bound": (0.99 * loss.slope_bound, "slope_bound"),
        "curvature_bound": (0.97 * loss.curvature_bound, "curvature_bound|Lipschitz"),
        "slope": (lambda z: 0.999 * loss.slope(z), "derivative of the value"),
        "value": (lambda z: loss.value(z) + 0.001 * np.sin(z) + 1.0, "derivative of the value"),
        "curvature": (lambda z: 0.9 * loss.curvature(z), "derivative of the slope"),
    }
    for member, (replacement, claim) in wrong.items():
        with pytest.raises(ParameterError, match=claim):
            check_loss(Disguised(loss, **{member: replacement}))
