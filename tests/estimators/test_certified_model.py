"""A model and its certificate belong together: `load_model` refuses any other pair."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import CertificateError, ParameterError, TaciturnWarning

FORMAT_1 = Path(__file__).parents[1] / "privacy" / "certificate" / "format_1"


def rows(features: int = 4) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (900, features))
    return X, (X[:, 0] > 0).astype(int)


def fitted(features: int = 4, seed: int | None = 0, **changes):
    settings = {"classes": [0, 1], "colluding": 1, "max_rounds": 3, "random_state": seed, **changes}
    return tt.PrivateLogisticRegression(**settings).fit(*rows(features))


@pytest.fixture
def saved(tmp_path):
    tt.save_model(fitted(), tmp_path / "model.json")
    return tmp_path / "model.json"


def exchange(path, certificate) -> None:
    """Put another certificate into the file."""
    entries = json.loads(path.read_text())
    entries["certificate"] = json.loads(certificate.to_json())
    path.write_text(json.dumps(entries))


def test_the_digest_is_that_of_the_model_in_python_and_in_the_file(saved):
    clf, loaded = fitted(), tt.load_model(saved)
    digest = clf.certificate_.released
    assert loaded.certificate_.released == digest and digest.kind == "model" and digest.shape == (1, 4)
    loaded.certificate_.verify()


@pytest.mark.parametrize(
    "other",
    [
        lambda: fitted(seed=5),
        lambda: fitted(features=3),
        lambda: fitted(fit_intercept=False),
        lambda: fitted(max_rounds=4),
    ],
    ids=["another fit", "another width", "no intercept", "other rounds"],
)
def test_the_certificate_of_another_fit_is_refused(saved, other):
    exchange(saved, other().certificate_)
    with pytest.raises(CertificateError, match="belongs to another"):
        tt.load_model(saved)


def test_a_model_without_noise_cannot_borrow_a_certificate(tmp_path):
    tt.save_model(fitted(epsilon=math.inf), tmp_path / "a.json")
    exchange(tmp_path / "a.json", fitted().certificate_)
    with pytest.raises(CertificateError, match="belongs to another release"):
        tt.load_model(tmp_path / "a.json")


def test_the_certificate_of_a_score_is_not_that_of_a_model(saved):
    score = tt.private_score(fitted(), *rows(), epsilon=0.5, colluding=1, random_state=0)
    assert score.certificate.released.kind == "counts"
    exchange(saved, score.certificate)
    with pytest.raises(CertificateError, match="belongs to a score or a description"):
        tt.load_model(saved)


@pytest.mark.parametrize("key", ["coef", "intercept"])
def test_changed_coefficients_are_noticed(saved, key):
    entries = json.loads(saved.read_text())
    entries[key] = (np.array(entries[key]) + 1e-12).tolist()
    saved.write_text(json.dumps(entries))
    with pytest.raises(CertificateError, match="it was written for other values"):
        tt.load_model(saved)


def test_a_model_that_was_changed_after_its_fit_is_not_saved(tmp_path):
    clf = fitted()
    clf.coef_ = clf.coef_ * 2
    with pytest.raises(ParameterError, match="`fitted` was changed after its fit"):
        tt.save_model(clf, tmp_path / "a.json")


def test_a_regression_is_certified_in_the_units_of_its_target(tmp_path):
    X, _ = rows()
    model = tt.PrivateHuberRegressor(target_scale=10.0, colluding=1, max_rounds=3, random_state=0)
    tt.save_model(model.fit(X, 10 * X[:, 0]), tmp_path / "a.json")
    assert tt.load_model(tmp_path / "a.json").certificate_.released == model.certificate_.released


def test_several_classes_are_certified_together(tmp_path):
    X, _ = rows()
    y = np.digitize(X[:, 0], [-0.2, 0.2])
    for trust in ({"colluding": 1}, {"effort": "quick"}):
        settings = {"classes": [0, 1, 2], "random_state": 0, **trust}
        clf = tt.PrivateLogisticRegression(max_rounds=3, **settings).fit(X, y)
        tt.save_model(clf, tmp_path / "a.json")
        assert tt.load_model(tmp_path / "a.json").certificate_.released.shape == (3, 4)


def test_certificates_of_runs_and_descriptions_name_their_release():
    from taciturn.privacy.certificate.released import Released

    X, y = rows()
    found = tt.private_description({"a": X[:, 0]}, {"a": (-1, 1)}, epsilon=0.5, random_state=0)
    found.certificate.check_released(Released.counts(found.released.tables))
    weights = {"C": 20.0, "regularization": 0.1}
    problem = tt.Problem(list(zip(X.reshape(3, 300, 4), 2.0 * y.reshape(3, 300) - 1, strict=True)), **weights)
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0))
    run = tt.simulate(problem, tt.Graph.ring(3), method, rounds=2, repeats=2, seed=0)
    run.certificate(1e-5).check_released(Released.of("vectors", run.coef))
    with pytest.raises(CertificateError, match="other values"):
        run.certificate(1e-5).check_released(Released.of("vectors", run.coef * 2))


def test_a_model_of_an_earlier_format_is_loaded_with_a_note(tmp_path):
    shutil.copy(FORMAT_1 / "model.json", tmp_path)
    with pytest.warns(TaciturnWarning) as notes:
        loaded = tt.load_model(tmp_path / "model.json")
    assert any("does not identify the model" in str(note.message) for note in notes)
    assert loaded.certificate_.form == 1
    for name, match in (("score", "belongs to a score"), ("gaussian", "does not fit the facts")):
        entries = json.loads((FORMAT_1 / "model.json").read_text())
        entries["certificate"] = json.loads((FORMAT_1 / f"{name}.json").read_text())
        (tmp_path / "model.json").write_text(json.dumps(entries))
        with pytest.raises(CertificateError, match=match):
            tt.load_model(tmp_path / "model.json")
