from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from taciturn.core.errors import DataError
from taciturn.data import Category, Number, Schema
from taciturn.data.tables.column_parsing import MISSING, parse

SCHEMA = Schema((Number("age", 0, 100), Category("size", ("1", "2", "big"))))
EXPECTED = {"age": [30.0, np.nan], "size": [2, 1]}


@pytest.mark.parametrize(
    "table",
    [
        [{"age": 30, "size": "big"}, {"size": 2}],
        [[30, "big"], [None, 2]],
        [("30", b"big"), ("", "2")],
        {"age": [30, None], "size": ["big", 2], "more": []},
        np.array([[30, "big"], [None, 2]], dtype=object),
        np.array([("30", "big"), ("", "2")], dtype=[("age", "U5"), ("size", "U5")]),
    ],
)
def test_every_container_gives_the_same(table: Any) -> None:
    for name, column in parse(SCHEMA, table).items():
        np.testing.assert_array_equal(column, EXPECTED[name])


@pytest.mark.parametrize("dtype", [None, "category", "string", "Int64"])
def test_pandas(dtype: str | None) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    frame = pandas.DataFrame({"size": ["big", "2"], "more": [1, 2], "age": [30.0, None]})
    if dtype == "Int64":
        frame["age"] = frame["age"].astype("Int64")
    elif dtype:
        frame["size"] = frame["size"].astype(dtype)
    for name, column in parse(SCHEMA, frame).items():
        np.testing.assert_array_equal(column, EXPECTED[name])


@pytest.mark.parametrize("dictionary", [False, True])
def test_pyarrow(dictionary: bool) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is optional")
    size = arrow.array(["big", "2"])
    table = arrow.table({"size": size.dictionary_encode() if dictionary else size, "age": [30, None]})
    for name, column in parse(SCHEMA, table).items():
        np.testing.assert_array_equal(column, EXPECTED[name])


@pytest.mark.parametrize("column", [30, "30", None, np.array(30), np.ones((1, 2))])
def test_a_column_that_is_not_one_cell_per_row_is_refused(column: Any) -> None:
    with pytest.raises(DataError, match=r"one cell per row; column `age` has [02] dimension"):
        parse(SCHEMA, {"age": column, "size": ["big"]})


def test_pyarrow_arrays_with_missing_cells_are_columns() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is optional")
    found = parse(SCHEMA, {"age": arrow.array([30, None]), "size": arrow.array(["big", None])})
    np.testing.assert_array_equal(found["age"], EXPECTED["age"])
    assert found["size"].tolist() == [2, MISSING]


def test_rows_of_another_shape_are_rows_of_missing_values() -> None:
    rows: list[Any] = [[30, "big"], [30], [30, "big", 1], "30", None, 5, np.zeros((2, 2)), np.array([30, 2])]
    columns = parse(SCHEMA, rows)
    np.testing.assert_array_equal(columns["age"], [30] + [np.nan] * 6 + [30])
    np.testing.assert_array_equal(columns["size"], [2] + [MISSING] * 6 + [1])


@pytest.mark.parametrize(
    "table, says",
    [
        ({"age": [1]}, "each required column once; missing or repeated: size"),
        ({"age": [1], "size": [1, 2]}, "columns of the same length; got 2"),
        (np.zeros(3), "two-dimensional; got 1"),
        (np.zeros((3, 3)), "the schema's 2 columns; got 3"),
        (np.zeros((3, 2), dtype=complex), "Complex data not supported"),
        (np.zeros(3, dtype=[("age", float)]), "missing or repeated: size"),
        ([], "a minimum of 1 row"),
        (np.zeros((0, 2)), "a minimum of 1 row"),
        ("age,size", "a table or a list of rows; got str"),
        (None, "a table or a list of rows; got NoneType"),
        (iter([]), "a table or a list of rows"),
    ],
)
def test_wrong_tables_get_one_clear_line(table: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as error:
        parse(SCHEMA, table)
    assert "\n" not in str(error.value)


def test_sparse_tables_are_refused() -> None:
    with pytest.raises(DataError, match="must be dense"):
        parse(SCHEMA, sparse.eye_array(2))


def test_a_column_given_twice_is_refused() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    frame = pandas.DataFrame([[1, 2, 3]], columns=["age", "age", "size"])
    with pytest.raises(DataError, match="missing or repeated: age"):
        parse(SCHEMA, frame)
