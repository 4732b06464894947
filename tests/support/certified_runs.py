"""Real runs in one process of every kind that a certificate can be about, and a run between sites."""

from __future__ import annotations

from typing import Any

import numpy as np

import taciturn as tt
from taciturn.privacy.certificate.certificate import Certificate

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, (3000, 3))
Y = RNG.random(3000) < 1 / (1 + np.exp(-4 * X[:, 0]))
RANGE = (-0.5, 0.5)


class Means(tt.Program):
    """The mean of every column, and then of their products."""

    def steps(self, facts: Any) -> list[tt.Step]:
        return [tt.Step("means", 3, 1.0), tt.Step("products", 6, 1.0, aligned=True)]

    def start(self) -> tuple[Any, ...]:
        return ()

    def query(self, state: Any) -> tt.Query:
        columns = tt.expressions.columns()
        return tt.Query(tt.expressions.outer(columns) if state else columns)

    def advance(self, state: Any, total: Any) -> tuple[Any, ...]:
        return (*state, total.values)

    def result(self, state: Any) -> list[Any]:
        return [values.tolist() for values in state]


def program_result() -> Any:
    """What a program found, with its totals and certificate."""
    return tt.run_program(Means(), X, epsilon=1.0, sites=3, colluding=1)


def whitened_penalty() -> Certificate:
    """Of the paper's method after moments of the rows."""
    y = np.where(Y, 1.0, -1.0)
    problem = tt.Problem([(X[i::3], y[i::3]) for i in range(3)], C=20.0, regularization=1.0)
    method = tt.PenaltyPerturbation(tt.Geometric(2.0, 1.05), 2.0, tt.GaussianNoise(0.4), whiten=0.3)
    return tt.train(problem, "ring", method, rounds=6).certificate(1e-5)


def several_classes() -> Certificate:
    """Of masked gradients of a softmax model, which is less steep at 0."""
    labels = np.digitize(X[:, 0], [-0.2, 0.2])
    model = tt.PrivateLogisticRegression(sites=3, colluding=1, rounds=5, classes=[0, 1, 2])
    found: Certificate = model.fit(X, labels).certificate_
    return found


def hinge() -> Certificate:
    """Of masked gradients of a support vector machine."""
    found: Certificate = tt.PrivateLinearSVC(sites=3, colluding=1, rounds=5).fit(X, Y).certificate_
    return found


def left_by_a_site() -> Certificate:
    """Of a site of a network that another site left."""
    from privacy.certificate.test_attempts import certificate, lived  # type: ignore[import-not-found]

    found: Certificate = certificate(lived(), 12)
    return found


def certified_runs() -> dict[str, Certificate]:
    """One certificate of each kind."""
    table, ranges = {name: X[:, k] for k, name in enumerate("abc")}, dict.fromkeys("abc", RANGE)
    spend: dict[str, Any] = {"epsilon": 1.0, "sites": 3, "colluding": 1}
    found = {
        "regression": tt.PrivateGLM(bounds=[RANGE] * 3, **spend | {"epsilon": 4.0}).fit(X, Y).certificate_,
        "program": program_result().certificate,
        "description": tt.private_description(table, ranges, **spend).certificate,
        "survival": tt.private_survival(np.abs(X[:, 0]), Y, horizon=0.5, **spend).certificate,
        "correlations": tt.private_correlations(table, ranges, **spend).certificate,
        "softmax": several_classes(),
        "hinge": hinge(),
        "whitened penalty": whitened_penalty(),
        "attempts": left_by_a_site(),
    }
    return found
