from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from taciturn.core.errors import ParameterError
from taciturn.data import deal, deal_by, deal_evenly, deal_unevenly
from taciturn.data.tables.dealing import Hands, assign_by, assign_evenly, assign_unevenly

seeds = st.integers(0, 2**32)


def table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that can be told apart: the row's number and its label."""
    y = np.where(np.arange(rows) % 3 == 0, 1.0, -1.0)
    return np.column_stack([np.arange(rows), y]).astype(float), y


def check_every_row_once(hands: Hands, rows: int) -> None:
    numbers = np.concatenate([X[:, 0] for X, _ in hands])
    assert sorted(numbers.astype(int).tolist()) == list(range(rows))
    for X, y in hands:
        np.testing.assert_array_equal(X[:, 1], y)
        assert len(y) >= 1


@given(rows=st.integers(1, 200), data=st.data(), seed=seeds)
def test_rows_are_dealt_evenly(rows: int, data: st.DataObject, seed: int) -> None:
    sites = data.draw(st.integers(1, rows))
    hands = deal_evenly(*table(rows), sites, seed=seed)
    check_every_row_once(hands, rows)
    sizes = [len(y) for _, y in hands]
    assert len(sizes) == sites
    assert max(sizes) - min(sizes) <= 1


@given(rows=st.integers(1, 200), data=st.data(), seed=seeds, concentration=st.floats(1e-3, 1e3))
def test_rows_are_dealt_unevenly(rows: int, data: st.DataObject, seed: int, concentration: float) -> None:
    sites = data.draw(st.integers(1, rows))
    least = data.draw(st.integers(1, rows // sites))
    hands = deal_unevenly(*table(rows), sites, seed=seed, concentration=concentration, least=least)
    check_every_row_once(hands, rows)
    assert len(hands) == sites
    assert min(len(y) for _, y in hands) >= least


@given(values=st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=60), data=st.data())
def test_rows_are_dealt_by_value(values: list[str], data: st.DataObject) -> None:
    sites = data.draw(st.one_of(st.none(), st.integers(1, len(set(values)))))
    hands = deal_by(*table(len(values)), values, sites)
    check_every_row_once(hands, len(values))
    assert len(hands) == (len(set(values)) if sites is None else sites)
    held = [{values[int(k)] for k in X[:, 0]} for X, _ in hands]
    assert sum(map(len, held)) == len(set(values))  # no value at two sites


def test_by_value_balances_the_sites() -> None:
    values = ["a"] * 6 + ["b"] * 4 + ["c"] * 3 + ["d"]
    np.testing.assert_array_equal(np.bincount(assign_by(values, 2)), [7, 7])


def test_same_seed_deals_the_same_rows() -> None:
    for assign in (assign_evenly, assign_unevenly):
        np.testing.assert_array_equal(assign(1000, 7, seed=3), assign(1000, 7, seed=3))
        assert (assign(1000, 7, seed=3) != assign(1000, 7, seed=4)).any()


def test_concentration_says_how_uneven() -> None:
    spread = [np.bincount(assign_unevenly(10_000, 20, seed=1, concentration=c)).std() for c in (0.1, 1, 1e4)]
    assert spread[0] > spread[1] > 10 * spread[2]


def test_dealt_rows_are_copies_in_their_original_order() -> None:
    X, y = table(50)
    before = X.copy(), y.copy()
    for X_i, y_i in deal_evenly(X, y, 4, seed=0):
        assert (np.diff(X_i[:, 0]) > 0).all()
        X_i[:], y_i[:] = -7, -7
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_sparse_rows_stay_sparse() -> None:
    X, y = table(40)
    thin, dense = deal_evenly(sparse.csr_array(X), y, 3, seed=0), deal_evenly(X, y, 3, seed=0)
    for (S, _), (D, _) in zip(thin, dense, strict=True):
        assert S.format == "csr"
        np.testing.assert_array_equal(S.toarray(), D)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda X, y: deal_evenly(X, y, 11, seed=0), "`sites` must be at most 10"),
        (lambda X, y: deal_evenly(X, y, 0, seed=0), "`sites` must be at least 1"),
        (lambda X, y: deal_unevenly(X, y, 3, seed=0, least=4), "`sites` must be at most 2"),
        (lambda X, y: deal_unevenly(X, y, 3, seed=0, concentration=0), "`concentration` must be above 0"),
        (lambda X, y: deal_by(X, y, ["a"] * 10, 2), "at most the number of distinct values, 1"),
        (lambda X, y: deal_by(X, y, ["a"] * 9), "for each of the 10 rows"),
        (lambda X, y: deal_by(X, y, []), "at least one row"),
        (lambda X, y: deal(X, y, [0.5] * 10), "a whole number of at least 0"),
        (lambda X, y: deal(X, y, [-1] * 10), "a whole number of at least 0"),
        (lambda X, y: deal(X, y, [0] * 9 + [2]), "site 1 has none"),
        (lambda X, y: deal(X, y, [0] * 9 + [2], sites=2), "below `sites` = 2; got 2"),
        (lambda X, y: deal(X, y, [0] * 5 + [1] * 5, sites=3), "site 2 has none"),
        (lambda X, y: deal(X, y[:9], [0] * 10), "`y` must have 10 entries, one per row"),
    ],
)
def test_wrong_parameters_get_one_clear_line(call: Callable[..., Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says) as error:
        call(*table(10))
    assert "\n" not in str(error.value)
