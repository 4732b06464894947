"""`taciturn train` from Python: the same folder, and the fitted estimator at hand."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.cli.app import run
from taciturn.core.errors import ParameterError


def test_a_job_is_trained_from_python(tmp_path):
    assert run(["init", str(tmp_path / "study")]) == 0
    done = tt.train_job(tmp_path / "study" / "job.toml")
    assert done.estimator.certificate_.epsilon <= done.job.epsilon
    assert {path.name for path in done.files} >= {"model.json", "certificate.json", "ledger.sqlite"}
    stated = tt.Certificate.from_json((done.folder / "certificate.json").read_text())
    stated.verify()
    assert np.isfinite(done.estimator.coef_).all()
    with pytest.raises(ParameterError, match="must be a new or empty folder"):
        tt.train_job(tmp_path / "study" / "job.toml")


def test_a_job_of_curves_shows_them_in_its_report(tmp_path):
    assert run(["init", str(tmp_path / "study")]) == 0
    job = tmp_path / "study" / "job.toml"
    job.write_text(job.read_text() + "\n[encoding]\ncurves = 4\nsurfaces = 0\n")
    done = tt.train_job(job)
    page = (done.folder / "report.html").read_text()
    assert "What each column adds" in page and page.count("<polyline") == 3
    loaded = tt.load_model(done.folder / "model.json")
    assert loaded.has_curves and loaded.curve("age").x[-1] == 110
    assert loaded.certificate_.epsilon <= 1
