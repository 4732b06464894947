"""Problem: its optimum is the pooled one, bad input gives one clear error, and no data is shown."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from objective.test_checking import Elastic
from taciturn.core.errors import DataError, NotConverged, ParameterError
from taciturn.objective import LogCosh, Logistic, Problem, SmoothHinge

SECRET = 0.123456789


def make_sites(n: int = 3, rows: int = 40, d: int = 4, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    sites = []
    for i in range(n):
        X = rng.normal(size=(rows + 7 * i, d))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        sites.append((X, np.where(rng.random(len(X)) < 0.5, -1, 1)))
    return sites


def make_problem(**changes: object) -> Problem:
    return Problem(**{"sites": make_sites(), "C": 5.0, "regularization": 0.1, **changes})


def test_its_facts() -> None:
    problem = make_problem()
    assert (problem.n, problem.dimension, problem.samples.tolist()) == (3, 4, [40, 47, 54])
    assert (problem.C, problem.regularization) == (5.0, 0.1)
    assert isinstance(problem.loss, Logistic)
    assert problem.largest_norm == pytest.approx(1.0)
    assert problem.site(1).samples == 47


def test_the_sum_of_the_sites_is_the_pooled_objective() -> None:
    problem = make_problem()
    F = np.random.default_rng(1).normal(size=(3, 4))
    together = sum(problem.site(i).value(F) for i in range(problem.n))
    assert problem.pooled().value(F) == pytest.approx(together)
    slopes = sum(problem.site(i).gradient(F) for i in range(problem.n))
    assert problem.pooled().gradient(F) == pytest.approx(slopes)


def test_the_optimum_agrees_with_scikit_learn() -> None:
    sites = make_sites()
    problem = Problem(sites, C=5.0, regularization=0.1)
    X, y = np.concatenate([X for X, _ in sites]), np.concatenate([y for _, y in sites])
    weights = np.concatenate([np.full(len(y), 5.0 / len(y)) for _, y in sites])
    other = LogisticRegression(
        C=1 / 0.1, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cholesky"
    )
    other.fit(X, y, sample_weight=weights)
    assert problem.optimum() == pytest.approx(other.coef_[0], abs=1e-8)


@pytest.mark.parametrize("loss", [Logistic(), SmoothHinge(0.1), LogCosh(0.2)], ids=repr)
def test_the_optimum_has_no_gradient(loss: object) -> None:
    problem = make_problem(loss=loss)
    assert np.linalg.norm(problem.pooled().gradient(problem.optimum()[None])) < 1e-11


def test_the_optimum_with_a_users_own_regulariser() -> None:
    problem = make_problem(regularizer=Elastic())
    assert np.linalg.norm(problem.pooled().gradient(problem.optimum()[None])) < 1e-11


def test_unreachable_optimum_is_an_error() -> None:
    with pytest.raises(NotConverged, match="`tol` = 1e-300"):
        make_problem(regularizer=Elastic()).optimum(tol=1e-300)


def test_unit_rows_are_required_on_demand() -> None:
    make_problem().require_unit_rows()
    sites = make_sites()
    sites[1] = (3 * sites[1][0], sites[1][1])
    problem = Problem(sites, C=5.0, regularization=0.1)
    with pytest.raises(DataError, match=r"norm at most 1 .* site 1\. .*np\.maximum"):
        problem.require_unit_rows()


def test_rows_divided_by_their_norm_count_as_unit_rows() -> None:
    X = np.random.default_rng(3).normal(size=(2000, 7))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Problem([(X, np.ones(2000))], C=1.0, regularization=0.1).require_unit_rows()


def test_later_changes_by_the_caller_have_no_effect() -> None:
    sites = make_sites()
    csr = sparse.csr_array(sites[0][0])
    problem = Problem([(csr, sites[0][1]), sites[1]], C=5.0, regularization=0.1)
    F = np.ones((1, 4))
    before = problem.pooled().value(F)
    sites[1][0][:] = 9.0
    csr.data[:] = 9.0
    csr.indices[:] = 0
    assert np.array_equal(problem.pooled().value(F), before)
    with pytest.raises(ValueError, match="read-only"):
        problem.site(1).parts[0].rows.Z[0, 0] = 1.0


def bad(**changes: object) -> dict[str, object]:
    return changes


def with_site(X: object, y: object) -> list[object]:
    return [make_sites()[0], (X, y)]


ones, X4 = np.ones(5), np.full((5, 4), SECRET)
BAD = {
    "C above B": (bad(C=41.0), r"`C` must not exceed the number of samples, 40 at site 0; got 41"),
    "C zero": (bad(C=0.0), "`C` must be above 0; got 0"),
    "C not a number": (bad(C="1"), "`C` must be a number; got str"),
    "C infinite": (bad(C=np.inf), "`C` must be finite"),
    "rho zero": (bad(regularization=0), "`regularization` must be above 0"),
    "rho negative": (bad(regularization=-1.0), "`regularization` must be above 0; got -1"),
    "rho NaN": (bad(regularization=np.nan), "`regularization` must be finite"),
    "no site": (bad(sites=[]), "`sites` must contain at least one"),
    "no pairs": (bad(sites=[1, 2]), "`sites` must be a list of pairs"),
    "empty site": (bad(sites=with_site(np.empty((0, 4)), np.empty(0))), "site 1 is empty"),
    "no features": (bad(sites=with_site(np.empty((5, 0)), ones)), "site 1 has no feature"),
    "other width": (bad(sites=with_site(np.ones((5, 3)), ones)), "site 0 has 4, site 1 has 3"),
    "NaN": (bad(sites=with_site(np.where(np.eye(5, 4), np.nan, SECRET), ones)), "`X` of site 1 contains NaN"),
    "inf": (bad(sites=with_site(np.full((5, 4), np.inf), ones)), "`X` of site 1 contains NaN or inf"),
    "sparse NaN": (bad(sites=with_site(sparse.csr_array(X4 * np.nan), ones)), "`X` of site 1 contains NaN"),
    "labels 0 and 1": (bad(sites=with_site(X4, np.arange(5) % 2)), "only -1 and \\+1; .*2 \\* y - 1"),
    "labels NaN": (bad(sites=with_site(X4, np.full(5, np.nan))), "`y` of site 1 contains NaN"),
    "labels as words": (bad(sites=with_site(X4, list("abcde"))), "`y` of site 1 must contain real numbers"),
    "booleans": (bad(sites=with_site(X4, ones == 1)), "must contain real numbers; got dtype bool"),
    "labels 2-D": (bad(sites=with_site(X4, ones[:, None])), r"`y` of site 1 must have shape \(5,\)"),
    "too few labels": (bad(sites=with_site(X4, ones[:4])), r"`y` of site 1 must have shape \(5,\)"),
    "1-D": (bad(sites=with_site(ones, ones)), r"must be 2-D, .* got 1-D; reshape"),
    "3-D": (bad(sites=with_site(np.ones((5, 2, 2)), ones)), "must be 2-D, .* got 3-D"),
    "sparse 1-D": (bad(sites=with_site(sparse.coo_array(ones), ones)), "must be 2-D"),
    "objects": (bad(sites=with_site(X4.astype(object), ones)), "`X` of site 1 must contain real numbers"),
    "complex": (bad(sites=with_site(X4 + 0j, ones)), "got dtype complex128"),
    "ragged": (bad(sites=with_site([[1.0], [1.0, 2.0]], ones)), "its rows differ"),
    "masked": (bad(sites=with_site(np.ma.masked_array(X4), ones)), "masked array"),
    "far too large": (bad(sites=with_site(X4 * 1e60, ones)), "rescale the features"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_clear_line_without_data(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        make_problem(**changes)
    text = str(caught.value)
    assert "\n" not in text
    assert "0.1234" not in text


@pytest.mark.parametrize("make", [sparse.coo_array, sparse.csc_matrix, sparse.lil_array, sparse.dok_array])
def test_every_sparse_format_becomes_csr(make: type) -> None:
    X, y = make_sites()[0]
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    dense, other = (Problem([(A, y)], C=5.0, regularization=0.1).site(0) for A in (X, make(X)))
    assert sparse.issparse(other.parts[0].rows.Z) and other.parts[0].rows.Z.format == "csr"
    F = np.ones((2, 4))
    assert other.gradient(F) == pytest.approx(dense.gradient(F))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16])
def test_other_number_types_are_accepted(dtype: type) -> None:
    X = (np.arange(20).reshape(5, 4) % 2).astype(dtype)
    problem = Problem([(X, np.ones(5, dtype=np.int8))], C=1.0, regularization=0.1)
    assert problem.site(0).parts[0].rows.Z.dtype == np.float64


def test_duplicate_sparse_entries_are_summed_without_touching_the_callers_matrix() -> None:
    parts = (np.array([1.0, 1.0]), np.array([0, 0]), np.array([0, 2]))
    X = sparse.csr_array(parts, shape=(1, 2))
    problem = Problem([(X, np.ones(1))], C=1.0, regularization=0.1)
    assert problem.largest_norm == 2.0
    assert X.nnz == 2


def test_what_is_shown_holds_no_data() -> None:
    problem = Problem([(np.full((5, 2), SECRET), ones)] * 2, C=1.0, regularization=0.1)
    for shown in (problem, problem.site(0), problem.site(0).parts[0].rows, problem.site(0).parts[0]):
        assert "0.123" not in repr(shown)
    assert repr(problem) == "Problem(2 sites, 10 samples, 2 features, Logistic(), C=1, regularization=0.1)"


@pytest.mark.parametrize(("beyond", "passes"), [(0.5e-12, True), (2e-12, False), (1e-9, False)])
def test_a_row_counts_as_unit_up_to_what_the_bounds_allow(beyond: float, passes: bool) -> None:
    """The accountant takes X = 1 + 4e-12 for a bound of 1: no row beyond that may pass."""
    sites = [(np.array([[1.0 + beyond, 0.0]]), np.array([1.0])), (np.array([[0.0, 1.0]]), np.array([1.0]))]
    problem = Problem(sites, C=1.0, regularization=0.1)
    if passes:
        problem.require_unit_rows()
    else:
        with pytest.raises(DataError, match="site 0"):
            problem.require_unit_rows()


@pytest.mark.parametrize(
    ("indices", "pointers"), [([0, 1, 900], [0, 2, 3]), ([0, 1, -5], [0, 2, 3]), ([0, 1, 0], [0, 3, 2])]
)
def test_sparse_rows_with_entries_outside_their_shape_are_refused(indices, pointers):
    """A product with such a matrix would read memory that does not belong to it."""
    X = sparse.csr_array((2, 2))
    X.data, X.indices, X.indptr = np.ones(3), np.array(indices), np.array(pointers)
    with pytest.raises(DataError, match="`X` of site 0 has row pointers or column indices outside its shape"):
        Problem([(X, [1, -1])], C=1.0, regularization=0.1)
