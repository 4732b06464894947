"""Softmax: gradients are derivatives, metrics are means, labels are checked."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax

from taciturn import SoftmaxProblem
from taciturn.core.errors import DataError, ParameterError
from taciturn.objective.softmax import Softmax, SoftmaxObjective


def make_rows(rows=50, d=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d))
    return X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), rng.integers(0, classes, rows)


def gradient(objective, F, loss):
    """sum of w (p - e_y) x' over all rows; Z = -X."""
    return sum(
        -np.einsum("nrk,nd->rkd", objective.residuals(b, F, loss), b.Z) for b in objective.blocks(len(F))
    )


def test_the_gradient_is_the_derivative():
    X, y = make_rows()
    loss = Softmax(3)
    objective = SoftmaxObjective(X, y, loss=loss)
    F, step = np.random.default_rng(1).normal(size=(2, 12)), 1e-6
    found = gradient(objective, F, loss).reshape(2, 12)
    for j in range(12):
        moved = [objective.metrics(F + sign * step * np.eye(12)[j])[0] * 50 for sign in (1, -1)]
        np.testing.assert_allclose(found[:, j], (moved[0] - moved[1]) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_metrics_are_those_of_the_textbook(store):
    X, y = make_rows()
    weights = np.linspace(0.1, 1, 50)
    objective = SoftmaxObjective(store(X), y, loss=Softmax(3), weights=weights, count=30)
    F = np.random.default_rng(1).normal(size=(2, 12))
    loss, accuracy = objective.metrics(F)
    for k, W in enumerate(F.reshape(2, 3, 4)):
        own = log_softmax(X @ W.T, axis=1)[np.arange(50), y]
        assert loss[k] == pytest.approx(-np.average(own, weights=weights))
        assert accuracy[k] == pytest.approx(np.average(np.argmax(X @ W.T, axis=1) == y, weights=weights))
    assert objective.metrics(np.zeros((1, 12)))[1][0] == pytest.approx(1 / 3)
    assert (objective.samples, objective.features, objective.dimension) == (30, 4, 12)


def test_weighted_records_still_estimate_the_classes():
    """At the true p, the mean over labels of w (p - e_y) is 0; no record exceeds the bound."""
    loss, rng = Softmax(4, bounded=True), np.random.default_rng(2)
    for _ in range(50):
        W = rng.normal(size=(4, 2)) * np.exp(rng.normal())
        x = np.array([[0.6, 0.8]])
        p = softmax(x @ W.T, axis=1)[0]
        objectives = [SoftmaxObjective(x, [k], loss=loss) for k in range(4)]
        each = np.stack([o.residuals(o.blocks(1)[0], W[None], loss)[0, 0] for o in objectives])
        np.testing.assert_allclose(p @ each, 0, atol=1e-12)
        assert np.linalg.norm(each, axis=1).max() <= loss.slope_bound * (1 + 1e-12)


@pytest.mark.parametrize("labels", [[0, 3], [0.5, 1], [-1, 0]])
def test_labels_are_classes(labels):
    with pytest.raises(DataError, match="whole numbers from 0 to 2"):
        SoftmaxObjective(np.eye(2), labels, loss=Softmax(3))


def test_problems_are_checked():
    X, y = make_rows()
    with pytest.raises(DataError, match="same number of features"):
        SoftmaxProblem([(X, y), (X[:, :2], y)], classes=3, C=1.0, regularization=1.0)
    with pytest.raises(ParameterError, match="`C`"):
        SoftmaxProblem([(X, y)], classes=3, C=51.0, regularization=1.0)
    with pytest.raises(ParameterError, match="`classes`"):
        Softmax(1)
    with pytest.raises(DataError, match="`weights`"):
        SoftmaxObjective(X, y, loss=Softmax(3), weights=np.full(50, 2.0), count=50)
    with pytest.raises(DataError, match="norm at most 1"):
        SoftmaxProblem([(2 * X, y)], classes=3, C=1.0, regularization=1.0).require_unit_rows()
