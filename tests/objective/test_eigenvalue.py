"""The upper bound on lambda_max(X'X), by every way of computing it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from taciturn.objective import local
from taciturn.objective.local import largest_eigenvalue


@pytest.mark.parametrize("small", [0, 400])
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("shape", [(60, 20), (20, 60)])
def test_bound_is_at_least_the_largest_eigenvalue(
    shape: tuple[int, int], csr: bool, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_SMALL", small)
    X = np.random.default_rng(0).normal(size=shape)
    exact = np.linalg.norm(X, 2) ** 2
    found = largest_eigenvalue(sparse.csr_array(X) if csr else X)
    assert exact <= found <= exact * (1 + 1e-8)
    assert largest_eigenvalue(sparse.csr_array(X) if csr else X) == found


def test_zero_rows_have_eigenvalue_zero() -> None:
    assert largest_eigenvalue(np.zeros((3, 2))) == 0.0
