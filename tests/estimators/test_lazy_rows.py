"""A fit with a feature map expands rows a few at a time: the same bits, and little memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import taciturn as tt
from taciturn.core.types import LazyRows
from taciturn.data.features import mapped_rows

ROWS = 12_000
RANGES = {k: (0, 1) for k in range(8)}
SETTINGS: dict[str, Any] = {"epsilon": 1.0, "sites": 3, "classes": [False, True], "random_state": 0}


@pytest.fixture(autouse=True)
def _none_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every expansion counts as too large to be held."""
    monkeypatch.setattr(mapped_rows, "HELD", 0)


def _table(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (rows, 8))
    return X, X[:, 0] + X[:, 1] ** 2 + rng.normal(0.0, 0.3, rows) > 0.9


def _map(**options: Any) -> tt.data.FeatureMap:
    return tt.data.FeatureMap(ranges=RANGES, curves=9, surfaces=30, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"colluding": 1},
        {"colluding": 1, "class_weight": {False: 1.0, True: 0.3}},
        {"method": "penalty", "rounds": 3, "whiten": False},
        {"method": "penalty", "whiten": True, "max_rounds": 6},
    ],
    ids=["descent", "weighted", "penalty", "whitened penalty"],
)
def test_lazy_rows_give_the_same_bits_as_an_array(options: dict[str, Any]) -> None:
    X, y = _table()
    X[3, 2] = np.nan
    whole = tt.PrivateLogisticRegression(**SETTINGS, **options).fit(_map().transform(X), y)
    lazy = make_pipeline(_map(lazy=True), tt.PrivateLogisticRegression(**SETTINGS, **options)).fit(X, y)
    assert lazy[-1].coef_.tobytes() == whole.coef_.tobytes()
    assert np.allclose(lazy.predict_proba(X[:99]), whole.predict_proba(_map().transform(X[:99])), atol=1e-12)


def test_a_regressor_and_several_classes_take_lazy_rows() -> None:
    X, _ = _table()
    target = 3.0 * X[:, 0] + X[:, 1]
    for model, y in (
        (tt.PrivateHuberRegressor(sites=3, colluding=1, random_state=0), target),
        (tt.PrivateLogisticRegression(sites=3, colluding=1, random_state=0), np.floor(target)),
    ):
        whole = model.fit(_map().transform(X), y).coef_
        assert model.fit(_map(lazy=True).transform(X), y).coef_.tobytes() == whole.tobytes()


def test_mostly_empty_lazy_rows_are_summed_as_sparse_ones() -> None:
    X, y = _table()
    table = {"a": X[:, 0], "b": np.floor(X[:, 1] * 60).astype(int).astype(str)}
    encoder = tt.data.BoundedEncoder({"a": (0, 1), "b": [str(k) for k in range(60)]}, curves=9)
    clf = tt.PrivateLogisticRegression(**SETTINGS, colluding=1)
    whole = clf.fit(encoder.transform(table), y).coef_
    assert clf.fit(encoder.lazy_rows(table), y).coef_.tobytes() == whole.tobytes()


def test_lazy_rows_of_another_number_are_refused() -> None:
    X, y = _table(3000)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        tt.PrivateLogisticRegression(**SETTINGS).fit(_map(lazy=True).transform(X), y[:-1])


def _peak(fit: Any) -> int:
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_mapped_fit_takes_little_memory_beside_the_table() -> None:
    """At most 1.3 times the table and 16 MB for blocks; the expansion is 28 MB, and a fit would copy it."""
    rows = 30_000
    X, y = _table(rows)
    few = tt.PrivateLogisticRegression(**SETTINGS, colluding=1)
    few.fit(_map(lazy=True).transform(X[:6000]), y[:6000])  # compiles
    mapped = _map(lazy=True).transform(X)
    assert isinstance(mapped, LazyRows) and 8 * mapped.size > 1.3 * X.nbytes + 20e6
    assert _peak(lambda: few.fit(mapped, y)) < 1.3 * X.nbytes + 16e6


@pytest.mark.slow
def test_an_additive_model_takes_little_memory_beside_the_table() -> None:
    rows = 40_000
    X, y = _table(rows)
    table = {f"x{k}": X[:, k].copy() for k in range(8)}
    schema = {name: (0, 1) for name in table}
    clf = tt.PrivateAdditiveClassifier(schema=schema, curves=9, colluding=1, **SETTINGS)
    clf.fit({name: column[:6000] for name, column in table.items()}, y[:6000])
    assert _peak(lambda: clf.fit(table, y)) < 1.3 * X.nbytes + 16e6
    assert clf.predict(table).shape == (rows,)
