from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taciturn.core.errors import DataUnavailable, ParameterError, PrivacyLeakWarning
from taciturn.data import Dataset, load_adult
from taciturn.data.datasets.adult import ADULT


@pytest.fixture(scope="module")
def raw(adult: Dataset) -> Dataset:
    """The same before the rows are scaled."""
    with pytest.warns(PrivacyLeakWarning):
        return load_adult(scaling="paper", rows="raw")


def test_shape_and_names_are_the_papers(adult: Dataset) -> None:
    assert adult.X.shape == (45222, 105)
    assert adult.X.dtype == np.float64
    assert len(adult.names) == len(set(adult.names)) == 105
    assert adult.names[:3] == ("age", "workclass=Private", "workclass=Self-emp-not-inc")
    counts = [len(field.feature_names) for field in adult.schema]
    assert sorted(counts, reverse=True)[:8] == [41, 16, 14, 8, 7, 6, 5, 2]
    assert counts.count(1) == 6


def test_labels_are_signs_in_the_stated_proportion(adult: Dataset) -> None:
    assert set(np.unique(adult.y)) == {-1.0, 1.0}
    assert (adult.y == 1).sum() == 11208  # adult.names: 24.78% without unknowns


def test_split_is_the_authors(adult: Dataset) -> None:
    assert (~adult.test).sum() == 30162
    assert adult.test.sum() == 15060


def test_columns_have_max_one(raw: Dataset) -> None:
    largest = raw.X.max(axis=0)
    empty = [name for name, value in zip(raw.names, largest, strict=True) if value == 0]
    assert empty == ["workclass=Never-worked"]  # declared, and only ever seen with a missing occupation
    assert set(largest) == {0.0, 1.0}
    assert raw.X.min() == 0.0


def test_every_row_has_one_of_each_category(raw: Dataset) -> None:
    start = 0
    for field in raw.schema:
        width = len(field.feature_names)
        if width > 1:
            np.testing.assert_array_equal(raw.X[:, start : start + width].sum(axis=1), 1.0)
        start += width


def test_the_data_have_rank_96(raw: Dataset) -> None:
    values = np.linalg.eigvalsh(raw.X.T @ raw.X)
    assert (values > 1e-9 * values[-1]).sum() == 96


def test_row_norms_are_at_most_one(adult: Dataset, raw: Dataset) -> None:
    norms = np.linalg.norm(adult.X, axis=1)
    assert norms.max() <= 1.0
    assert norms.min() > 1 - 1e-12  # eight categories: every row was above 1 and sits on the sphere now
    along = np.einsum("ij,ij->i", adult.X, raw.X) / np.linalg.norm(raw.X, axis=1)
    np.testing.assert_allclose(along, 1.0, atol=1e-12)


def test_scaled_rows_keep_their_proportions(adult: Dataset, raw: Dataset) -> None:
    with pytest.warns(PrivacyLeakWarning):
        scaled = load_adult(scaling="paper", rows="scale")
    assert 1 - 1e-12 < np.linalg.norm(scaled.X, axis=1).max() <= 1.0
    factor = scaled.X[0, 0] / raw.X[0, 0]
    np.testing.assert_allclose(scaled.X[::97], factor * raw.X[::97], rtol=1e-13)


def test_public_scaling_reads_nothing_off_the_data(raw: Dataset) -> None:
    public = load_adult(rows="scale")  # the default, and without a warning
    assert public.scaling == "public"
    assert np.linalg.norm(public.X, axis=1).max() < 1.0
    fnlwgt = public.X[:, public.names.index("fnlwgt")]
    np.testing.assert_allclose(fnlwgt * np.sqrt(14) * 1_500_000, raw.column("fnlwgt"), rtol=1e-12)
    assert raw.schema != public.schema


def test_a_scale_that_is_read_off_the_data_warns_where_it_is_asked_for(adult: Dataset) -> None:
    with pytest.warns(PrivacyLeakWarning, match="so the rows reveal this value") as told:
        load_adult(scaling="paper")
    assert told[0].filename == __file__


def test_the_first_row_is_the_files_first_row(raw: Dataset) -> None:
    assert raw.column("age")[0] == 39
    assert raw.column("sex")[0] == "Male"
    assert raw.column("native-country")[0] == "United-States"
    assert raw.X[0, 0] == 39 / 90
    assert raw.X[0, raw.names.index("education=Bachelors")] == 1
    assert raw.y[0] == -1


def test_a_wrong_column_is_named(adult: Dataset) -> None:
    with pytest.raises(ParameterError, match=r"one of age, workclass.* got 'height'"):
        adult.column("height")


def test_arrays_are_read_only_and_repr_shows_no_data(adult: Dataset) -> None:
    with pytest.raises(ValueError, match="read-only"):
        adult.X[0, 0] = 1.0
    assert repr(adult) == "Dataset(adult, 45222 x 105, scaling=paper, rows=clip)"
    assert len(adult) == 45222
    assert adult.sha256 == ADULT.sha256


@pytest.mark.parametrize("wrong", [{"scaling": "max"}, {"rows": "drop"}])
def test_wrong_choices_are_refused_before_anything_is_read(
    wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "taciturn.data.datasets.adult.find", lambda *_, **__: pytest.fail("looked for the files")
    )
    with pytest.raises(ParameterError, match="must be one of"):
        load_adult(**wrong)


def test_no_file_lists_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path))
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path))
    with pytest.raises(DataUnavailable) as error:
        load_adult(fetch=False)
    lines = str(error.value).splitlines()
    assert lines[1].startswith("  $TACITURN_DATA: ") and "adult.data" in lines[1]
    assert lines[2].startswith("  the cache: ") and "adult.data" in lines[2]
