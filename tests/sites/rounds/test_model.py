"""model.json of a network: plain, exact, and readable by every reader of taciturn models."""

import csv
import json

import numpy as np
import pytest

from support.sitework import TABLE, sites, table
from taciturn.cli.app import run
from taciturn.estimators import PrivateHuberRegressor, PrivateLinearSVC, PrivateLogisticRegression, load_model
from taciturn.estimators.model_file import read_model
from taciturn.objective.losses import LogCosh, SmoothHinge
from taciturn.sites.files.rows import load_rows
from taciturn.sites.rounds.results import model_facts

COEF = np.array([0.1, -0.2, 0.3, 1 / 3])


@pytest.fixture
def written(tmp_path):
    job = sites(tmp_path / "net")[0].job
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model_facts(job, COEF)))
    return path


def test_a_model_comes_back_to_the_last_bit(written):
    model = read_model(written)
    assert model.coef == [COEF.tolist()] and model.simulated and model.loss == "logistic"
    assert model.run["rounds"] == 5 and len(model.run["sha256"]) == 64


def test_it_loads_into_the_estimator(written):
    X = np.random.default_rng(0).normal(size=(50, 4)) / 10
    loaded = load_model(written)
    assert type(loaded[-1]) is PrivateLogisticRegression
    assert np.array_equal(loaded.predict(X), np.where(X @ COEF > 0, 1, -1))
    assert loaded.predict_proba(X)[:, 1] == pytest.approx(1 / (1 + np.exp(-X @ COEF)))


@pytest.mark.parametrize("command", [["predict"], ["site", "predict"]])
def test_predictions_for_arrays(written, tmp_path, capsys, command):
    X = np.random.default_rng(0).normal(size=(5, 4))
    np.savez(tmp_path / "new.npz", X=X)
    assert run([*command, str(written), str(tmp_path / "new.npz")]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [int(line["prediction"]) for line in lines] == np.where(X @ COEF > 0, 1, -1).tolist()


def test_predictions_for_a_table_are_those_of_its_encoded_rows(tmp_path, capsys):
    site = table(tmp_path / "net", TABLE, intercept=True)
    X, _ = load_rows(site)
    path, new = tmp_path / "model.json", tmp_path / "new.csv"
    coef = np.arange(4.0) - 1.5
    path.write_text(json.dumps(model_facts(site.job, coef)))
    new.write_text(TABLE)
    assert run(["predict", str(path), str(new)]) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    label = site.job.label
    said = np.array([line[label.column] == label.positive for line in lines])
    known = X.any(axis=1)
    assert np.array_equal(said[known], (X @ coef > 0)[known]) and known.any()
    assert {line[label.column] for line in lines} <= {label.positive, f"not {label.positive}", ""}
    assert all(line["unreadable"] for line in lines if line[label.column] == "")


@pytest.mark.parametrize(
    ("loss", "kind", "name", "value"),
    [
        (SmoothHinge(0.25), PrivateLinearSVC, "smoothing", 0.25),
        (LogCosh(2.0), PrivateHuberRegressor, "scale", 2.0),
    ],
)
def test_model_file_keeps_the_loss(tmp_path, loss, kind, name, value):
    job = sites(tmp_path / "net")[0].job.model_copy(update={"loss": loss})
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model_facts(job, COEF)))
    loaded = load_model(path)
    assert type(loaded[-1]) is kind and getattr(loaded[-1], name) == value
    assert loaded.predict(np.eye(4)).shape == (4,)


def test_rows_of_another_shape_are_refused(written, tmp_path, capsys):
    np.savez(tmp_path / "new.npz", X=np.zeros((5, 3)))
    assert run(["predict", str(written), str(tmp_path / "new.npz")]) == 1
    assert (
        "X must have 4 columns, one for each feature of the model; got shape (5, 3)"
        in capsys.readouterr().err
    )
    (tmp_path / "new.npz").write_text("x0\n1\n")
    assert run(["predict", str(written), str(tmp_path / "new.npz")]) == 1
    assert "must be an .npz file with arrays of numbers: X" in capsys.readouterr().err
