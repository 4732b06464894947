"""Descriptions from noisy counts: of every kind of column, with intervals that hold."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError
from taciturn.data import Boolean, Category, Date, Number, Schema

SCHEMA = Schema(
    (
        Number("age", 0, 100),
        Number("income", 0, 1e6, log=True),
        Category("ward", ("medical", "surgical")),
        Date("admitted", "2020-01-01", "2021-12-31"),
        Boolean("smoker"),
    )
)


def table(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    start = dt.date(2020, 1, 1).toordinal()
    return {
        "age": rng.normal(50, 12, n),
        "income": np.exp(rng.normal(10, 1, n)),
        "ward": rng.choice(["medical", "surgical", "none of them"], n, p=[0.5, 0.3, 0.2]).tolist(),
        "admitted": [dt.date.fromordinal(start + int(k)).isoformat() for k in rng.integers(0, 366, n)],
        "smoker": rng.choice(["yes", "no", ""], n, p=[0.2, 0.7, 0.1]).tolist(),
    }


def test_every_kind_of_column_is_described():
    rows = table()
    found = tt.private_description(rows, SCHEMA, epsilon=50, colluding=1, bins=100, random_state=0)
    age, income = np.clip(rows["age"], 0, 100), rows["income"]
    assert found["age"].mean.value == pytest.approx(age.mean(), abs=0.5)
    for q, e in found["age"].quantiles.items():
        assert e.value == pytest.approx(np.quantile(age, q), abs=1) and e.low <= e.value <= e.high
    assert found["income"].quantiles[0.5].value == pytest.approx(np.median(income), rel=0.1)
    assert found["ward"].shares["medical"].value == pytest.approx(0.5, abs=0.03)
    assert found["ward"].readable.value == pytest.approx(0.8, abs=0.03)
    assert found["smoker"].shares["yes"].value == pytest.approx(0.2, abs=0.03)
    assert "2020-07" in repr(found["admitted"]) or "2020-06" in repr(found["admitted"])
    assert found.certificate.run.dimension == 5 and [c.name for c in found] == list(SCHEMA.names)
    assert "Private description" in found._repr_html_() and "5 columns" in repr(found)


def test_intervals_hold_where_noise_matters():
    held = np.zeros(3, dtype=int)
    for seed in range(60):
        values = np.random.default_rng(seed).uniform(20, 60, 800)
        found = tt.private_description(
            {"age": values}, {"age": (0, 100)}, epsilon=0.5, level=0.9, random_state=seed
        )["age"]
        middle, share = found.quantiles[0.5], found.shares["20 to 25"]
        held += [
            found.mean.low <= 40 <= found.mean.high,
            middle.low <= 40 <= middle.high,
            share.low <= 1 / 8 <= share.high,
        ]
    assert (held >= 46).all()  # binomial(60, 0.9) is above 45 but once in a thousand


def test_values_outside_the_range_are_seen_at_its_end_and_gaps_are_counted():
    values = [150.0] * 300 + [None] * 200 + [50.0] * 500
    wishes = {"epsilon": 50, "colluding": 1, "random_state": 0}
    found = tt.private_description({"age": values}, {"age": (0, 100)}, **wishes)["age"]
    assert found.shares["95 to 100"].value == pytest.approx(0.3, abs=5e-3)
    assert found.readable.value == pytest.approx(0.8, abs=5e-3)


def test_empty_column_has_the_whole_range_as_interval():
    found = tt.private_description({"age": [None] * 500}, {"age": (0, 100)}, epsilon=1.0, random_state=0)
    assert (found["age"].mean.low, found["age"].mean.high) == (0, 100)


def test_more_columns_need_more_noise_and_no_cell_is_revealed():
    one = tt.private_description({"a": [1.0] * 100}, {"a": (0, 2)}, epsilon=1.0, random_state=0)
    names = [f"x{k}" for k in range(9)]
    nine = tt.private_description(
        dict.fromkeys(names, [1.0] * 100), dict.fromkeys(names, (0, 2)), epsilon=1.0, random_state=0
    )
    assert nine.released.sigma == pytest.approx(3 * one.released.sigma, rel=1e-4)
    with pytest.raises(ParameterError, match="`bins`"):
        tt.private_description({"a": [1.0]}, {"a": (0, 2)}, epsilon=1.0, bins=1)
    with pytest.raises(ParameterError, match="`bins` must be at most 10000; got 10001"):
        tt.private_description({"a": [1.0] * 100}, {"a": (0, 2)}, epsilon=1.0, bins=10_001)
    with pytest.raises(ParameterError, match="`by` must be"):
        tt.private_description({"a": [1.0] * 100}, {"a": (0, 2)}, epsilon=1.0, by=3)
    with pytest.raises(DataError):
        tt.private_description({"b": [1.0] * 100}, {"a": (0, 2)}, epsilon=1.0)


def test_the_short_form_of_a_schema_is_enough():
    rows = {"age": [50.0] * 500, "ward": ["medical"] * 500, "smoker": [True] * 500}
    short = {"age": (0, 100), "ward": ["medical", "surgical"], "smoker": bool}
    found = tt.private_description(rows, short, epsilon=5.0, random_state=0)
    assert found["ward"].shares["medical"].value > 0.9 < found["smoker"].shares["yes"].value
    with pytest.raises(DataError, match="`age` must be"):
        tt.private_description(rows, {"age": (0, 50, 100)}, epsilon=5.0)
