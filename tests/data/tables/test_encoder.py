from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.data import BoundedEncoder, Category, Date, Number, Schema

SCHEMA = Schema(
    (
        Number("age", 0, 100),
        Category("sex", ("female", "male")),
        Number("gain", 0, 1e5, log=True),
        Number("balance", -50, 50, symmetric=True),
    )
)
ANNE = {"age": 50, "sex": "female", "gain": 0, "balance": 25}

cells = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.integers(10**300, 10**320),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.booleans(),
    st.decimals(),
    st.dates(),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(["female", "male", "1e999", "?"]),
)
records = st.one_of(
    st.dictionaries(st.sampled_from([*SCHEMA.names, "more"]), cells),
    st.lists(cells, max_size=6),
    st.tuples(cells, cells, cells, cells),
    cells,
)


def raw(record: Any, **parameters: Any) -> list[float]:
    """Encoded without a bound that matters."""
    return BoundedEncoder(SCHEMA, data_norm=100.0, **parameters).fit_transform([record])[0].tolist()


def test_numbers_follow_their_range() -> None:
    assert raw(ANNE) == [0.5, 1.0, 0.0, 0.0, 0.5]
    assert raw(ANNE | {"gain": 1e5})[3] == 1.0
    assert raw(ANNE | {"gain": 999})[3] == math.log(1000) / math.log1p(1e5)
    assert raw(ANNE | {"balance": -50})[4] == -1.0


def test_values_out_of_range_are_moved_to_its_ends() -> None:
    assert raw({"age": 130, "sex": "male", "gain": -5, "balance": -1e300}) == [1.0, 0.0, 1.0, 0.0, -1.0]


