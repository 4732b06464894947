"""All rows of a person count as one: replacing all of them moves a sum no further than replacing one row."""

import numpy as np
import pytest
from scipy import sparse

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError
from taciturn.objective.local import LocalObjective
from taciturn.objective.persons import persons_of
from taciturn.objective.problem import Problem


def unit_rows(rng, n, d):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def signs(rng, n):
    return np.where(rng.random(n) < 0.5, -1.0, 1.0)


def local(X, y, weights=None, count=None, C=2.0, loss=None):
    return LocalObjective(
        X,
        y,
        loss=loss or tt.Logistic(),
        C=C,
        regularization=0.1,
        sites=2,
        weights=weights,
        count=count,
    )


def test_weights_are_one_over_the_rows_of_a_person_in_the_whole_network():
    persons = persons_of([[7, 7, 8], [8, 9, 8]], most_sites=2)
    assert [w.tolist() for w in persons.weights] == [[0.5, 0.5, 1 / 3], [1 / 3, 1.0, 1 / 3]]
    assert (persons.counts.tolist(), persons.total) == ([2, 2], 3)


@pytest.mark.parametrize(
    ("ids", "bounds", "word"),
    [
        ([[1, 1], [1]], {}, "sites_per_person"),
        ([[1, 1], [2]], {"most_rows": 1}, "rows_per_person"),
        ([[1], ["a"]], {}, "numbers at every site"),
        ([[[1]], [2]], {}, "one id per row"),
        ([[0.5]], {}, "whole numbers or texts"),
        ([], {}, "one array"),
    ],
)
def test_invalid_person_ids_are_refused_and_never_quoted(ids, bounds, word):
    with pytest.raises(DataError, match=word):
        persons_of(ids, **bounds)


def test_a_weighted_objective_is_the_sum_that_its_name_says():
    rng = np.random.default_rng(0)
    X, y, F = unit_rows(rng, 12, 4), signs(rng, 12), rng.normal(size=(3, 4))
    weights = np.repeat([1.0, 0.5, 0.5, 1 / 3], 3)
    for matrix in (X, sparse.csr_array(X)):
        objective = local(matrix, y, weights, count=9)
        value = 2.0 / 9 * np.log1p(np.exp(-y * (F @ X.T))) @ weights + 0.05 * 0.5 * np.sum(F**2, axis=1)
        np.testing.assert_allclose(objective.value(F), value, rtol=1e-12)
        step = 1e-6
        slope = [
            (objective.value(F + step * e) - objective.value(F - step * e)) / (2 * step) for e in np.eye(4)
        ]
        np.testing.assert_allclose(objective.gradient(F), np.stack(slope, axis=1), atol=1e-8)
        assert (objective.samples, objective.rows) == (9, 12)
        np.testing.assert_allclose(np.sort(objective.row_weights()), np.sort(weights), rtol=1e-14)
        loss, accuracy = objective.metrics(F)
        right = (np.sign(y * (F @ X.T)) + 1) / 2 @ weights / weights.sum()
        np.testing.assert_allclose(accuracy, right, rtol=1e-12)
        np.testing.assert_allclose(
            loss, np.log1p(np.exp(-y * (F @ X.T))) @ weights / weights.sum(), rtol=1e-12
        )


def test_rows_of_weight_one_count_as_without_weights():
    rng = np.random.default_rng(1)
    X, y, F = unit_rows(rng, 6, 3), signs(rng, 6), rng.normal(size=(2, 3))
    plain, weighted = local(X, y), local(X, y, np.ones(6), count=6)
    assert np.array_equal(plain.value(F), weighted.value(F))
    assert np.array_equal(plain.gradient(F), weighted.gradient(F))


