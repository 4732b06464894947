"""model.json: plain, exact, and good for new rows of the same kind."""

import json

import numpy as np
import pytest

from sitework import TABLE, sites, table
from tacit.cli.app import run
from tacit.engines.zenoh.model import load_model, model_facts
from tacit.engines.zenoh.rows import load_rows
from tacit.errors import SiteError


@pytest.fixture
def written(tmp_path):
    job = sites(tmp_path / "net")[0].job
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model_facts(job, np.array([0.1, -0.2, 0.3, 1 / 3]))))
    return path


def test_a_model_comes_back_to_the_last_bit(written):
    model = load_model(written)
    assert model.coef == [0.1, -0.2, 0.3, 1 / 3] and model.simulated and model.loss.name == "logistic"


def test_scores_of_arrays(written, tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(5, 4))
    np.savez(tmp_path / "new.npz", X=X)
    scores = X @ np.array([0.1, -0.2, 0.3, 1 / 3])
    assert load_model(written).scores(tmp_path / "new.npz").tolist() == scores.tolist()
    assert run(["site", "predict", str(written), str(tmp_path / "new.npz")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "score,predicted"
    assert lines[1:] == [f"{score!r},{1 if score > 0 else -1}" for score in scores.tolist()]


def test_scores_of_a_table_are_those_of_its_encoded_rows(tmp_path):
    site = table(tmp_path / "net", TABLE, intercept=True)
    X, _ = load_rows(site)
    path, new = tmp_path / "model.json", tmp_path / "new.csv"
    coef = np.arange(4.0) - 1.5
    path.write_text(json.dumps(model_facts(site.job, coef)))
    new.write_text(TABLE)
    scores = load_model(path).scores(new)
    known = X.any(axis=1)
    assert np.array_equal(scores[known], X[known] @ coef)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}'])
def test_something_else_is_named(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(SiteError, match=r"model\.json"):
        load_model(path)


def test_rows_that_do_not_fit(written, tmp_path):
    np.savez(tmp_path / "new.npz", X=np.zeros((5, 3)))
    with pytest.raises(SiteError, match="4 features"):
        load_model(written).scores(tmp_path / "new.npz")
    np.savez(tmp_path / "other.npz", rows=np.zeros((5, 4)))
    with pytest.raises(SiteError, match=r"other\.npz: must be an \.npz with arrays of numbers: X\."):
        load_model(written).scores(tmp_path / "other.npz")
    with pytest.raises(SiteError, match="no schema"):
        load_model(written).scores(tmp_path / "new.csv")
