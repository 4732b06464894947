from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from taciturn.core.errors import DataError, ParameterError
from taciturn.data import Boolean, BoundedEncoder, Category, Date, Number, Schema
from taciturn.data.datasets.dataset import shipped_schema
from taciturn.data.tables.schema import public_columns

PEOPLE = Schema(
    (Number("age", 0, 100), Category("sex", ("female", "male")), Number("gain", 0, 1e5, log=True, fill=5))
)


def test_names_follow_the_columns() -> None:
    assert PEOPLE.names == ("age", "sex", "gain")
    assert PEOPLE.feature_names == ("age", "sex=female", "sex=male", "gain")
    assert len(PEOPLE) == 3
    assert repr(PEOPLE) == "Schema(3 columns, 4 features)"


def test_plain_form_goes_both_ways() -> None:
    assert Schema.from_dict(json.loads(json.dumps(PEOPLE.to_dict()))) == PEOPLE
    assert shipped_schema("adult") == Schema.from_dict(shipped_schema("adult").to_dict())


def test_it_can_be_typed_as_toml() -> None:
    text = """
    fields = [
        { name = "age", low = 0, high = 100 },
        { name = "sex", values = ["female", "male"] },
        { name = "gain", low = 0, high = 100000, log = true, fill = 5 },
    ]
    """
    assert Schema.from_dict(tomllib.loads(text)) == PEOPLE


def test_ranges_can_be_replaced() -> None:
    assert PEOPLE.with_ranges({"age": (18, 67)}).fields[0] == Number("age", 18, 67)
    with pytest.raises(ParameterError, match="`ranges` must name numeric columns; got sex"):
        PEOPLE.with_ranges({"sex": (0, 1)})


def test_it_is_a_fact() -> None:
    assert hash(PEOPLE) == hash(Schema.from_dict(PEOPLE.to_dict()))
    with pytest.raises(AttributeError):
        PEOPLE.fields = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields, says",
    [
        ([], "at least one column"),
        ("age", "`fields` must be a list"),
        ([5], r"`fields\[0\]` must be a table; got int"),
        ([{"name": "age", "low": 0}], r"`fields\[0\]` lacks high"),
        ([{"name": "age", "low": 0, "high": 1, "unit": "a"}], r"`fields\[0\]` has unknown keys \(unit\)"),
        ([{"name": "age", "low": 1, "high": 1}], "`age.high` must be above low = 1; got 1"),
        ([{"name": "age", "low": 0, "high": float("inf")}], "`age.high` must be finite"),
        ([{"name": "age", "low": -1.7e308, "high": 1.7e308}], "`age.high - age.low` must be finite"),
        ([{"name": "age", "low": "0", "high": 1}], "`age.low` must be a number; got str"),
        ([{"name": "age", "low": 0, "high": 1, "log": 1}], "`age.log` must be true or false"),
        ([{"name": "age", "low": 0, "high": 1, "fill": "mean"}], "`age.fill` must be a number; got str"),
        ([{"name": " ", "low": 0, "high": 1}], "`name` of a column must be a non-empty text"),
        ([{"name": "sex", "values": []}], "at least one value"),
        ([{"name": "sex", "values": "mf"}], "`sex.values` must be a list of strings"),
        ([{"name": "sex", "values": [1, 2]}], "`sex.values` must be a list of strings"),
        ([{"name": "sex", "values": None}], "`sex.values` must be a list of strings"),
        ([{"name": "sex", "values": ["m", "f", "m"]}], "`sex.values` must be distinct; got m twice"),
        ([{"name": "sex", "values": ["m "]}], "must be texts that are not empty and have no spaces"),
        ([{"name": "a", "low": 0, "high": 1}] * 2, "different names; got a twice"),
    ],
)
def test_wrong_schemas_get_one_clear_line(fields: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as error:
        Schema.from_dict({"fields": fields})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("entry", [None, [], {}, {"fields": [], "target": "y"}])
def test_a_schema_is_a_table_of_fields(entry: Any) -> None:
    with pytest.raises(ParameterError, match="the single key `fields`"):
        Schema.from_dict(entry)


def test_only_fields_make_a_schema() -> None:
    with pytest.raises(ParameterError, match="must contain Number, Category, Date or Boolean; got dict"):
        Schema(({"name": "age"},))  # type: ignore[arg-type]


def test_public_facts_in_one_line():
    found = Schema.of(age=(0, 110), ward=["a", "b"], smoker=bool, day=Date("day", "2020-01-01", "2021-01-01"))
    wanted = (
        Number("age", 0, 110),
        Category("ward", ("a", "b")),
        Boolean("smoker"),
        Date("day", "2020-01-01", "2021-01-01"),
    )
    assert found == Schema(wanted)


@pytest.mark.parametrize("public", [None, 3, [], (1, 2, 3), {"low": 0}, Number("other", 0, 1)])
def test_non_public_facts_are_refused(public):
    with pytest.raises(DataError, match=r"`age` must be|`name` of the field for column .age. must be"):
        Schema.of(age=public)


def test_the_short_form_is_a_schema_wherever_one_is_taken() -> None:
    short = {"age": (0, 100), "sex": ["female", "male"], "smoker": bool}
    whole = Schema.of(**short)
    assert public_columns(short) == public_columns(whole.to_dict()) == public_columns(whole) == whole
    assert BoundedEncoder(short).get_feature_names_out().tolist() == list(whole.feature_names)
    for wrong in (None, {}, 3):
        with pytest.raises(DataError, match="`schema` must give the public facts about each column"):
            public_columns(wrong)
    with pytest.raises(DataError, match=r"`race` must be .*a list of texts such as \['1', '2', '3'\]"):
        public_columns({"race": [1, 2, 3]})