def test_replacing_all_rows_of_a_person_moves_the_gradient_no_further_than_one_row_could():
    """The bound 2 C / B is that of one row; without weights seven rows exceed it by far."""
    rng, B, C = np.random.default_rng(2), 5, 2.0
    ids = np.array([0] * 7 + [1, 2, 2, 3, 4])
    weights, F = persons_of([ids]).weights[0], 3 * rng.normal(size=(4, 3))
    most, unweighted = 0.0, 0.0
    for _ in range(200):
        X, y = unit_rows(rng, 12, 3), signs(rng, 12)
        other, label = X.copy(), y.copy()
        aim = F[0] / np.linalg.norm(F[0])
        X[:7], y[:7] = aim + 0.1 * rng.normal(size=(7, 3)), -1.0  # misclassified all alike, then the opposite
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        other[7:], other[:7], label[:7] = X[7:], -X[:7], -1.0
        moved = local(X, y, weights, B).gradient(F) - local(other, label, weights, B).gradient(F)
        most = max(most, float(np.linalg.norm(moved, axis=1).max()))
        plain = local(X, y).gradient(F) - local(other, label).gradient(F)
        unweighted = max(unweighted, float(np.linalg.norm(plain, axis=1).max()) * 12 / B)
    assert 0.4 * 2 * C / B < most <= 2 * C / B
    assert unweighted > 2 * C / B


def test_replacing_all_rows_of_a_person_moves_the_minimiser_no_further_than_one_row_could():
    """Section 5: D/a = 2 s1 C / (B m), here for the smooth hinge where slopes are 1."""
    rng, B, C, d = np.random.default_rng(3), 4, 2.0, 3
    ids = np.array([0] * 6 + [1, 2, 3])
    weights = persons_of([ids]).weights[0]
    X, y = unit_rows(rng, 9, d), signs(rng, 9)
    other = X.copy()
    X[:6], y[:6] = np.eye(d)[0], 1.0
    other[:6] = -np.eye(d)[0]

    def minimiser(rows):
        problem = Problem(
            [(rows, y), (np.zeros((1, d)), [1.0])],
            loss=tt.SmoothHinge(),
            C=1.0,
            regularization=80.0,
            persons=[ids, [9]],
        )
        assert problem.site(0).samples == B
        return Problem([(rows, y)], loss=tt.SmoothHinge(), C=C, regularization=40.0, persons=[ids]).optimum()

    moved = np.linalg.norm(minimiser(X) - minimiser(other))
    assert 0.8 * 2 * C / (B * 40.0) < moved <= 2 * C / (B * 40.0) * (1 + 1e-9)
    assert weights[0] == pytest.approx(1 / 6)


def test_weights_come_with_a_count_and_stay_within_one():
    X, y = np.eye(3), np.ones(3)
    with pytest.raises(ParameterError, match="together"):
        local(X, y, np.ones(3))
    for odd in (np.full(3, 1.5), np.full(3, -0.1), np.zeros(3), np.ones(2)):
        with pytest.raises(DataError, match="weights"):
            local(X, y, odd, count=3)
    with pytest.raises(DataError, match="arrays of ids, one per site"):
        Problem([(X, y), (X, y)], C=1.0, regularization=0.1, persons=[[1, 2, 3]])


@pytest.mark.parametrize("ids", [[1, 1.0], [b"ann", "ann"], ["ann", None]])
def test_ids_of_several_types_could_split_a_person_and_are_refused(ids):
    with pytest.raises(DataError, match=r"`persons` of site 1 must be ids of one type"):
        persons_of([["bob"], np.array(ids, dtype=object)])


def test_the_certificate_of_a_run_over_persons_states_the_unit():
    rng = np.random.default_rng(4)
    ids = [np.repeat(np.arange(20), 3), np.repeat(np.arange(20, 40), 3)]
    sites = [(unit_rows(rng, 60, 3), signs(rng, 60)) for _ in range(2)]
    noise = tt.GaussianNoise(std=2.0)
    method = tt.PenaltyPerturbation(penalty=1.0, dual_step=1.0, noise=noise)
    settings = {"rounds": 3, "seed": 0}
    by_person = Problem(sites, C=5.0, regularization=0.1, persons=ids, rows_per_person=3)
    certificate = tt.simulate(by_person, "complete", method, **settings).certificate(1e-5)
    assert (certificate.run.unit, certificate.run.persons) == ("person", 40)
    assert certificate.sites[0].samples == 20
    assert "all records of the target person" in certificate.statement()
    by_row = tt.simulate(Problem(sites, C=5.0, regularization=0.1), "complete", method, **settings)
    assert certificate.epsilon > 2 * by_row.certificate(1e-5).epsilon  # a third of the units, three times D
    assert "protects one person" not in by_row.certificate(1e-5).statement()
