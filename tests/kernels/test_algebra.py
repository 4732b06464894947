"""Linear algebra with a fixed order of additions: correct, and summed from the left."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.kernels.algebra import eigenpairs, product, rebuild, total, transposed_product


@settings(max_examples=40, deadline=None)
@given(d=st.integers(1, 12), seed=st.integers(0, 2**32), kind=st.integers(0, 3))
def test_eigenpairs(d, seed, kind):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, d))
    A = (A + A.T, np.outer(A[0], A[0]), np.diag(np.rint(A[0])), 0 * A)[kind]
    levels, vectors = eigenpairs(A)
    size = 1 + np.abs(A).max()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(d), atol=1e-13)
    np.testing.assert_allclose(rebuild(levels, vectors), A, atol=1e-13 * size * d)
    np.testing.assert_allclose(np.sort(levels), np.linalg.eigvalsh(A), atol=1e-12 * size * d)


def test_products_and_sums():
    rng = np.random.default_rng(0)
    A, x, y = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=5)
    np.testing.assert_allclose(product(A, x), A @ x, rtol=1e-13)
    np.testing.assert_allclose(transposed_product(A, y), A.T @ y, rtol=1e-12)
    assert total(np.array([1e16, 1.0, -1e16])) == 0.0  # from the left, and not otherwise
