"""Several rows of a person: they count as one unit, are protected together, and may depend on each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import ndtr

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.kernels import regression_rows as rows

TRUTH = np.array([1.0, -0.3])
BOUNDS = [(0.0, 1.0), (-3.0, 5.0)]
RANGES = {"gaussian": (-9.0, 9.0), "poisson": (0.0, 30.0)}


def visits(family: str, people: int, seed: int) -> tuple[Any, Any, Any]:
    """1 to 6 visits each; the first column and half of every error belong to the person."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), rng.integers(1, 7, people))
    first = rng.integers(0, 2, people)[person]
    X = np.column_stack([first, rng.normal(1, 1, len(person)).clip(-3, 5)])
    eta = X @ TRUTH + 0.2
    z = (rng.standard_normal(people)[person] + rng.standard_normal(len(person))) / math.sqrt(2)
    if family == "gaussian":
        return X, eta + z, person
    if family == "binomial":
        return X, (ndtr(z) < 1 / (1 + np.exp(-eta))).astype(float), person
    from scipy.stats import poisson

    return X, poisson.ppf(ndtr(z), np.exp(eta)).clip(0, 30), person


def model(family: str, **settings: Any) -> tt.PrivateGLM:
    return tt.PrivateGLM(family, bounds=BOUNDS, outcome=RANGES.get(family), **settings)


@pytest.mark.parametrize("family", ["binomial", "gaussian", "poisson"])
def test_without_noise_errors_are_those_of_statsmodels_with_clusters(family: str) -> None:
    X, y, person = visits(family, 300, 0)
    found = model(family, epsilon=math.inf).fit(X, y, person=person)
    kind = {
        "binomial": sm.families.Binomial,
        "gaussian": sm.families.Gaussian,
        "poisson": sm.families.Poisson,
    }
    groups = {"groups": person, "use_correction": False}
    oracle = sm.GLM(y, sm.add_constant(X), family=kind[family]()).fit(
        tol=1e-12, cov_type="cluster", cov_kwds=groups
    )
    assert np.append(found.intercept_, found.coef_) == pytest.approx(oracle.params, abs=1e-6)
    assert found.se_ == pytest.approx(oracle.bse[1:], abs=1e-6)
    assert found.result_.units == 300 and "300 persons" in found.summary().text()


@pytest.mark.parametrize("family", ["binomial", "gaussian", "poisson"])
def test_intervals_hold_where_rows_of_a_person_depend_on_each_other(family: str) -> None:
    """20 fits. If each row counted as an independent record, the intervals would be too narrow."""
    held, ratios = 0, []
    for seed in range(20):
        X, y, person = visits(family, 2500, seed)
        found = model(family, epsilon=2.0, random_state=seed).fit(X, y, person=person)
        low, high = found.interval(0.9).T
        held += int(np.sum((low <= TRUTH) & (TRUTH <= high)))
        apart = model(family, epsilon=math.inf).fit(X, y)
        ratios.append(found.result_.estimates.se("sampling")[0] / apart.se_[0])
    assert held >= 31  # binomial(40, 0.9) is below 31 twice in a thousand
    assert np.median(ratios) > 1.25
    assert found.certificate_.run.unit == "person" and found.certificate_.run.persons == 2500


@pytest.mark.parametrize("kind", [rows.MOMENTS, rows.SCORE, rows.HESSIAN, rows.MEAT])
@pytest.mark.parametrize("family", [rows.BINOMIAL, rows.GAUSSIAN, rows.POISSON])
def test_a_person_adds_no_more_than_a_record(family: int, kind: int) -> None:
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(3000, 3))
    Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
    y = {
        rows.GAUSSIAN: rng.uniform(-1, 1, 3000),
        rows.BINOMIAL: rng.integers(0, 2, 3000) * 1.0,
        rows.POISSON: rng.integers(0, 51, 3000) * 1.0,
    }[family]
    Z[::7, 1] = np.nan
    Z = np.column_stack([Z, y])
    starts = np.append(np.unique(rng.integers(0, 3000, 300)), 3000)
    starts[0] = 0
    most = {rows.BINOMIAL: 0.25, rows.GAUSSIAN: 1.0, rows.POISSON: rows.POISSON_W}[family]
    numbers = np.array([3.0, 0.3, 50.0, most, 1.0, 0.0])
    W, f = rng.normal(0, 2, (3, 3)), rng.normal(0, 1, 3)
    sizes = np.linalg.norm(rows.regression_rows(Z, starts, W, f, f, numbers, family, kind), axis=1)
    bound = math.sqrt(1 + rows.SIDES * rows.SIDE**2) if kind == rows.SCORE else 1.0
    slack = 1.1 if family == rows.POISSON and kind in (rows.SCORE, rows.MEAT) else 1 + 1e-12
    assert 0.2 < sizes.max() <= slack * bound


def test_a_person_without_a_complete_row_does_not_count() -> None:
    X, y, person = visits("gaussian", 3000, 1)
    gone = np.where(person < 600, np.nan, X[:, 1])
    schema = tt.data.Schema.of(a=(0, 1), b=(-3, 5), y=(-9, 9))
    found = tt.PrivateGLM.from_formula("y ~ a + b", schema, family="gaussian", epsilon=5.0, random_state=0)
    text = found.fit({"a": X[:, 0], "b": gone, "y": y}, person=person).summary().text()
    assert "Complete persons: about 2,4" in text or "Complete persons: about 2,3" in text


def test_a_refusal_counts_persons() -> None:
    X, y, person = visits("binomial", 20, 0)
    with pytest.raises(ParameterError, match=r"too small for 20 persons .* persons would be enough"):
        model("binomial", epsilon=0.1).fit(X, y, person=person)


def test_a_hazard_refuses_persons() -> None:
    found = tt.PrivateGLM("hazard", bounds=[(0, 1)], periods=[1, 2], epsilon=1.0)
    with pytest.raises(ParameterError, match="`person` must be left out for a hazard"):
        found.fit(np.zeros((9, 1)), np.ones((9, 2)), person=np.arange(9))
