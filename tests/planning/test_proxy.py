"""Proxy rows: of the right shape, repeatable, and made from public facts alone."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn import Logistic
from taciturn.data.tables.column_types import Category, Number
from taciturn.data.tables.schema import Schema
from taciturn.planning.proxy import generate_proxy, rows_per_site


@pytest.mark.parametrize("d", [1, 2, 7, 105, 700])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_rows_have_norm_at_most_one_and_labels_that_fit(d: int, kind: str) -> None:
    proxy = generate_proxy(d, 200, kind, seed=0)
    assert proxy.X.shape == (200, d)
    assert np.linalg.norm(proxy.X, axis=1).max() <= 1
    if kind == "classification":
        assert set(np.unique(proxy.y)) <= {-1.0, 1.0}
    again, other = generate_proxy(d, 200, kind, seed=0), generate_proxy(d, 200, kind, seed=1)
    assert np.array_equal(again.X, proxy.X) and np.array_equal(again.y, proxy.y)
    assert not np.array_equal(other.y, proxy.y)


def test_a_schema_gives_its_columns() -> None:
    schema = Schema((Category("a", ("x", "y", "z")), Number("b", 0, 1)))
    X = generate_proxy(5, 300, "classification", schema=schema).X
    assert np.all((X[:, :3] > 0).sum(axis=1) == 1)
    assert np.all(X[:, 3] < X[:, 4])  # a number below the intercept


def test_the_spectrum_is_that_of_the_curvature() -> None:
    proxy = generate_proxy(8, 500, "classification")
    h, signal = proxy.spectrum(Logistic())
    p = 1 / (1 + np.exp(-proxy.X @ proxy.truth))
    H = (proxy.X * (p * (1 - p))[:, None]).T @ proxy.X / 500
    assert h == pytest.approx(np.linalg.eigvalsh(H), abs=1e-12)
    assert signal.sum() == pytest.approx(proxy.truth @ proxy.truth)
    wide = generate_proxy(900, 300, "classification")
    h, signal = wide.spectrum(Logistic())
    assert len(h) == 300
    z = wide.X @ wide.truth
    p = 1 / (1 + np.exp(-z))
    assert h @ signal == pytest.approx(np.mean(p * (1 - p) * z**2), rel=1e-6)


def test_proxy_rows_per_site_are_limited() -> None:
    assert rows_per_site(np.array([10, 10**6]), 100).tolist() == [10, 10_000]
    assert rows_per_site(np.array([10**6] * 4), 10**6).tolist() == [100] * 4
