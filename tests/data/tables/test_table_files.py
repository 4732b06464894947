"""Tables: columns by name, with any cell content; no error quotes a cell."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.core.errors import DataError, MissingExtra, ParameterError
from taciturn.data import Category
from taciturn.data.tables import table_files
from taciturn.data.tables.column_parsing import MISSING, parse_column, read_numbers
from taciturn.data.tables.table_files import CsvForm, column_names, read_table


def test_csv_as_columns_and_a_row_of_another_length_without_values(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('\ufeffage, sex\n31,f\n32\n\n"3,3",m,x\n', encoding="utf-8")
    assert read_table(path, ["age", "sex"]) == {"age": ["31", None, None], "sex": ["f", None, None]}


def test_unnamed_index_column_of_pandas_is_ignored(tmp_path):
    (tmp_path / "a.csv").write_text(",age\n0,31\n")
    assert read_table(tmp_path / "a.csv", ["age"])["age"] == ["31"]


def test_parquet_as_columns(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"age": [31, None], "sex": ["f", "m"]}), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", ["sex"]) == {"sex": ["f", "m"]}
    (tmp_path / "b.parquet").write_text("age\n31\n")
    with pytest.raises(DataError, match=r"b\.parquet is not a complete Parquet file"):
        read_table(tmp_path / "b.parquet", ["age"])


@pytest.mark.parametrize("declared", [("true", "false"), ("True", "False")])
def test_booleans_of_parquet_match_the_same_categories_as_texts_of_csv(tmp_path, declared):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"smoker": [True, False, None]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text('smoker\ntrue\nfalse\n""\n')
    for name in ("a.parquet", "a.csv"):
        cells = read_table(tmp_path / name, ["smoker"])["smoker"]
        assert parse_column(Category("smoker", declared), cells).tolist() == [0, 1, MISSING]


def test_parquet_without_the_extra_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "a.parquet").touch()
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[tables\]'"):
        read_table(tmp_path / "a.parquet", [])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "age,sex\n31,f\n", r"line 1 of \S*a\.csv lacks the columns height, weight\."),
        ("a.csv", "age,age\n1,2\n", r"line 1 of \S*a\.csv must contain the names of the columns"),
        ("a.csv", "", r"line 1 of \S*a\.csv is empty; it must contain the names"),
        (
            "a.csv",
            "height;weight\n180,5;80\n",
            r"the columns in \S*a\.csv are separated by semicolons; set csv.separator = ",
        ),
        ("a.csv", "height\tweight\n180\t80\n", r"the columns in \S*a\.csv are separated by tabs"),
        ("a.csv", 'height,weight\n1,"2\n3,4\n5,6\n', r"line 4 of \S*a\.csv is not CSV; is a quote left"),
        ("a.csv", "height,weight\n", r"a\.csv has no rows"),
        ("a.csv", "\ufeff", r"line 1 of \S*a\.csv is empty; it must contain the names"),
        ("a.txt", "", r"a\.txt: the name of a table must end in \.csv or \.parquet"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / name, ["height", "weight"])


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv cannot be read \(No such file"):
        read_table(tmp_path / "none.csv", [])


def test_a_cell_beyond_the_csv_limit_is_an_error_without_the_cell(tmp_path):
    (tmp_path / "a.csv").write_text("age\n" + "7" * 200_000 + "\n")
    with pytest.raises(DataError, match=r"line 2 of \S*a\.csv is not CSV; is a quote left open\?$"):
        read_table(tmp_path / "a.csv", ["age"])


@pytest.mark.parametrize("byte_order", ["le", "be"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_the_encoding_that_a_byte_order_mark_names_is_the_one_to_set(tmp_path, encoding, byte_order):
    (tmp_path / "a.csv").write_bytes("\ufeffage,sex\n31,f\n".encode(f"{encoding}-{byte_order}"))
    with pytest.raises(DataError, match=f'set csv.encoding = "{encoding}"'):
        read_table(tmp_path / "a.csv", ["age"])
    assert read_table(tmp_path / "a.csv", ["age"], CsvForm(encoding=encoding)) == {"age": ["31"]}


def test_dates_outside_the_years_of_python_are_missing_cells_of_a_parquet_file(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    days = arrow.array([2**31 - 1, 0, None], type=arrow.int32()).cast(arrow.date32())
    times = arrow.array([2**62, 0, None], type=arrow.timestamp("us", tz="UTC"))
    parquet.write_table(arrow.table({"day": days, "time": times}), tmp_path / "a.parquet")
    for column in read_table(tmp_path / "a.parquet", ["day", "time"]).values():
        assert column[0] is column[2] is None and column[1].isoformat().startswith("1970-01-01")


def test_the_case_of_the_ending_does_not_matter(tmp_path):
    (tmp_path / "A.CSV").write_text("age\n31\n")
    assert read_table(tmp_path / "A.CSV", ["age"])["age"] == ["31"]


def test_parquet_with_a_name_twice(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    parquet.write_table(arrow.table([[1], [2], [3]], names=["a", "a", "b"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet has two columns with the same name"):
        read_table(tmp_path / "a.parquet", ["b"])


def test_decimal_comma_and_semicolon_files_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe;dose;wort\n1.234,5;-2;a,b\n,5;1e3;3,\n".encode("latin-1"))
    form = CsvForm(separator=";", decimal=",", encoding="latin-1")
    table = read_table(path, ["größe", "dose", "wort"], form)
    assert table == {"größe": ["1234.5", ".5"], "dose": ["-2", "1e3"], "wort": ["a,b", "3."]}
    assert read_table(path, ["größe"], form, ["größe"])["größe"].tolist() == [1234.5, 0.5]


def test_columns_that_are_numbers_come_as_the_floats_that_their_texts_stand_for(tmp_path):
    cells = ["1.5", " 2 ", "", "1_000", "nan", "-inf", "0x1", "1e400", '"3"', "zwei", "1\0", "x,y"] * 900
    (tmp_path / "a.csv").write_text("age,sex\n" + "".join(f"{cell},f\n" for cell in cells))
    texts = read_table(tmp_path / "a.csv", ["age", "sex"])
    floats = read_table(tmp_path / "a.csv", ["age", "sex"], numbers=["age"])
    assert len(texts["age"]) == len(cells) and floats["sex"] == texts["sex"]
    np.testing.assert_array_equal(floats["age"], read_numbers(texts["age"]))
    assert floats["age"][:8].tolist() == pytest.approx(
        [1.5, 2, np.nan, 1000, np.nan, -np.inf, np.nan, np.inf], nan_ok=True
    )


def test_arrow_reads_a_large_file_as_the_same_numbers(tmp_path, monkeypatch):
    """Odd cells, missing cells, rows of another length and other alphabets, in some blocks of lines only."""
    pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    rng = np.random.default_rng(1)
    floats = rng.integers(0, 2**64, 4000, dtype=np.uint64).view(np.float64)
    cells = [repr(float(value)) for value in floats] + [f"{value:.2f}" for value in rng.uniform(-9, 9, 4000)]
    odd = ["", "+1", ".5", "1.", "1_0", " 7", "nan(1)", "Infinity", "1e400", "4e-324", "-0", "0x2", "\u0663"]
    for k, cell in enumerate([*odd, "1\0", '"1\n2"', '"8"']):
        cells[300 * k] = cell  # each in another block of lines
    cells += odd
    rows = [f"{a},{b},f\n" for a, b in zip(cells, reversed(cells), strict=True)]
    rows[2000:2000] = ["\n"] * 600 + ["1\n", "1,2,3,4\n"]
    path = tmp_path / "a.csv"
    path.write_text("a,b,sex\n" + "".join(rows), encoding="utf-8")
    names = ["a", "b", "sex"]
    slow = read_table(path, names, numbers=["a", "b"])
    monkeypatch.setattr(table_files, "_LARGE", 0)
    fast = read_table(path, names, numbers=["a", "b"])
    assert len(fast["a"]) == len(cells) + 2 and fast["sex"] == slow["sex"]
    assert all(fast[name].tobytes() == slow[name].tobytes() for name in ("a", "b"))
    assert read_table(path, ["sex"]) == {"sex": slow["sex"]}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"separator": "x"}, "`csv.separator` must be one of"),
        ({"decimal": ","}, "must differ from `csv.separator`"),
        ({"encoding": "base64"}, "`csv.encoding` must be a text encoding; got 'base64'"),
        ({"encoding": "klingon"}, "`csv.encoding` must be a text encoding; got 'klingon'"),
    ],
)
def test_impossible_csv_format_is_refused(wrong, words):
    with pytest.raises(ParameterError, match=words):
        CsvForm(**wrong)


@pytest.mark.parametrize(
    ("text", "form", "advice"),
    [
        ("a;b\n", {}, "set --separator ';', or use commas"),
        ("a\tb\n", {}, r"set --separator \$'\\t', or use commas"),
        ("\ufeffa\n1\n", {"encoding": "latin-1"}, "leave out --encoding"),
        ("a\n1\n", {"encoding": "utf-16"}, "set --encoding to"),
        ("", {"separator": "x"}, "`--separator` must be one of"),
        ("", {"decimal": ","}, "`--decimal` must differ from `--separator`"),
        ("", {"encoding": "klingon"}, "`--encoding` must be a text encoding"),
    ],
)
def test_messages_of_a_command_name_its_options(tmp_path, text, form, advice):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=advice):
        read_table(tmp_path / "a.csv", ["a"], CsvForm(**form, prefix="--"))


def test_spreadsheet_files_are_read_as_they_look(tmp_path):
    """A byte order mark, CRLF, quoted separators and line ends, and empty cells at the end of all lines."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"age",sex,,\r\n31,"a,b",,\r\n"32","c\r\nd",,\r\n')
    assert read_table(path, ["age", "sex"]) == {"age": ["31", "32"], "sex": ["a,b", "c\r\nd"]}
    assert column_names(path)[:2] == ("age", "sex")