def test_an_undeclared_category_matches_no_column() -> None:
    assert raw(ANNE | {"sex": "other"}) == [0.5, 0.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize("gap", [{"age": None}, {"sex": None}, {"gain": "n/a"}, {"balance": float("nan")}])
def test_a_missing_value_makes_a_row_of_zeros(gap: dict[str, Any]) -> None:
    assert raw(ANNE | gap, intercept=True) == [0.0] * 6
    field = raw(ANNE | gap, intercept=True, missing="field")
    assert np.count_nonzero(field) >= 2 and field[-1] == 1.0


def test_a_missing_value_counts_as_the_typical_one() -> None:
    encoder = BoundedEncoder(Schema((Number("age", 0, 100, fill=40), Number("gain", 0, 10))), data_norm=10)
    rows = [{"age": None, "gain": 5}, {"age": "?", "gain": None}]
    assert encoder.fit_transform(rows).tolist() == [[0.4, 0.5], [0.0, 0.0]]


def test_the_intercept_lies_inside_the_bound() -> None:
    encoder = BoundedEncoder(SCHEMA, intercept=True)
    row = encoder.fit_transform([ANNE])[0]
    assert 1 - 1e-12 < np.linalg.norm(row) <= 1.0
    assert row[-1] == row[1] == row.max()
    assert encoder.get_feature_names_out()[-1] == "intercept"


def test_clip_leaves_short_rows_alone_and_scale_treats_all_alike() -> None:
    rows = [{"age": 30, "sex": "x", "gain": 0, "balance": 0}, ANNE]
    clipped = BoundedEncoder(SCHEMA).fit_transform(rows)
    assert clipped[0, 0] == 0.3
    assert 1 - 1e-12 < np.linalg.norm(clipped[1]) <= 1.0
    scaled = BoundedEncoder(SCHEMA, rows="scale").fit_transform(rows)
    np.testing.assert_allclose(2 * scaled, BoundedEncoder(SCHEMA, data_norm=100).fit_transform(rows))


@pytest.mark.parametrize("intercept", [False, True])
def test_scale_knows_the_longest_row_there_can_be(intercept: bool) -> None:
    longest = {"age": 100, "sex": "male", "gain": 1e5, "balance": -50}
    row = BoundedEncoder(SCHEMA, rows="scale", intercept=intercept).fit_transform([longest])[0]
    assert 1 - 1e-12 < np.linalg.norm(row) <= 1.0


@settings(max_examples=150)
@given(
    table=st.lists(records, min_size=1, max_size=6),
    data_norm=st.floats(1e-3, 1e3),
    intercept=st.booleans(),
    rows=st.sampled_from(["clip", "scale"]),
    missing=st.sampled_from(["row", "field"]),
)
def test_encoded_rows_stay_within_the_bound_for_any_input(
    table: list[Any], data_norm: float, intercept: bool, rows: str, missing: str
) -> None:
    encoder = BoundedEncoder(SCHEMA, data_norm=data_norm, intercept=intercept, rows=rows, missing=missing)
    X = encoder.fit_transform(table)
    assert X.shape == (len(table), 5 + intercept)
    for row in X:
        assert np.linalg.norm(row) <= data_norm
        assert math.sqrt(math.fsum(row**2)) <= data_norm
        assert math.sqrt(sum(row[::-1] ** 2)) <= data_norm
    for record, row in zip(table, X, strict=True):  # a row depends on its own record alone
        np.testing.assert_array_equal(encoder.transform([record])[0], row)


@given(st.integers(1, 300), st.floats(1e-6, 1e6), st.integers(0, 2**32))
def test_many_columns_stay_within_the_bound_too(width: int, data_norm: float, seed: int) -> None:
    schema = Schema(tuple(Number(f"x{k}", 0, 1) for k in range(width)))
    values = np.random.default_rng(seed).uniform(-0.5, 1.5, (5, width))
    for rows in ("clip", "scale"):
        X = BoundedEncoder(schema, data_norm=data_norm, rows=rows).fit_transform(values)
        assert np.linalg.norm(X, axis=1).max() <= data_norm
        assert np.sqrt(np.cumsum(X**2, axis=1)[:, -1]).max() <= data_norm


def test_fit_learns_nothing() -> None:
    one = BoundedEncoder(SCHEMA).fit([ANNE])
    other = BoundedEncoder(SCHEMA).fit([{"age": 1}, {"sex": "Zacharias"}, {}])
    assert pickle.dumps(one) == pickle.dumps(other)
    np.testing.assert_array_equal(BoundedEncoder(SCHEMA).transform([ANNE]), one.transform([ANNE]))


SECRET = "Zacharias-4711"


@pytest.mark.parametrize(
    "table",
    [
        np.array([[SECRET] * 3], dtype=object),
        np.array([SECRET] * 3, dtype=object),
        {"age": [SECRET]},
        {"age": [SECRET], "sex": [SECRET], "gain": [SECRET], "balance": [SECRET, 1]},
        SECRET,
        iter([SECRET]),
    ],
)
def test_no_error_shows_a_value(table: Any) -> None:
    with pytest.raises(ParameterError) as error:
        BoundedEncoder(SCHEMA).fit_transform(table)
    text = "".join(traceback.format_exception(error.value))
    assert SECRET not in text
    assert error.value.__cause__ is None and error.value.__context__ is None


def test_encoder_state_contains_no_data_value() -> None:
    encoder = BoundedEncoder(SCHEMA)
    encoder.fit_transform([ANNE | {"sex": SECRET}, [SECRET] * 4, SECRET])
    assert SECRET not in repr(encoder)
    assert SECRET not in repr(vars(encoder))
    assert SECRET.encode() not in pickle.dumps(encoder)


@pytest.mark.parametrize(
    "parameters, says",
    [
        ({"data_norm": 0}, "`data_norm` must be above 0"),
        ({"rows": "raw"}, "`rows` must be one of clip, scale"),
        ({"missing": "drop"}, "`missing` must be one of row, field"),
        ({"intercept": 1}, "`intercept` must be True or False"),
        ({"schema": {"fields": []}}, "at least one column"),
        ({"schema": None}, "give the public facts about each column"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], says: str) -> None:
    encoder = BoundedEncoder(**({"schema": SCHEMA} | parameters))
    for use in (encoder.fit, encoder.transform):
        with pytest.raises(ParameterError, match=says):
            use([ANNE])


def test_plain_dict_schema_is_accepted() -> None:
    plain = BoundedEncoder(SCHEMA.to_dict())
    np.testing.assert_array_equal(plain.fit_transform([ANNE]), BoundedEncoder(SCHEMA).transform([ANNE]))


def test_it_sits_in_a_pipeline_and_is_cloned() -> None:
    rows = [ANNE, ANNE | {"age": 90, "sex": "male"}] * 5
    model = make_pipeline(BoundedEncoder(SCHEMA), LogisticRegression())
    model = clone(model).set_params(boundedencoder__data_norm=0.5).fit(rows, [0, 1] * 5)
    assert model.predict(rows).tolist() == [0, 1] * 5
    assert model[:-1].get_feature_names_out().tolist() == list(SCHEMA.feature_names)
    with pytest.raises(ParameterError, match="`input_features` must be the columns of the schema"):
        model[0].get_feature_names_out(["a", "b"])


def test_it_gives_frames_when_asked() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is optional")
    frame = pandas.DataFrame([ANNE, ANNE], index=["x", "y"])
    out = BoundedEncoder(SCHEMA).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == list(SCHEMA.feature_names)
    assert list(out.index) == ["x", "y"]
    listed = BoundedEncoder(SCHEMA).set_output(transform="pandas").fit_transform([ANNE])
    np.testing.assert_array_equal(listed.to_numpy(), out.to_numpy()[:1])


IN_OWN_WORDS = {
    "check_n_features_in_after_fitting": "scikit-learn wants its own sentence for a wrong number of columns",
    "check_estimators_empty_data_messages": "scikit-learn wants its own sentence for a table without columns",
}


def test_scikit_learn_accepts_it() -> None:
    """The checks use 1 to 10 columns and a schema fixes their number: each must pass for some width."""
    passed, seen = set(), set()
    for width in (1, 2, 3, 4, 5, 10):
        schema = Schema(tuple(Number(f"x{k}", -100, 100) for k in range(width)))
        for result in check_estimator(BoundedEncoder(schema), on_skip=None, on_fail=None):
            if result["status"] != "skipped":
                seen.add(result["check_name"])
            if result["status"] == "passed":
                passed.add(result["check_name"])
    assert seen - passed == set(IN_OWN_WORDS)
    assert len(passed) >= 35


@pytest.mark.process
def test_pandas_is_not_needed() -> None:
    """The encoder can be imported and used without pandas, pyarrow and polars."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'pyarrow', 'polars']))\n"
        "from taciturn.data import BoundedEncoder, Number, Schema\n"
        "print(BoundedEncoder(Schema((Number('x', 0, 2),))).fit_transform([{'x': 1}]).tolist())"
    )
    src = Path(tt.__file__).parents[1]
    one = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=src, env=one, capture_output=True, text=True)
    assert done.stdout == "[[0.5]]\n", done.stderr


@given(st.lists(records, min_size=1, max_size=8), st.sampled_from(["row", "field", "indicator", None]))
@settings(deadline=None)
def test_mapped_rows_stay_within_the_bound_whatever_a_record_holds(table: list[Any], missing: Any) -> None:
    encoder = BoundedEncoder(SCHEMA, data_norm=2.0, curves=4, surfaces=6, missing=missing)
    Z = encoder.fit(table).transform(table)
    assert Z.shape == (len(table), len(encoder.get_feature_names_out())) and np.isfinite(Z).all()
    assert all(math.fsum(value * value for value in z) <= 4.0 for z in Z)


def test_a_mapped_encoder_keeps_a_record_with_an_empty_cell() -> None:
    record = ANNE | {"age": None, "sex": None}
    encoder = BoundedEncoder(SCHEMA, curves=3)
    z = dict(zip(encoder.get_feature_names_out().tolist(), encoder.transform([record])[0], strict=True))
    assert z["age?"] == z["sex?"] == 0.5 and z["gain?"] == z["age@1"] == z["sex=female"] == 0
    assert z["balance@2"] > 0 and z["balance@3"] > 0 and z["gain@1"] > 0
    assert not encoder.unreadable([record])[0]
    assert not BoundedEncoder(SCHEMA, curves=3, missing="row").transform([record]).any()
    assert not BoundedEncoder(SCHEMA, curves=3, missing="row", intercept=True).transform([record]).any()


def test_an_indicator_marks_a_missing_value_without_a_map_too() -> None:
    encoder = BoundedEncoder(SCHEMA, data_norm=100.0, missing="indicator")
    names = ["age", "age?", "sex=female", "sex=male", "sex?", "gain", "gain?", "balance", "balance?"]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.transform([ANNE | {"sex": "?"}])[0].tolist() == [0.5, 0, 0, 0, 1, 0, 0, 0.5, 0]


def test_a_mapped_encoder_has_its_intercept_inside_the_bound() -> None:
    encoder = BoundedEncoder(SCHEMA, curves=3, intercept=True)
    z = encoder.transform([ANNE])[0]
    assert encoder.get_feature_names_out()[-1] == "intercept" and z[-1] > 0.7 and np.linalg.norm(z) <= 1


def test_the_schema_says_which_scale_a_curve_has() -> None:
    fields = (Number("gain", 0, 1e5, log=True), Date("day", "2020-01-01", "2020-12-31"))
    encoder = BoundedEncoder(Schema(fields), curves=3)
    middle = math.expm1(math.log1p(1e5) / 2)
    z = encoder.transform([{"gain": middle, "day": "2020-07-02"}])[0]
    assert np.allclose(z[[1, 3, 6, 8]], 0, atol=2e-3) and np.allclose(z[[2, 7]], 0.35**0.5, atol=2e-3)


def test_a_seed_without_surfaces_is_refused() -> None:
    with pytest.raises(ParameterError, match="`seed` is only for `surfaces`"):
        BoundedEncoder(SCHEMA, seed=1).fit([ANNE])


def test_auto_is_refused_with_the_classes_that_have_it() -> None:
    with pytest.raises(ParameterError, match=r"use `FeatureMap\(n=..., epsilon=...\)`, an additive model"):
        BoundedEncoder(SCHEMA, curves="auto").fit([ANNE])
