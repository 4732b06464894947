"""E_{f ~ P_old}[p_new(f) / p_old(f)] = 1 through the real sampler, solver and density. Unseeded, p = 1e-6."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import (
    GaussianNoise,
    Geometric,
    LogCosh,
    Logistic,
    NormNoise,
    PenaltyPerturbation,
    PrimalPerturbation,
)
from taciturn.auditing import observer
from taciturn.auditing.audit import OneStream
from taciturn.auditing.counting import MeanRatio, mean_ratio
from taciturn.auditing.observer import SITES, Case
from taciturn.objective import LocalObjective, Loss

RUNS = 12_000
METHODS = {
    "gaussian": PenaltyPerturbation(Geometric(0.5, 1.3), 0.4, GaussianNoise(0.8)),
    "norm": PenaltyPerturbation(Geometric(0.5, 1.3), 0.4, NormNoise(3.0)),
    "wide": PenaltyPerturbation(0.5, 0.4, GaussianNoise(4.0)),
    "primal": PrimalPerturbation(0.5, GaussianNoise(0.8)),
}


def ratio(method: str, loss: Loss, d: int, C: float = 1.0) -> MeanRatio:
    """Two rounds on random rows, one of which is replaced by zeros."""
    rng = np.random.default_rng()
    case = Case(
        name="random rows",
        about="",
        method=METHODS[method],
        old=np.zeros(d).tolist(),
        new=np.zeros(d).tolist(),
        rounds=2,
        samples=6,
        loss=loss,
        C=C,
        messages=rng.normal(size=(3, d)),
    )
    X = rng.normal(size=(6, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    other = np.vstack([np.zeros((1, d)), X[1:]])
    y = rng.choice([-1.0, 1.0], 6)
    settings = {"loss": loss, "C": case.C, "regularization": case.regularization, "sites": SITES}
    old, new = (LocalObjective(rows, y, **settings) for rows in (X, other))
    released = (observer.transcript(case, part, RUNS, OneStream(None, 0)) for part in (old, new))
    logs = (observer.log_density(case, new, f) - observer.log_density(case, old, f) for f in released)
    return mean_ratio(*logs)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("loss", [Logistic(), LogCosh(0.5)])
@pytest.mark.parametrize("method", METHODS)
def test_the_density_is_that_of_the_sampler(method: str, loss: Loss, d: int) -> None:
    assert ratio(method, loss, d).holds


def test_without_the_jacobian_the_density_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = observer.log_jacobian
    monkeypatch.setattr(observer, "log_jacobian", lambda *arguments: 0.0 * right(*arguments))
    assert not ratio("wide", Logistic(), 1, C=6.0).holds
    monkeypatch.setattr(observer, "log_jacobian", lambda *arguments: -right(*arguments))
    assert not ratio("wide", Logistic(), 1, C=6.0).holds
