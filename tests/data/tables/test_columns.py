from __future__ import annotations

import datetime
import decimal
import fractions
import math
from typing import Any

import numpy as np
import pytest

from taciturn.data import Category, Number
from taciturn.data.tables.columns import MISSING, OTHER, parse_column

AGE, SIZE = Number("age", 0, 100), Category("size", ("1", "2", "big"))


@pytest.mark.parametrize(
    "cell, number",
    [
        (3, 3.0),
        (" 3.5 ", 3.5),
        (b"4", 4.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.int8(7), 7.0),
        (decimal.Decimal("1.25"), 1.25),
        (fractions.Fraction(1, 4), 0.25),
    ],
)
def test_numbers_are_read(cell: Any, number: float) -> None:
    assert parse_column(AGE, [cell]).tolist() == [number]


NO_NUMBERS: list[Any] = [
    None,
    "",
    "?",
    "nan",
    "inf",
    "-inf",
    "four",
    float("nan"),
    float("inf"),
    10**400,
    -(10**400),
]
NO_NUMBERS += [1 + 2j, [], [1.0], {}, object(), datetime.date(2020, 1, 1), np.datetime64("2020-01-01")]
NO_NUMBERS += [np.array([1.0]), decimal.Decimal("sNaN"), fractions.Fraction(10**400), "9" * 5000, b"\xff"]

PLACED: list[tuple[Any, int]] = [
    ("big", 2),
    (" big ", 2),
    (b"big", 2),
    (1, 0),
    (2.0, 1),
    (np.int64(2), 1),
    ("2", 1),
    (np.str_("2"), 1),
]
PLACED += [(cell, OTHER) for cell in ("small", 3, 2.5, "Big", True, b"\xff")]
PLACED += [(cell, MISSING) for cell in (None, "", "?", "NA", math.nan, math.inf, 10**5000, [], object(), 1j)]


@pytest.mark.parametrize("cell", NO_NUMBERS, ids=lambda cell: type(cell).__name__)
def test_what_is_no_number_is_missing(cell: Any) -> None:
    assert np.isnan(parse_column(AGE, [cell])).all()


@pytest.mark.parametrize("cell, place", PLACED, ids=lambda cell: type(cell).__name__)
def test_categories_are_placed(cell: Any, place: int) -> None:
    assert parse_column(SIZE, [cell]).tolist() == [place]


def test_a_declared_blank_is_a_category() -> None:
    assert parse_column(Category("answer", ("yes", "?")), ["?", "yes", "", "no"]).tolist() == [1, 0, -2, -1]


@pytest.mark.parametrize("kind", ["int64", "float64", "float32", "uint8", "bool"])
def test_arrays_of_numbers_agree_with_lists(kind: str) -> None:
    values = np.array([0, 1, 1, 2, 0], dtype=kind)
    for field in (AGE, SIZE):
        np.testing.assert_array_equal(parse_column(field, values), parse_column(field, values.tolist()))


def test_masked_and_long_numbers() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    np.testing.assert_array_equal(parse_column(AGE, masked), [1.0, np.nan])
    np.testing.assert_array_equal(parse_column(SIZE, masked), [0, MISSING])
    assert np.isfinite(parse_column(AGE, np.array([1, 2], dtype=np.longdouble))).all()
