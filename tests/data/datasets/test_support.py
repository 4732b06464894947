from __future__ import annotations

import numpy as np
import pytest

from taciturn.core.errors import DataUnavailable, ParameterError
from taciturn.data import Dataset, Number, load_support


@pytest.fixture(scope="module")
def support() -> Dataset:
    try:
        return load_support(rows="raw")
    except DataUnavailable as reason:
        pytest.skip(str(reason))


def test_shape_labels_and_names(support: Dataset) -> None:
    assert support.X.shape == (9105, 45)
    assert len(set(support.names)) == 45
    assert (support.y == 1).sum() == 4265
    assert set(np.unique(support.y)) == {-1.0, 1.0}
    assert not support.test.any()


def test_nothing_that_came_later_is_among_the_features(support: Dataset) -> None:
    later = {"death", "hospdead", "slos", "d.time", "charges", "totcst", "totmcst", "avtisst"}
    foretold = {"sps", "aps", "surv2m", "surv6m", "prg2m", "prg6m", "dnr", "dnrday", "sfdm2"}
    assert not (later | foretold) & set(support.schema.names)


def test_the_first_row_is_the_files_first_row(support: Dataset) -> None:
    assert support.column("age")[0] == 62.84998
    assert support.column("dzgroup")[0] == "Lung Cancer"
    assert support.column("income")[0] == "$11-$25k"
    assert support.y[0] == -1


def test_missing_values_stand_for_the_usual_ones(support: Dataset) -> None:
    assert (support.column("income") == "unknown").sum() == 2982
    assert (support.column("race") == "unknown").sum() == 42
    assert support.column("bun")[0] == 6.51  # not measured
    assert support.X.any(axis=1).all()
    for field in support.schema:
        values = support.column(field.name)
        if isinstance(field, Number):
            assert np.isfinite(values).all()
        else:
            assert not np.isin(values, ["(other)", "(missing)"]).any()


def test_rows_have_norm_at_most_one(support: Dataset) -> None:
    assert np.abs(support.X).max() == 1.0
    for rows in ("clip", "scale"):
        assert np.linalg.norm(load_support(rows=rows).X, axis=1).max() <= 1.0


def test_a_wrong_choice_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "taciturn.data.datasets.support.find", lambda *_, **__: pytest.fail("looked for the files")
    )
    with pytest.raises(ParameterError, match="`rows` must be one of"):
        load_support(rows="drop")
