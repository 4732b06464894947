"""`colluding`, the number of other sites that may collude: every estimator stays within its budget."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from support.bare_models import bare_model
from taciturn.cli.app import run
from taciturn.core.errors import ParameterError


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    made = np.random.default_rng(0)
    X = made.normal(size=(6000, 5)) / 4
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return X, X @ np.array([4.0, -3.0, 0.0, 1.0, 0.0]) + 0.3 * made.normal(size=6000)


def test_masked_sums_beat_local_noise_at_the_same_budget(table):
    X, score = table
    y = score > 0.2
    losses = {}
    for colluding, options in ((None, {"effort": "quick"}), (1, {})):
        model = tt.PrivateLogisticRegression(
            sites=20, graph="ring", colluding=colluding, random_state=0, **options
        ).fit(X, y)
        assert 0.99 < model.certificate_.epsilon <= 1.0
        chance = np.clip(model.predict_proba(X)[np.arange(len(y)), y.astype(int)], 1e-12, 1)
        losses[colluding] = -np.log(chance).mean()
    assert losses[1] < losses[None]


def test_every_site_has_the_same_model_and_the_certificate_names_the_assumed_colluders(table):
    X, score = table
    model = tt.PrivateLogisticRegression(sites=5, colluding=1, classes=[False, True]).fit(X, score > 0)
    assert (model.site_coef_ == model.coef_).all() and model.site_coef_.shape == (5, 1, 5)
    certificate = model.certificate_
    assert certificate.run.colluding == 1 and not certificate.run.simulated
    assert certificate.epsilon_against(0) < certificate.epsilon < certificate.epsilon_against(4)
    tt.Certificate.from_json(certificate.to_json()).verify()
    assert model.plan_.certificate.epsilon == pytest.approx(certificate.epsilon)


def test_several_classes_share_one_release_and_rare_ones_are_found(table, tmp_path):
    X, score = table
    y = np.digitize(score, [-1.0, 1.4])
    model = tt.PrivateLogisticRegression(sites=5, colluding=1, random_state=0).fit(X, y)
    assert model.certificate_.epsilon <= 1.0 and set(np.unique(model.predict(X))) == {0, 1, 2}
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    tt.save_model(model, tmp_path / "model.json")
    loaded, bare = tt.load_model(tmp_path / "model.json"), bare_model(tmp_path / "model.json")
    for other in (loaded, bare):
        assert other.predict_proba(X) == pytest.approx(model.predict_proba(X), abs=1e-12)
        assert np.array_equal(other.predict(X), model.predict(X))


def test_a_support_vector_classifier_and_a_regression(table):
    X, score = table
    svc = tt.PrivateLinearSVC(sites=5, colluding=2, random_state=0).fit(X, score > 0)
    assert svc.score(X, score > 0) > 0.85 and svc.certificate_.epsilon <= 1.0
    huber = tt.PrivateHuberRegressor(sites=5, colluding=1, random_state=0).fit(X, score)
    assert np.corrcoef(huber.predict(X), score)[0, 1] > 0.9 and huber.certificate_.epsilon <= 1.0


def test_the_ledger_on_disk_holds_what_was_spent(table, tmp_path):
    X, score = table
    path = tmp_path / "ledger.sqlite"
    model = tt.PrivateLogisticRegression(
        sites=3, colluding=1, rounds=5, classes=[False, True], ledger=path
    ).fit(X[:300], score[:300] > 0)
    with tt.SqliteLedger(path, readonly=True) as ledger:
        stated = tt.Certificate.from_ledger(ledger, delta=1e-5)
    assert stated.epsilon == model.certificate_.epsilon and stated.rounds == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"colluding": 4}, "`colluding` must be from 0 to 3"),
        ({"colluding": -1}, "`colluding` must be"),
        ({"colluding": 1.5}, "`colluding` must be a whole number"),
        ({"colluding": 1, "delta": 0}, "`delta` must be above 0 for masked sums"),
        ({"colluding": 1, "noise": "norm"}, "`noise` must be 'best'"),
        ({"colluding": 1, "effort": "quick"}, "`effort` must be left out with `colluding`"),
        ({"colluding": 1, "rounds": 10, "max_rounds": 5}, "`rounds` and `max_rounds` exclude each other"),
        ({"colluding": 1, "C": 1e9}, "`C` must not exceed"),
        ({"colluding": 1, "method": tt.ADMM(1.0)}, "exclude each other"),
    ],
)
def test_impossible_settings_give_a_one_line_error(table, options, words):
    X, score = table
    with pytest.raises(ParameterError, match=words):
        tt.PrivateLogisticRegression(**options).fit(X, score > 0)
    with pytest.raises(ParameterError, match="needs 3 or more sites, but all rows belong to one site"):
        tt.PrivateLogisticRegression(colluding=1).fit(X, score > 0, site=[0] * len(X))
    with pytest.raises(ParameterError, match="PrivateLogisticRegression trains all classes at once"):
        tt.PrivateLinearSVC(colluding=1).fit(X, np.digitize(score, [-1, 1]))


def test_plan_and_train_take_it_too(tmp_path, capsys):
    arguments = "plan --epsilon 1 --samples 900 --sites 5 --dimension 6 --colluding 1".split()
    assert run(arguments) == 0
    assert "epsilon if 4 sites collude" in capsys.readouterr().out
    assert run(["init", str(tmp_path / "study")]) == 0
    job = tmp_path / "study" / "job.toml"
    job.write_text(job.read_text().replace("epsilon = 1.0", "colluding = 0\nepsilon = 1.0", 1))
    done = tt.train_job(job)
    assert done.estimator.certificate_.run.method == "masked"
    assert 0.99 < done.estimator.certificate_.epsilon <= 1.0
