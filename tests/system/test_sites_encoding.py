"""Jobs with `[encoding]` between real sites: the model of one process on the rows of the public map."""

from __future__ import annotations

import json

import numpy as np
import pytest

import taciturn as tt
from support.asked import SCHEMA, make_asked, patients
from support.siteprocess import run_all
from taciturn.data.tables.unit_ball import UnitBallScaling
from taciturn.jobs.verify_run import verify_run

pytestmark = pytest.mark.process

FIELDS = SCHEMA["fields"][:3]
JOB = {
    "kind": "train",
    "schema": {"fields": FIELDS},
    "label": {"column": "died", "classes": ["no", "yes"]},
    "encoding": {"curves": 4, "surfaces": 6},
    "rounds": 5,
    "C": 1.0,
    "regularization": 0.01,
    "seed": 5,
}
MASKED = {"method": "masked", "colluding": 1}
PENALTY = {"whiten": 0.5, "dual_step": 0.5, "clip": 64.0, "grid": 2.0**-34, "tol": 1e-9, "epsilon": None}
OWN = {
    "penalty": {"kind": "geometric", "start": 0.5, "ratio": 1.04},
    "noise": {"kind": "gaussian", "std": 1.0},
    "output_noise": {"kind": "gaussian", "std": 1e-5},
    "budget": {"epsilon": 1000.0},
}


def trained(paths):
    """The model of a run of real processes: the same bytes at every site."""
    run_all(paths)
    states = [path.parent / "state" for path in paths]
    for state in states:
        verify_run(state)
    (model,) = {(state / "model.json").read_bytes() for state in states}
    return json.loads(model), tt.load_model(states[0] / "model.json")


def mapped(tables, *, intercept):
    """The rows of every site by the public encoder, and the labels."""
    encoder = tt.data.BoundedEncoder(
        tt.data.Schema.from_dict({"fields": FIELDS}),
        curves=4,
        surfaces=6,
        missing="indicator",
        intercept=intercept,
    )
    names = [field["name"] for field in FIELDS]
    X = [encoder.fit_transform({name: table[name] for name in names}) for table in tables]
    return X, [np.where(np.array(table["died"]) == "yes", 1.0, -1.0) for table in tables]


def test_whitened_descent_on_mapped_rows(tmp_path):
    tables = [patients(500, seed) for seed in range(3)]
    model, loaded = trained(make_asked(tmp_path, tables, job=JOB | MASKED))
    assert model["encoding"]["curves"] == 4 and model["encoding"]["missing"] == "indicator"
    X, y = mapped(tables, intercept=False)
    ball = UnitBallScaling(1.0, intercept=True)
    method = tt.MaskedDescent(epsilon=2.0, delta=1e-5, colluding=1, constant=ball.constant)
    rows = [ball.rows(part) for part in X]
    problem = tt.Problem(list(zip(rows, y, strict=True)), C=1.0, regularization=0.01)
    run = tt.simulate(problem, "complete", method, rounds=5, seed=5, progress=False)
    assert run.certificate(1e-5).run.sums[0].part == "second moments"
    coef, intercept = ball.model(run.coef[0])
    assert (coef[0].tolist(), intercept[0]) == (model["coef"][0], model["intercept"][0])
    np.testing.assert_allclose(loaded.decision_function(tables[0]), X[0] @ coef[0] + intercept[0], rtol=1e-9)


def test_the_papers_method_in_whitened_coordinates_on_mapped_rows(tmp_path):
    tables = [patients(500, seed) for seed in range(3)]
    model, loaded = trained(make_asked(tmp_path, tables, job=JOB | PENALTY, site=OWN))
    X, y = mapped(tables, intercept=True)
    problem = tt.Problem(list(zip(X, y, strict=True)), C=1.0, regularization=0.01)
    method = tt.PenaltyPerturbation(
        tt.Geometric(0.5, 1.04),
        0.5,
        tt.GaussianNoise(1.0),
        output_noise=tt.GaussianNoise(1e-5),
        whiten=0.5,
        clip=64.0,
        grid=2.0**-34,
    )
    run = tt.simulate(problem, "complete", method, rounds=5, seed=5, tol=1e-9, progress=False)
    assert np.array(model["whitening"])[:, :-1].T.tolist() == run.coordinates[0].tolist()
    scores, expected = loaded.decision_function(tables[0]), run.decide(X[0])[0]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8)  # both solvers stop within tol = 1e-9
