"""Blocks are views that cover every row once; results do not depend on how blocks were made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from taciturn.objective import blocks
from taciturn.objective.blocks import WeightedRows, row_blocks
from taciturn.objective.rows import signed_rows

X = np.random.default_rng(0).normal(size=(5000, 7)) * (np.random.default_rng(1).random((5000, 7)) < 0.5)


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("repeats", [1, 10, 500])
def test_they_cover_every_row_once_without_a_copy(repeats: int, csr: bool, kind: str) -> None:
    rows = signed_rows(sparse.csr_array(X) if csr else X, np.ones(5000), kind, site="site 0")
    cut = row_blocks((WeightedRows(rows, 0.5),), repeats)
    assert sum(block.Z.shape[0] for block in cut) == 5000
    assert max(block.Z.shape[0] for block in cut) <= 16 * blocks._MOST
    F = np.random.default_rng(2).normal(size=(7, repeats))
    z = np.concatenate([block.margins(F) for block in cut])
    assert np.allclose(z, X @ F if kind == "classification" else 1.0 - X @ F)
    for block in cut:
        whole = rows.Z.data if csr else rows.Z
        assert np.shares_memory(block.Z.data if csr else block.Z, whole)
        assert np.shares_memory(block.ZT.data if csr else block.ZT, whole)


@pytest.mark.parametrize("csr", [False, True])
def test_their_grams_add_up(csr: bool) -> None:
    rows = signed_rows(sparse.csr_array(X) if csr else X, np.ones(5000), "classification", site="site 0")
    cut, w = row_blocks((WeightedRows(rows, 1.0),), 10), np.random.default_rng(3).random(5000)
    ends = np.cumsum([block.Z.shape[0] for block in cut])[:-1]
    gram = X.T @ (w[:, None] * X)
    assert sum(b.gram(v) for b, v in zip(cut, np.split(w, ends), strict=True)) == pytest.approx(gram)
    squares = sum(b.squares(v) for b, v in zip(cut, np.split(w, ends), strict=True))
    assert squares == pytest.approx(np.diag(gram))
