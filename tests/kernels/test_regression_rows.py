"""What a record adds to a regression: bounded for every row, and 0 on average at the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn.kernels import regression_rows as rows

RNG = np.random.default_rng(7)
D = 4
W = RNG.normal(0, 2, (D, D))
F = RNG.normal(0, 1, D)
KINDS = (rows.MOMENTS, rows.SCORE, rows.HESSIAN, rows.MEAT)
NUMBERS = {
    rows.BINOMIAL: np.array([3.0, 1.0, 1.0, 0.25]),
    rows.GAUSSIAN: np.array([3.0, 0.3, 1.0, 1.0]),
    rows.POISSON: np.array([30.0, 1.0, 50.0, rows.POISSON_W]),
    rows.HAZARD: np.array([3.0, 1.0, 1.0, 1.0]),
}


def some_rows(n: int, d: int) -> np.ndarray:
    Z = RNG.normal(size=(n, d))
    return Z / np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]


def terms(
    family: int,
    Z: np.ndarray,
    f: np.ndarray,
    kind: int,
    numbers: np.ndarray | None = None,
    link: str = "logit",
) -> np.ndarray:
    numbers = NUMBERS[family] if numbers is None else numbers
    if family == rows.HAZARD:
        return rows.hazard_rows(Z, W, f, np.append(numbers, [0.0, float(link == "cloglog")]), kind)
    return rows.regression_rows(
        Z, np.arange(len(Z) + 1), W, f, F, np.append(numbers, [0.0, 0.0]), family, kind
    )


def outcomes(family: int, n: int) -> np.ndarray:
    if family == rows.GAUSSIAN:
        return RNG.uniform(-1, 1, n)
    return RNG.integers(0, 2 if family == rows.BINOMIAL else 51, n).astype(float)


@pytest.mark.parametrize("family", [rows.BINOMIAL, rows.GAUSSIAN, rows.POISSON])
@pytest.mark.parametrize("kind", KINDS)
def test_no_record_adds_more_than_the_bound(family: int, kind: int) -> None:
    Z = np.column_stack([some_rows(500, D), outcomes(family, 500)])
    sizes = np.linalg.norm(terms(family, Z, F, kind), axis=1)
    side = math.sqrt(1 + rows.SIDES * rows.SIDE**2)
    # a Poisson residual may pass its reach by the mean that is subtracted; the framework clips that
    slack = 1.1 if family == rows.POISSON and kind == rows.SCORE else 1 + 1e-12
    assert sizes.max() <= slack * (side if kind == rows.SCORE else 1.0)
    assert sizes.max() > 0.3


@pytest.mark.parametrize("link", ["logit", "cloglog"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_person_adds_more_than_the_bound_to_a_hazard(kind: int, link: str) -> None:
    time, event = RNG.integers(1, 4, 500), RNG.integers(0, 2, 500)
    Z = np.column_stack([some_rows(500, 1), time, event]).astype(float)
    sizes = np.linalg.norm(terms(rows.HAZARD, Z, 3 * F, kind, link=link), axis=1)
    assert sizes.max() <= (math.sqrt(1 + rows.SIDES * rows.SIDE**2) if kind == rows.SCORE else 1.0) + 1e-12


@pytest.mark.parametrize("family", [rows.BINOMIAL, rows.GAUSSIAN, rows.POISSON, rows.HAZARD])
@pytest.mark.parametrize("kind", [rows.MOMENTS, rows.HESSIAN, rows.MEAT])
def test_matrices_have_no_negative_inner_products(family: int, kind: int) -> None:
    if family == rows.HAZARD:
        Z = np.column_stack([some_rows(40, 1), RNG.integers(1, 4, 40), RNG.integers(0, 2, 40)]).astype(float)
    else:
        Z = np.column_stack([some_rows(40, D), outcomes(family, 40)])
    found = terms(family, Z, F, kind)
    assert (found @ found.T).min() >= -1e-12


def mean_score(family: int, z: np.ndarray, truth: np.ndarray, f: np.ndarray) -> np.ndarray:
    """The mean of a record's score at f, its outcome drawn at `truth`; exactly, by all outcomes."""
    eta = float(z @ truth)
    if family == rows.BINOMIAL:
        p = 1 / (1 + math.exp(-eta))
        chances = np.array([1 - p, p])
    else:
        y = np.arange(200.0)
        chances = np.exp(y * eta - math.exp(eta) - np.array([math.lgamma(k + 1) for k in y]))
        chances = np.append(chances[:50], chances[50:].sum())  # counts above the largest are cut to it
    Z = np.column_stack([np.tile(z, (len(chances), 1)), np.arange(len(chances), dtype=float)])
    return np.asarray(chances @ terms(family, Z, f, rows.SCORE)[:, :D])


@pytest.mark.parametrize("family", [rows.BINOMIAL, rows.POISSON])
def test_score_is_zero_on_average_at_the_truth(family: int) -> None:
    for z in some_rows(20, D):
        assert np.abs(mean_score(family, z, F, F)).max() < 1e-9


@pytest.mark.parametrize("family", [rows.BINOMIAL, rows.POISSON])
def test_hessian_is_minus_the_slope_of_the_score(family: int) -> None:
    step, numbers = 1e-5, NUMBERS[family]
    inverse = np.linalg.inv(W.T)
    for z in some_rows(5, D):
        H = np.zeros((D, D))
        row = np.append(z, 0.0)[None]
        H[np.triu_indices(D)] = terms(family, row, F, rows.HESSIAN)[0] * numbers[3] * numbers[0]
        H = np.triu(H, 1) / math.sqrt(2) + np.triu(H, 1).T / math.sqrt(2) + np.diag(np.diag(H))
        slope = np.column_stack(
            [
                (mean_score(family, z, F, F + step * W[:, k]) - mean_score(family, z, F, F - step * W[:, k]))
                / (2 * step)
                for k in range(D)
            ]
        ) * math.sqrt(numbers[0])
        assert inverse.shape == (D, D)
        assert H == pytest.approx(-slope, rel=1e-4, abs=1e-7)


def test_hazard_score_is_zero_on_average_at_the_truth_however_short_the_bound() -> None:
    """A weight that depends on the outcome would shift the mean, taken here over all outcomes."""
    periods, numbers = D - 1, np.array([0.5, 1.0, 1.0, 1.0])
    for z in some_rows(10, 1):
        chance, at_risk, mean = 0.0, 1.0, np.zeros(D)
        for t in range(1, periods + 1):
            eta = (z[0] * F[0]) + F[t] / math.sqrt(2)
            p = 1 / (1 + math.exp(-eta))
            ends = [(1.0, at_risk * p)] + ([(0.0, at_risk * (1 - p))] if t == periods else [])
            for event, share in ends:
                row = np.array([[z[0], t, event]])
                mean += share * terms(rows.HAZARD, row, F, rows.SCORE, numbers)[0, :D]
                chance += share
            at_risk *= 1 - p
        assert chance == pytest.approx(1.0)
        assert np.abs(mean).max() < 1e-12


def test_poisson_moments_agree_with_a_long_sum() -> None:
    for mean in (0.01, 1.3, 40.0):
        y = np.arange(400.0)
        chances = np.exp(y * math.log(mean) - mean - np.array([math.lgamma(k + 1) for k in y]))
        cut = np.clip(y - mean, -2.0, 5.0)
        first, slope, variance = rows.poisson_moments(mean, -2.0, 5.0)
        assert first == pytest.approx(chances @ cut, abs=1e-12)
        assert slope == pytest.approx(chances @ (cut * (y - mean)))
        assert variance == pytest.approx(chances @ cut**2 - first**2)
