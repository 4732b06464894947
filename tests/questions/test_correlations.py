"""Correlations from one noisy sum of outer products: near the truth, and within intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError

ROOT = np.array([[0.3, 0, 0], [0.15, 0.25, 0], [-0.1, 0.1, 0.2]])
COVARIANCE = ROOT @ ROOT.T
SD = np.sqrt(np.diagonal(COVARIANCE))
RANGES = {"a": (-1.0, 1.0), "b": (-1.0, 1.0), "c": (-1.0, 1.0)}


def rows(n, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 3)) @ ROOT.T
    return dict(zip("abc", np.clip(X, -1, 1).T, strict=True))


def asked(table, **options):
    return tt.private_correlations(table, RANGES, **({"colluding": 1, "random_state": 0} | options))


def test_with_little_noise_correlations_match_numpy():
    table = rows(5000)
    found = asked(table, epsilon=50)
    truth = np.corrcoef(np.stack(list(table.values())))
    assert found["a", "b"].value == pytest.approx(truth[0, 1], abs=0.01)
    assert found["c", "a"].value == pytest.approx(truth[0, 2], abs=0.01)
    assert found.means["b"].value == pytest.approx(np.mean(table["b"]), abs=2e-3)
    np.testing.assert_allclose(found.covariance, np.cov(np.stack(list(table.values()))), atol=3e-3)
    values = np.linalg.eigvalsh(truth)[::-1] / 3
    np.testing.assert_allclose([e.value for e in found.variances], values, atol=0.01)


@pytest.mark.parametrize(("n", "epsilon"), [(3000, 1.0), (1500, 50.0)])
def test_intervals_reach_their_stated_coverage(n, epsilon):
    truth = COVARIANCE / np.outer(SD, SD)
    shares = np.linalg.eigvalsh(truth)[::-1] / 3
    held = np.zeros(7, dtype=int)
    for seed in range(40):
        found = asked(rows(n, seed + 900), epsilon=epsilon, level=0.9, random_state=seed)
        pairs = [
            (found.means["a"], 0.0),
            (found.sds["b"], SD[1]),
            (found["a", "b"], truth[0, 1]),
            (found["a", "c"], truth[0, 2]),
            *zip(found.variances, shares, strict=True),
        ]
        held += [e.low <= value <= e.high for e, value in pairs]
    assert (held >= 29).all()  # binomial(40, 0.9) is above 28 but once in a thousand


def test_one_unit_moves_the_sum_by_no_more_than_is_charged():
    """The same seed draws the same noise; the farthest rows are corners of the cube."""
    table = rows(200)
    first, second = asked(table, epsilon=1.0, large_delta=True), None
    for corner in ([1, 1, 1], [1, -1, 1], [-1, -1, -1]):
        changed = {
            name: np.concatenate([[c], table[name][1:]]) for name, c in zip("abc", corner, strict=True)
        }
        second = asked(changed, epsilon=1.0, large_delta=True)
        run = first.certificate.run
        moved = moments(second) - moments(first)
        assert np.linalg.norm(moved) <= run.sums[0].sensitivity * 4 * (1 + 1e-6)
    assert run.sums[0].sensitivity == pytest.approx(np.sqrt(2) / 200)


def moments(found):
    """Second moments of (1, x) in one vector whose norm is that of the sum; from what was found, exactly."""
    mean = np.array([e.value for e in found.means.values()])
    second = found.covariance + np.outer(mean, mean)
    return np.concatenate(
        [np.sqrt(2) * mean, np.diagonal(second), np.sqrt(2) * second[np.triu_indices(3, 1)]]
    )


def test_invalid_question_is_refused_by_name():
    with pytest.raises(ParameterError, match="`columns` must name two or more"):
        tt.private_correlations({"a": np.zeros(50)}, {"a": (0.0, 1.0)}, epsilon=1.0, large_delta=True)


def test_correlations_have_a_repr_and_a_table():
    found = asked(rows(500), epsilon=2.0)
    assert found.plot() is not None and "correlation" in found.text() and "component 1" in found.csv()
