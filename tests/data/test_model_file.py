"""One format for every model file, validated as a whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taciturn.core.errors import DataError
from taciturn.data import BoundedEncoder, Category, Number, Schema
from taciturn.data.model_file import ModelFile, read_as

SCHEMA = Schema((Number("age", 0, 100), Category("sex", ("f", "m"))))
ENTRIES = {
    "format": "taciturn-model/1",
    "loss": "logistic",
    "features": ["age", "sex=f", "sex=m"],
    "coef": [[1.0, -2.0, 0.1]],
    "intercept": [0.5],
    "classes": ["no", "yes"],
    "schema": SCHEMA.to_dict(),
}


def test_what_is_written_comes_back_to_the_last_bit(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(ModelFile.model_validate(ENTRIES).to_json())
    assert read_as(ModelFile, path).coef == [[1.0, -2.0, 0.1]]
    encoder = {"data_norm": 1.0, "intercept": False, "rows": "clip", "missing": "row", "schema": SCHEMA}
    assert json.loads(path.read_text())["encoding"] | {"schema": SCHEMA} == encoder
    assert read_as(ModelFile, path) == ModelFile.model_validate(ENTRIES)


@pytest.mark.parametrize("options", [{}, {"rows": "scale"}, {"missing": "field"}, {"data_norm": 0.5}])
def test_rows_are_those_of_the_encoder_that_it_was_fitted_with(options):
    table = {"age": [50, None, 101], "sex": ["m", "f", "x"]}
    model = ModelFile.model_validate(ENTRIES | {"encoding": options})
    assert np.array_equal(
        model.encoder().transform(table), BoundedEncoder(SCHEMA, **options).transform(table)
    )


def test_a_constant_inside_the_bound_is_the_last_feature():
    entries = ENTRIES | {"encoding": {"intercept": True}}
    with pytest.raises(ValueError, match="`features` must be the features that `schema`"):
        ModelFile.model_validate(entries)
    entries |= {"features": [*ENTRIES["features"], "intercept"], "coef": [[1.0, -2.0, 0.1, 0.7]]}
    rows = ModelFile.model_validate(entries).encoder().transform({"age": [50], "sex": ["m"]})
    assert rows.shape == (1, 4) and rows[0, 3] > 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}', "\ufeff{}"])
def test_non_model_file_gives_a_one_line_error_with_its_name(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"model\.json is not a model of taciturn") as error:
        read_as(ModelFile, path)
    assert "\n" not in str(error.value)
