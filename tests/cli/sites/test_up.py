"""`taciturn site up` plans its settings for the number of rounds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import taciturn as tt
from support.sitework import network
from taciturn.cli.sites.up import local_settings, up
from taciturn.core.errors import MissingExtra, ParameterError, SiteError
from taciturn.schedules import from_dict
from taciturn.sites.trial.rehearsal import FEATURES, ROWS, accuracy, generated_rows, watch

SITES, REPEATS = 5, 5


def method(own, dual_step):
    return tt.PenaltyPerturbation(
        penalty=from_dict(own["penalty"]),
        dual_step=dual_step,
        noise=tt.GaussianNoise(from_dict(own["noise"]["std"])),
    )


def quality(rounds: int) -> tuple[float, float]:
    """Accuracy of the settings for so many rounds, in simulation, and what they are certified to cost."""
    job, own = local_settings(SITES, rounds, 3.0)
    assert job["rounds"] == rounds and own["budget"] == {"epsilon": 3.0}
    rows = [generated_rows(ROWS, seed=i) for i in range(SITES)]
    problem = tt.Problem(rows, C=job["C"], regularization=job["regularization"])
    run = tt.simulate(
        problem,
        "ring",
        method(own, job["dual_step"]),
        rounds=rounds,
        repeats=REPEATS,
        seed=0,
        tol=1e-6,
        progress=False,
    )
    held_out = generated_rows(2000, seed=99)
    return float(np.mean([accuracy(f, held_out) for f in run.average()])), run.certificate(1e-5).epsilon


def test_more_rounds_keep_accuracy_and_budget():
    few, spent_few = quality(20)
    many, spent_many = quality(150)
    assert few > 0.84 and many > few - 0.02
    assert max(spent_few, spent_many) <= 3.0 and min(spent_few, spent_many) > 2.9


def test_two_sites_have_settings_too():
    job, own = local_settings(2, 6, 1.0)
    assert job["delta"] == 1e-5 and own["output_noise"]["kind"] == "gaussian"
    assert FEATURES < ROWS


def test_unreachable_budget_is_reported():
    with pytest.raises(ParameterError, match="epsilon"):
        local_settings(5, 20, -1.0)


def test_missing_zenoh_is_reported_before_a_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("taciturn.cli.sites.up.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="zenoh"):
        up(local=2, rounds=2, epsilon=3.0, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_site_that_was_killed_before_it_logged_anything_is_named(tmp_path):
    path = network(tmp_path, [(0, 1)])[0]
    (path.parent / "log.txt").touch()
    killed = SimpleNamespace(poll=lambda: -9)
    with pytest.raises(SiteError, match="site-0 failed: killed before it logged anything"):
        watch([path], [killed], lambda rounds: None)
