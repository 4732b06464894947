from __future__ import annotations

import numpy as np
import pytest

from taciturn.core.errors import DataUnavailable, ParameterError
from taciturn.data import Dataset, load_credit


@pytest.fixture(scope="module")
def credit() -> Dataset:
    try:
        return load_credit(rows="raw")
    except DataUnavailable as reason:
        pytest.skip(str(reason))


def test_shape_labels_and_names(credit: Dataset) -> None:
    assert credit.X.shape == (30000, 99)
    assert len(set(credit.names)) == 99
    assert (credit.y == 1).sum() == 6636  # 22.12%, as published
    assert set(np.unique(credit.y)) == {-1.0, 1.0}
    assert not credit.test.any()
    assert credit.scaling == "public"


def test_codes_are_read_back(credit: Dataset) -> None:
    assert (credit.column("SEX") == "female").sum() == 18112
    assert (credit.column("EDUCATION") == "2").sum() == 14030
    assert (credit.column("MARRIAGE") == "1").sum() == 13659
    assert credit.column("LIMIT_BAL")[0] == 20000
    assert credit.column("PAY_0")[:2].tolist() == ["2", "-1"]


def test_no_row_is_lost_and_every_code_was_declared(credit: Dataset) -> None:
    assert credit.X.any(axis=1).all()
    for field in credit.schema:
        assert not np.isin(credit.column(field.name), ["(other)", "(missing)"]).any()


def test_values_lie_in_the_unit_interval(credit: Dataset) -> None:
    assert credit.X.min() == 0.0
    assert credit.X.max() == 1.0


def test_rows_have_norm_at_most_one(credit: Dataset) -> None:
    assert np.linalg.norm(load_credit().X, axis=1).max() <= 1.0


def test_a_wrong_choice_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "taciturn.data.datasets.credit.find", lambda *_, **__: pytest.fail("looked for the files")
    )
    with pytest.raises(ParameterError, match="`rows` must be one of"):
        load_credit(rows="drop")
