from __future__ import annotations

import datetime
import decimal
import fractions
import io
import math
from typing import Any

import numpy as np
import pytest

from taciturn.core.errors import DataError
from taciturn.data import Boolean, Category, Date, Number
from taciturn.data.tables.column_parsing import MISSING, OTHER, is_blank, parse_column

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
    "four",
    float("nan"),
]
NO_NUMBERS += [1 + 2j, [], [1.0], {}, object(), datetime.date(2020, 1, 1), np.datetime64("2020-01-01")]
NO_NUMBERS += [np.array([1.0]), decimal.Decimal("sNaN"), b"\xff"]

PLACED: list[tuple[Any, int]] = [
    ("big", 2),
    (" big ", 2),
    (b"big", 2),
    (1, 0),
    (2.0, 1),
    (np.int64(2), 1),
    ("2", 1),
    (np.str_("2"), 1),
    (decimal.Decimal("2.00"), 1),
]
PLACED += [(cell, OTHER) for cell in ("small", 3, 2.5, "Big", True, b"\xff")]
PLACED += [(cell, MISSING) for cell in (None, "", "?", "NA", math.nan, math.inf, 10**5000, [], object(), 1j)]


@pytest.mark.parametrize("cell", NO_NUMBERS, ids=lambda cell: type(cell).__name__)
def test_non_numeric_cell_is_missing(cell: Any) -> None:
    assert np.isnan(parse_column(AGE, [cell])).all()


@pytest.mark.parametrize("cell, place", PLACED, ids=lambda cell: type(cell).__name__)
def test_categories_map_to_their_columns(cell: Any, place: int) -> None:
    assert parse_column(SIZE, [cell]).tolist() == [place]


def test_every_cell_without_a_value_counts_as_blank() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    blanks = [None, math.nan, " ? ", pandas.NA, pandas.NaT, decimal.Decimal("sNaN"), np.datetime64("NaT")]
    assert [is_blank(cell) for cell in blanks] == [True] * len(blanks)
    others = ["x", 0, False, math.inf, 10**5000, datetime.date(1, 1, 1), decimal.Decimal(1), [], object()]
    assert not any(is_blank(cell) for cell in others)


def test_a_declared_blank_is_a_category() -> None:
    assert parse_column(Category("answer", ("yes", "?")), ["?", "yes", "", "no"]).tolist() == [1, 0, -2, -1]


@pytest.mark.parametrize("kind", ["int64", "float64", "float32", "uint8"])
def test_arrays_of_numbers_agree_with_lists(kind: str) -> None:
    values = np.array([0, 1, 1, 2, 0], dtype=kind)
    for field in (AGE, SIZE):
        np.testing.assert_array_equal(parse_column(field, values), parse_column(field, values.tolist()))


@pytest.mark.parametrize(
    "cell", ["inf", float("inf"), 10**400, fractions.Fraction(10**400), "9" * 5000, 1e308]
)
def test_overflowing_number_is_clipped_to_the_nearer_end_of_the_range(cell: Any) -> None:
    assert parse_column(AGE, [cell]).tolist() == [100.0]
    if not isinstance(cell, str):
        assert parse_column(AGE, [-cell]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array(["2020-01-01"], dtype="datetime64[ns]"), "declare a Date"),
        (np.array([3], dtype="timedelta64[D]"), "give them as numbers"),
        (np.array([True, False]), "declare a Boolean"),
    ],
)
def test_a_column_of_another_type_than_declared_is_refused_before_it_is_read(values: Any, words: str) -> None:
    with pytest.raises(DataError, match=f"`age` is declared as Number, but its column contains .*{words}"):
        parse_column(AGE, values)


def test_dates_in_every_form_are_days() -> None:
    field = Date("born", "2000-01-01", "2000-12-31")
    day = datetime.date(2000, 3, 1)
    cells = [day, datetime.datetime(2000, 3, 1, 23, 59), "2000-03-01", " 2000-03-01T10:00 ", b"2000-03-01"]
    assert set(parse_column(field, [*cells, np.datetime64("2000-03-01")])) == {float(day.toordinal())}
    stamps = np.array(["2000-03-01T12:00", "NaT"], dtype="datetime64[ns]")
    np.testing.assert_array_equal(parse_column(field, stamps), [day.toordinal(), np.nan])
    assert np.isnan(parse_column(field, [None, "", "soon", 20000301, float("nan"), "2000-13-01"])).all()


def test_dates_before_1970_are_days_too() -> None:
    field = Date("born", "1900-01-01", "2000-12-31")
    old = np.array(["1950-06-01T23:59"], dtype="datetime64[ns]")
    assert parse_column(field, old).tolist() == [datetime.date(1950, 6, 1).toordinal()]


