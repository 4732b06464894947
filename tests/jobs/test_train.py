"""`taciturn train` from Python: the same folder, and the fitted estimator at hand."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.cli.app import run
from taciturn.errors import ParameterError


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
