"""UnitBallScaling puts every row inside the unit ball, and the model of z is a model of x."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from taciturn.data.tables.clipping import row_norms
from taciturn.data.tables.unit_ball import UnitBallScaling

ANY = st.floats(allow_nan=False, allow_infinity=False)
TABLES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=ANY)


@settings(max_examples=200, deadline=None)
@given(TABLES, st.floats(1e-100, 1e100), st.booleans(), st.floats(1e-3, 1e3))
def test_every_row_ends_inside_the_unit_ball(X, bound, intercept, c):
    ball = UnitBallScaling(bound, intercept, c)
    Z = ball.rows(X)
    assert np.isfinite(Z).all() and Z.shape == (len(X), X.shape[1] + intercept)
    assert max(np.linalg.norm(row) for row in Z) <= 1.0
    assert np.array_equal(ball.rows(sparse.csr_array(X)).toarray(), Z)


def test_a_short_row_is_only_scaled_and_a_long_one_keeps_its_direction():
    Z = UnitBallScaling(2.0, intercept=True, c=0.75).rows(np.array([[1.0, 0.0], [30.0, 40.0]]))
    assert Z == pytest.approx(np.array([[0.5, 0.0, 0.75], [0.6, 0.8, 0.75]]) / 1.25)


def test_the_model_of_z_is_a_model_of_x():
    rng = np.random.default_rng(0)
    X, f = rng.uniform(-1, 1, (6, 3)), rng.standard_normal((2, 4))
    ball = UnitBallScaling(5.0, intercept=True, c=0.3)
    coef, intercept = ball.model(f)
    assert ball.rows(X) @ f.T == pytest.approx(X @ coef.T + intercept)
    coef, intercept = UnitBallScaling(5.0, intercept=False).model(f[:, :3])
    assert UnitBallScaling(5.0, intercept=False).rows(X) @ f[:, :3].T == pytest.approx(X @ coef.T)
    assert not intercept.any()


def test_dropped_row_is_all_zeros_including_its_constant():
    keep = np.array([True, False])
    for X in (np.ones((2, 2)), sparse.csr_array(np.ones((2, 2)))):
        Z = UnitBallScaling(1.0, intercept=True).rows(X, keep)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        assert Z[0].all() and not Z[1].any()


@pytest.mark.parametrize("size", [0.9, 1e308, 1.7e308])
def test_duplicate_sparse_entries_are_summed_before_clipping(size):
    X = sparse.csr_array((np.array([size, size, 0.1]), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert row_norms(X)[0] == min(2 * size, np.finfo(float).max)
    Z = UnitBallScaling(1.0, intercept=False).rows(X)
    assert Z.toarray() == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.1]]))
    assert X.nnz == 3  # the caller's own is left alone


def test_norms_of_huge_rows_do_not_overflow():
    assert row_norms(np.array([[3e200, 4e200], [0.0, 0.0]])) == pytest.approx([5e200, 0.0])
    assert np.isfinite(row_norms(np.full((1, 4), 1.7e308))).all()
