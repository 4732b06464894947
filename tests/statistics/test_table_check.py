"""tt.check shows the owner of the rows what would ruin a model, before a budget is spent."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt

SCHEMA = tt.data.Schema.of(age=(0, 110), ward=["medical", "surgical"], smoker=bool)
BUDGET = {"epsilon": 1.0, "sites": 5, "colluding": 1}


def table(rows=2000, **other):
    rng = np.random.default_rng(0)
    found = {
        "age": rng.uniform(20, 90, rows),
        "ward": rng.choice(["medical", "surgical"], rows),
        "smoker": rng.choice([True, False], rows),
    }
    return found | other


def test_good_table_has_no_troubles():
    found = tt.check(table(), SCHEMA, np.tile(["no", "yes"], 1000), classes=["no", "yes"], **BUDGET)
    assert found.troubles == () and found.zeros == found.clipped == 0 and found.support.startswith("enough")
    assert [column.counts.name for column in found.columns] == ["age", "ward", "smoker", "label"]
    assert sum(found.columns[0].heights) == 2000 and "never share" in str(found)


def test_unscaled_columns_are_reported_as_shortened_rows():
    found = tt.check(100.0 * np.random.default_rng(0).standard_normal((2000, 3)), **BUDGET)
    assert found.clipped == 2000 and any("norm above data_norm" in line for line in found.troubles)


def test_rows_zeroed_by_missing_cells_are_reported():
    cells = np.random.default_rng(0).uniform(0, 1, 2000)
    cells[: 2000 * 2 // 3] = np.nan
    found = tt.check(table(age=cells), SCHEMA, **BUDGET)
    assert found.zeros == 1333 and any("1333 of 2000 rows become zeros" in line for line in found.troubles)
    kept = tt.check(table(age=cells), SCHEMA, missing="field", **BUDGET)
    assert kept.zeros == 0


def test_range_that_squeezes_a_column_flat_is_reported():
    wide = tt.data.Schema.of(age=(0, 1e6), ward=["medical", "surgical"], smoker=bool)
    assert any("narrower range" in line for line in tt.check(table(), wide, **BUDGET).troubles)


def test_label_spelt_differently_from_the_classes_is_refused():
    with pytest.raises(tt.errors.DataError, match="spelt"):
        tt.check(table(), SCHEMA, np.tile(["No", "Yes"], 1000), classes=["no", "yes"])


def test_undeclared_and_missing_labels_are_counted():
    labels = np.array(["no", "yes", "perhaps", None] * 500, dtype=object)
    label = tt.check(table(), SCHEMA, labels, classes=["no", "yes"]).columns[-1].counts
    assert (label.fit, label.unknown, label.missing) == (1000, 500, 500)


def test_one_class_and_a_number_taken_for_a_class_are_reported():
    assert any("fewer than two" in line for line in tt.check(table(), SCHEMA, np.ones(2000)).troubles)
    assert any("target_scale" in line for line in tt.check(table(), SCHEMA, np.arange(2000.0)).troubles)


def test_target_scale_far_from_the_targets_is_reported():
    targets = np.random.default_rng(0).uniform(200, 400, 2000)
    assert any(
        "target_scale" in line for line in tt.check(table(), SCHEMA, targets, target_scale=1.0).troubles
    )
    assert tt.check(table(), SCHEMA, targets, target_scale=300.0).troubles == ()


def test_targets_close_together_and_far_from_zero_are_reported():
    targets = 93.0 + 5.0 * np.random.default_rng(0).normal(size=2000)
    (line,) = tt.check(table(), SCHEMA, targets, target_scale=100.0).troubles
    assert "subtract a public centre" in line and "0.034 times `target_scale`" in line
    assert tt.check(table(), SCHEMA, targets - 90.0, target_scale=10.0).troubles == ()


def test_too_few_rows_come_with_the_number_that_would_do():
    few = tt.check(table(10), SCHEMA, **BUDGET)
    assert few.noise > 1 and any("too few rows" in line for line in few.troubles)
    needed = int(few.support.split("about ")[-1].split(" rows")[0].replace(",", ""))
    assert tt.check(table(10), SCHEMA, total_rows=needed, **BUDGET).support.startswith("enough")
    assert not tt.check(table(10), SCHEMA, total_rows=needed // 2, **BUDGET).support.startswith("enough")


def test_notebook_shows_a_picture_per_column_and_escapes_names():
    schema = tt.data.Schema.of(**{"<b>": (0, 1)})
    page = tt.check({"<b>": [0.5, 2.0]}, schema)._repr_html_()
    assert page.count("<svg") == 1 and "#c2410c" in page and "<b>" not in page


def test_label_of_another_length_is_refused():
    with pytest.raises(tt.errors.ParameterError, match="one entry per row"):
        tt.check(table(), SCHEMA, [0, 1])
    with pytest.raises(tt.errors.ParameterError, match="total_rows"):
        tt.check(table(), SCHEMA, total_rows=10)


@pytest.mark.parametrize(
    "name",
    [name for name in dir(tt) if name.startswith("Private") and hasattr(getattr(tt, name), "fit")],
)
def test_the_docs_of_every_estimator_point_to_it(name):
    assert "`taciturn.check" in getattr(tt, name).__doc__


@pytest.mark.parametrize("kind", ["boolean", "string", "Int64", "object"])
def test_missing_values_of_pandas_are_counted(kind):
    pd = pytest.importorskip("pandas")
    words = pd.Series(["1", "0", None, "1"] * 500, dtype="string")
    numbers = pd.Series([1, 0, None, 1] * 500, dtype="Int64")
    column = words if kind == "string" else numbers.astype(kind)
    schema = tt.data.Schema.of(c=["0", "1"]) if kind != "boolean" else tt.data.Schema.of(c=bool)
    counts = tt.check(pd.DataFrame({"c": column}), schema).columns[0].counts
    label = tt.check(table(), SCHEMA, column).columns[-1].counts
    assert (counts.fit, counts.missing) == (label.fit, label.missing) == (1500, 500)


def test_plain_tables_may_be_sparse_but_must_contain_numbers():
    sparse = pytest.importorskip("scipy.sparse")
    assert tt.check(sparse.csr_matrix(np.eye(4))).rows == 4
    for wrong in ([["secret", 1.0]], np.zeros((4, 0)), [[1.0], [1.0, 2.0]]):
        with pytest.raises(tt.errors.ParameterError, match="finite numbers") as found:
            tt.check(wrong)
        assert "secret" not in str(found.value)


def test_budget_is_checked_as_the_estimator_checks_it():
    for wrong in (-1, 5, "all"):
        with pytest.raises(tt.errors.ParameterError, match="colluding"):
            tt.check(table(), SCHEMA, colluding=wrong)
    assert tt.check(table(), SCHEMA, delta=None).noise == tt.check(table(), SCHEMA).noise
    assert tt.check(table(), SCHEMA, delta=0).noise > 0


def test_huge_targets_do_not_overflow():
    found = tt.check(table(), SCHEMA, np.full(2000, 1e308), target_scale=1e-5)
    assert any("target_scale" in line for line in found.troubles)
