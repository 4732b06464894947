"""A site's objective against the sum written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from support.hard_problems import LOSSES
from taciturn.core.errors import ParameterError
from taciturn.objective import LocalObjective, LogCosh, Logistic, Loss

rng = np.random.default_rng(0)
X, F = rng.normal(size=(300, 5)), rng.normal(size=(4, 5))


def make(loss: Loss, *, csr: bool = False) -> tuple[LocalObjective, np.ndarray]:
    y = np.where(rng.random(300) < 0.5, -1.0, 1.0) if loss.kind == "classification" else rng.normal(size=300)
    rows = sparse.csr_array(X) if csr else X
    return LocalObjective(rows, y, loss=loss, C=60.0, regularization=0.3, sites=3), y


def margins(loss: Loss, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return y * (X @ f) if loss.kind == "classification" else y - X @ f


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_value_gradient_and_hessian(loss: Loss, csr: bool) -> None:
    objective, y = make(loss, csr=csr)
    for r, f in enumerate(F):
        value = 0.2 * np.sum(loss.value(margins(loss, y, f))) + 0.1 * f @ f / 2
        assert objective.value(F)[r] == pytest.approx(value)
    h = 1e-6
    steps = h * np.eye(5)
    slope = (objective.value(F[0] + steps) - objective.value(F[0] - steps)) / (2 * h)
    assert objective.gradient(F)[0] == pytest.approx(slope, abs=1e-5)
    if not loss.name == "smooth-hinge":
        bend = (objective.gradient(F[0] + steps) - objective.gradient(F[0] - steps)) / (2 * h)
        assert objective.hessian(F[0]) == pytest.approx(bend, abs=1e-4)
    assert np.array_equal(objective.hessian(F[0]), objective.hessian(F[0]).T)


def test_metrics_of_classification() -> None:
    objective, y = make(Logistic())
    loss, accuracy = objective.metrics(F)
    z = y * (F @ X.T)
    assert loss == pytest.approx(np.mean(np.log1p(np.exp(-z)), axis=1))
    assert accuracy == pytest.approx(np.mean(z > 0, axis=1))
    assert objective.metrics(np.zeros((1, 5)))[1] == 0.5


def test_metrics_of_regression() -> None:
    objective, y = make(LogCosh(0.5))
    loss, off = objective.metrics(F)
    assert loss == pytest.approx(np.mean(0.5 * np.log(np.cosh((y - F @ X.T) / 0.5)), axis=1))
    assert off == pytest.approx(np.mean(np.abs(y - F @ X.T), axis=1))


@pytest.mark.parametrize("size", [1e-3, 30.0, 1e4])
def test_metrics_far_out(size: float) -> None:
    objective, y = make(Logistic())
    z = size * y * (F @ X.T)
    assert objective.metrics(size * F)[0] == pytest.approx(np.mean(np.logaddexp(0, -z), axis=1), rel=1e-12)


@pytest.mark.parametrize("csr", [False, True])
def test_the_bounds_on_curvature(csr: bool) -> None:
    objective, _ = make(Logistic(), csr=csr)
    M = 0.1 + 0.2 / 4 * np.linalg.eigvalsh(X.T @ X)[-1]
    assert objective.strong == pytest.approx(0.1)
    assert objective.smoothness == pytest.approx(M, rel=1e-9)
    assert objective.smoothness >= M
    assert objective.largest_norm == pytest.approx(np.max(np.linalg.norm(X, axis=1)))


def test_single_site_objective_validates_its_input() -> None:
    with pytest.raises(
        ParameterError, match=r"must not exceed the number of samples, 300 at the site; got 301"
    ):
        LocalObjective(X, np.ones(300), loss=Logistic(), C=301.0, regularization=0.3, sites=3)
    with pytest.raises(ParameterError, match="`sites` must be at least 1"):
        LocalObjective(X, np.ones(300), loss=Logistic(), C=1.0, regularization=0.3, sites=0)