@pytest.mark.parametrize(
    ("encoding", "declared", "words"),
    [
        ("utf-8", "utf-16", r"a\.csv is not text in 'utf-16'; set csv\.encoding"),
        ("utf-8-sig", "latin-1", r"a\.csv is a UTF-8 file, but csv\.encoding says 'latin-1': leave out"),
    ],
)
def test_another_encoding_than_declared_is_named(tmp_path, encoding, declared, words):
    (tmp_path / "a.csv").write_text("age\n31\n", encoding=encoding)
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "a.csv", ["age"], CsvForm(encoding=declared))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("change", ["append", "shrink", "replace", "delete"])
def test_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, name, change):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    path, kind = tmp_path / name, name.removeprefix("a.")
    path.write_text("age\n" + "31\n" * 1000)
    if kind == "parquet":
        parquet.write_table(arrow.table({"age": [31.0] * 1000}), path)
    reader = getattr(table_files, f"_from_{kind}")

    def read_and_change(*args):
        found = reader(*args)
        if change == "replace":
            (tmp_path / "new").write_bytes(path.read_bytes())
            (tmp_path / "new").rename(path)
        elif change == "delete":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes() + b"32\n" if change == "append" else path.read_bytes()[:-3])
        return found

    assert len(read_table(path, ["age"])["age"]) == 1000
    monkeypatch.setattr(table_files, f"_from_{kind}", read_and_change)
    words = r"cannot be read \(No such file" if change == "delete" else "changed while it was read; run again"
    with pytest.raises(DataError, match=words):
        read_table(path, ["age"])


def test_damaged_parquet_file_is_named(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra `tables` is not installed")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"age": list(range(10_000))}), path)
    whole = path.read_bytes()
    for content in (b"", whole[:-100], whole[:50] + b"\x99" * 5000 + whole[5050:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.parquet .*[wW]rite it again"):
            read_table(path, ["age"])
