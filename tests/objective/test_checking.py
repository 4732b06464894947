"""The checker of a user's loss or regulariser reports what failed and where, and runs only once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from taciturn.core.errors import ParameterError
from taciturn.objective import L2, Logistic, Problem, check_loss, check_regularizer


@dataclass(frozen=True)
class Squared:
    """z^2 / 2: its slope is unbounded."""

    name = "squared"
    kind = "regression"
    slope_bound = 1.0
    curvature_bound = 1.0

    def value(self, z):
        return np.square(z) / 2

    def slope(self, z):
        return z

    def curvature(self, z):
        return np.ones_like(z)


@dataclass(frozen=True)
class Counted:
    """sqrt(1 + z^2) - 1 for residuals, counting its calls."""

    calls: list
    name = "pseudo-huber"
    kind = "regression"
    slope_bound = 1.0
    curvature_bound = 1.0

    def __hash__(self):
        return 7

    def value(self, z):
        self.calls.append(1)
        root = np.hypot(1.0, z)
        return np.abs(z) * (np.abs(z) / (root + 1.0))

    def slope(self, z):
        return z / np.hypot(1.0, z)

    def curvature(self, z):
        return np.power(np.minimum(np.hypot(1.0, z), 1e100), -3.0)


class Elastic:
    """r(f) = f^2 / 2 + log cosh f."""

    name = "elastic"
    strong_convexity = 1.0
    curvature_bound = 2.0

    def value(self, f):
        return np.sum(np.square(f) / 2 + np.logaddexp(f, -f) - np.log(2), axis=-1)

    def gradient(self, f):
        return f + np.tanh(f)

    def curvature(self, f):
        return 1.0 + 1.0 / np.square(np.cosh(np.clip(f, -300, 300)))


def test_the_squared_loss_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"fails the check .*slope_bound|overflow"):
        check_loss(Squared())


def test_a_sound_loss_is_checked_once() -> None:
    loss = Counted([])
    check_loss(loss)
    first = len(loss.calls)
    assert first > 0
    check_loss(loss)
    assert len(loss.calls) == first


def test_a_problem_checks_its_loss() -> None:
    with pytest.raises(ParameterError, match="loss"):
        Problem([(np.ones((2, 1)), np.ones(2))], loss=Squared(), C=1.0, regularization=0.1)


def test_a_subclass_of_a_shipped_part_is_checked_like_any_other() -> None:
    class Steep(Logistic):
        def slope(self, z):
            return 5.0 * super().slope(z)

    class Loose(L2):
        strong_convexity = 2.0

    with pytest.raises(ParameterError, match="slope_bound"):
        check_loss(Steep())
    with pytest.raises(ParameterError, match="strong_convexity"):
        check_regularizer(Loose())


def test_a_missing_member_is_named() -> None:
    class Bare:
        name, kind, slope_bound, curvature_bound = "bare", "regression", 1.0, 1.0

    with pytest.raises(ParameterError, match="`value`"):
        check_loss(Bare())


def test_a_loss_that_changes_shape_is_refused() -> None:
    class Flat(Squared):
        def value(self, z):
            return 0.0

    with pytest.raises(ParameterError, match="shape"):
        check_loss(Flat())


def test_regularisers_are_checked() -> None:
    check_regularizer(L2())
    check_regularizer(Elastic())


@pytest.mark.parametrize(
    ("member", "replacement", "claim"),
    [
        ("strong_convexity", 1.5, "strong_convexity"),
        ("curvature_bound", 1.5, "curvature_bound"),
        ("gradient", lambda f: f, "derivative of the value"),
        ("curvature", lambda f: np.full_like(f, 1.5), "derivative of the slope"),
        ("value", lambda f: np.sum(f * f, axis=-1) ** 1.0 / 2 + np.prod(f, axis=-1), "derivative|sum"),
        ("value", lambda f: 0.0, "repeats"),
    ],
)
def test_wrong_regularisers_are_refused(member: str, replacement: object, claim: str) -> None:
    wrong = Elastic()
    setattr(wrong, member, replacement)
    with pytest.raises(ParameterError, match=claim):
        check_regularizer(wrong)