def test_booleans_in_every_form() -> None:
    field = Boolean("smoker")
    assert parse_column(field, [True, 1, 1.0, "yes", "TRUE", " y ", np.True_]).tolist() == [1.0] * 7
    assert parse_column(field, [False, 0, "no", "False", "n", np.array(False).item()]).tolist() == [0.0] * 6
    assert np.isnan(parse_column(field, [None, "", "maybe", 2, float("nan")])).all()
    assert parse_column(field, np.array([True, False])).tolist() == [1.0, 0.0]


def test_masked_and_long_numbers() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    np.testing.assert_array_equal(parse_column(AGE, masked), [1.0, np.nan])
    np.testing.assert_array_equal(parse_column(SIZE, masked), [0, MISSING])
    assert np.isfinite(parse_column(AGE, np.array([1, 2], dtype=np.longdouble))).all()


def read_csv(cells, **options):
    pandas = pytest.importorskip("pandas", reason="the extra `tables` is not installed")
    text = "code,other\n" + "".join(f"{cell},0\n" for cell in cells)
    return pandas.read_csv(io.StringIO(text), **options)["code"].to_numpy()


@pytest.mark.parametrize(
    ("declared", "cells"),
    [
        (("1", "2", "x"), ["01", "02"] * 50),
        (("1", "2", "x"), ["1.0", "2.0"] * 50),
        (("True", "False", "x"), ["TRUE", "FALSE"] * 50),
    ],
)
def test_one_odd_cell_changes_the_category_of_its_own_row_alone(declared, cells):
    field = Category("code", declared)
    usual = parse_column(field, read_csv(cells))
    odd = parse_column(field, read_csv([*cells[:-1], "x"]))
    assert usual.tolist() == [0, 1] * 50
    assert odd.tolist() == [*usual.tolist()[:-1], 2]
    assert odd.tolist() == parse_column(field, read_csv([*cells[:-1], "x"], dtype=str)).tolist()


@pytest.mark.parametrize(
    ("declared", "cells", "words"),
    [
        (("01", "02", "x"), ["01", "02"], "the category '01', which a column of type int64 stores as '1'"),
        (("1", "01"), ["01", "1"], "'01'"),
        (
            ("1.0", "2.5"),
            ["1.0", "2.5"],
            "type float64 stores as '1'; read the column as text, with dtype=str",
        ),
        (("true", "false"), ["true", "false"], "'true', which a column of type bool stores as 'True'"),
        (("9007199254740993", "1"), ["9007199254740993", "1"], "type int64 may not store exactly"),
        (("9007199254740992", "1"), ["9007199254740992", "1"], "type int64 may not store exactly"),
        (("inf", "1"), ["inf", "1"], "'inf', which a column of type float64 may not store exactly"),
    ],
)
def test_categories_that_a_column_of_another_type_loses_are_refused(declared, cells, words):
    field = Category("code", declared)
    with pytest.raises(DataError, match=words):
        parse_column(field, read_csv(cells))
    assert parse_column(field, read_csv(cells, dtype=str)).tolist() == [
        declared.index(cell) for cell in cells
    ]


def test_booleans_match_the_category_of_the_same_text_first():
    cells = [True, np.True_, False, None]
    assert parse_column(Category("code", ("true", "True")), cells).tolist() == [1, 1, -1, -2]
    assert parse_column(Category("code", ("false", "true")), cells).tolist() == [1, 1, 0, -2]


def test_categories_in_a_column_that_was_read_as_dates_are_refused():
    """One cell that is no date leaves the column as text: then every row would have a category again."""
    field, cells = Category("code", ("2024-01-01", "2025-01-01")), ["2024-01-01", "2025-01-01"]
    with pytest.raises(DataError, match="declared as Category, but its column contains dates"):
        parse_column(field, read_csv(cells, parse_dates=["code"]))
    assert parse_column(field, read_csv(cells)).tolist() == [0, 1]


@pytest.mark.parametrize("cells", [["1.0", "0.0"] * 50, ["01", "00"] * 50, ["1", "0"] * 50])
def test_one_odd_cell_changes_the_truth_of_its_own_row_alone(cells):
    usual = parse_column(Boolean("code"), read_csv(cells))
    odd = parse_column(Boolean("code"), read_csv([*cells[:-1], "x"]))
    assert usual.tolist() == [1.0, 0.0] * 50 and np.isnan(odd[-1])
    assert odd.tolist()[:-1] == usual.tolist()[:-1]


def test_categories_that_are_no_numbers_may_stand_beside_numbers():
    field = Category("code", ("1", "2", "unknown", "true", "9007199254740991"))
    assert parse_column(field, np.array([1, 2, 3])).tolist() == [0, 1, -1]
    assert parse_column(field, np.array([1.0, np.nan])).tolist() == [0, -2]
