"""Certificates that no ledger can produce are refused, however well their hash and figures fit."""

from __future__ import annotations

import json

import numpy as np
import pytest

import taciturn as tt
from support.certified_runs import certified_runs, program_result, several_classes, whitened_penalty
from support.example_run import DELTA, certificate, run_facts, site_facts
from support.forger import (
    TRICKS,
    accepted,
    attack,
    attack_model,
    attack_result,
    attack_sums,
    attack_trick,
    recomputed,
    signed,
)
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.methods.base import Network
from taciturn.methods.programs.masked_descent import PublicFacts
from taciturn.methods.sums.prepared import PreparedSums
from taciturn.objective import Logistic
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts


def body(**settings):
    return json.loads(certificate(**settings).to_json())


def forged(change, **settings):
    """The text of an edited certificate with its hash made to fit."""
    edited = body(**settings)
    change(edited)
    return json.dumps(signed(edited))


def set_degree(edited):
    edited["tables"].append([1000.0])
    for site in edited["sites"]:
        site["charged_degree"] = len(edited["tables"]) - 1


@pytest.mark.parametrize(
    "change",
    [
        set_degree,
        lambda b: b["run"]["loss"].update(slope_bound=0.01),
        lambda b: b["run"]["loss"].update(curvature_bound=0.0),
        lambda b: b["run"]["loss"].update(kind="regression"),
        lambda b: b["run"]["loss"].update(parameters={"h": 1.0}),
        lambda b: b["run"].update(relation="nobody was ever replaced"),
        lambda b: b["run"].update(start="from the data"),
        lambda b: b["run"].update(sites=2),
        lambda b: b.update(audited="missing"),
        lambda b: b["sites"][0].update(note="missing"),
        lambda b: b["run"].update(versions={"taciturn": "0.1.0", "blessed": "yes"}),
        lambda b: b["run"].update(marks=["line\nfeed"]),
        lambda b: b["run"].update(marks=["epsilon = 0.01 at delta = 1e-09, checked by the authority"]),
        lambda b: b["run"].update(marks=["the true cost is 0.01"]),
        lambda b: b["run"].update(marks=["EPSILON one tenth"]),
        lambda b: b["sites"][0].update(name="north, with epsilon = 0.01"),
        lambda b: b["sites"][0].update(budget={"epsilon": 1e-3, "delta": 1e-5, "order": None}),
        lambda b: b.update(ledger_head={"rows": 2, "digest": "0" * 64}),
        lambda b: b["run"].update(C=1e-200),
    ],
)
@pytest.mark.parametrize("figures", ["kept", "made to fit"])
def test_facts_that_no_ledger_can_produce(change, figures):
    text = forged(change)
    if figures == "made to fit":
        fitting = recomputed(json.loads(text)) or text
        text = text if fitting == certificate().to_json() else fitting  # an added key falls away by itself
    assert accepted(text) is None


def test_honest_certificates_are_accepted():
    for settings in ({}, {"noise": "gaussian", "scale": 3.4}, {"output_noise": "norm", "tol": 1e-9}):
        assert accepted(certificate(**settings).to_json()) is not None


def real_certificate(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 60, 4))
    X /= np.linalg.norm(X, axis=2, keepdims=True) * (1 + 1e-12)
    problem = tt.Problem(list(zip(X, np.sign(X[..., 0]), strict=True)), C=20.0, regularization=0.1)
    method = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.1), 0.5, tt.GaussianNoise(2.0))
    tt.train(
        problem,
        tt.Graph.ring(3),
        method,
        rounds=3,
        ledger=tmp_path / "l.sqlite",
        budget=SiteBudget(50.0, 1e-5),
    )
    with SqliteLedger(tmp_path / "l.sqlite", readonly=True) as ledger:
        return Certificate.from_ledger(ledger, DELTA)


def masked_certificate():
    """Of a run of three sites, as it will be after its last round."""
    facts = PublicFacts(3, total=600, largest=300, dimension=5, loss=Logistic(), regularization=0.0)
    tables = tt.MaskedDescent(epsilon=1.0, delta=DELTA, colluding=1).tables(facts, 5)
    prepared = PreparedSums(Network.without_rows([200, 100, 300], [2, 2, 2], total=3, dimension=5), tables)
    return prepared.forecast(prepared.run_facts(simulated=True), DELTA)


@pytest.mark.parametrize(
    ("name", "factor"), [("sensitivity", 0.5), ("sensitivity", 0.999), ("stray", 0.5), ("length", 0.2)]
)
@pytest.mark.parametrize("t", [1, 2, 3])
def test_sensitivity_of_a_sum_must_follow_from_loss_and_records(name, factor, t):
    """A consistent forgery: one sum claims less, and every figure is adjusted."""
    edited = json.loads(masked_certificate().to_json())
    entry = edited["run"]["sums"][t - 1]
    entry[name] = int(entry[name] * factor) if name == "length" else entry[name] * factor
    assert recomputed(signed(edited)) is None
    assert accepted(json.dumps(signed(edited))) is None


@pytest.mark.parametrize("change", [{"records": 6000}, {"records": 599}, {"records": None}, {"largest": 299}])
def test_the_number_of_records_is_that_of_all_sites(change):
    edited = json.loads(masked_certificate().to_json())
    edited["run"].update(change)
    assert recomputed(signed(edited)) is None


def test_consistent_forgery_of_sums_is_rejected():
    honest = masked_certificate()
    assert accepted(honest.to_json()) is not None
    assert attack_sums(honest, 60, seed=3) > 50


def test_fuzzed_certificates_with_a_valid_hash_never_understate_epsilon(tmp_path):
    """`python -m tools.forge` tries ten thousand forgeries; this test tries some hundreds."""
    for number, honest in enumerate(
        (certificate(), certificate(noise="gaussian", scale=3.4), real_certificate(tmp_path))
    ):
        refused, believed = attack(honest, 120, seed=number)
        assert refused > 60, (refused, believed)


def certified_model(folder):
    """The content of a model file, with its certificate."""
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (600, 4))
    clf = tt.PrivateLogisticRegression(classes=[False, True], colluding=1, max_rounds=3, random_state=0)
    tt.save_model(clf.fit(X, X[:, 0] > 0), folder / "model.json")
    return json.loads((folder / "model.json").read_text())


def test_masked_sums_have_a_loss_that_the_verifier_knows():
    """A loss called 'custom' may claim any slope: epsilon 1 would become 0.148."""
    edited = json.loads(masked_certificate().to_json())
    slope = {"slope_bound": 0.148 / 2, "curvature_bound": 0.25, "kind": "classification", "parameters": {}}
    edited["run"]["loss"] = {"name": "custom", **slope}
    for entry in edited["run"]["sums"][1:]:
        entry["sensitivity"] *= 0.148
    assert recomputed(signed(edited)) is None and accepted(json.dumps(signed(edited))) is None


def test_mark_is_shown_and_cannot_imitate_a_figure():
    from taciturn.privacy.facts import ABORTED, PLANNED

    cut = "an earlier run was cut off in round 3 of 41, with epsilon = 1.000 at delta = 1e-05 on record"
    old = cut.replace("an earlier run", "a run before this one") + ": that comes on top"
    weighted = "rows are weighted by class, with public weights: no 0.5, yes 1"
    earlier = "rows count by their class, by public numbers: no 0.5, yes 1"
    known = (PLANNED, ABORTED, f"{cut}. This cost comes in addition", old, weighted, earlier)
    for mark in (*known, "bounds taken from the data"):
        run_facts(simulated=False, where="" if mark == PLANNED else "process", marks=(mark,))
    for mark in (cut, weighted + "; epsilon = 0.1", "cost: 0.1", "½ of it", "ε is small", "delta"):
        with pytest.raises(ParameterError, match="`marks` must not look like a stated cost"):
            run_facts(marks=(mark,))
    site_facts(name="delta")
    with pytest.raises(ParameterError, match="`name` of a site must not look like a stated cost"):
        site_facts(name="Delta = 1e-9")


@pytest.mark.parametrize("name", TRICKS)
def test_known_forgeries_cannot_lower_a_figure(name, tmp_path):
    honest = [certificate(rounds=6), masked_certificate(), real_certificate(tmp_path)]
    honest += [several_classes(), whitened_penalty()]
    assert sum(attack_trick(entry, TRICKS[name], 10, seed=5) for entry in honest) > 5


@pytest.mark.slow
def test_forged_certificates_of_every_kind_of_run_cannot_lower_a_figure():
    for name, honest in certified_runs().items():
        assert accepted(honest.to_json()) is not None, name
        assert attack(honest, 30, seed=3)[0] > 15, name
        assert attack_sums(honest, 20, seed=4) > 10, name


def test_certificate_of_another_result_is_rejected(tmp_path):
    assert attack_result(program_result(), tmp_path, 40, seed=2) == 40


def test_certificate_of_another_model_is_rejected(tmp_path):
    assert attack_model(certified_model(tmp_path), tmp_path, 40, seed=2) == 40


def test_the_loss_of_a_name_has_its_own_bounds():
    LossFacts("smooth-hinge", 1.0, 1.0, parameters={"h": 0.5})
    LossFacts("log-cosh", 1.0, 0.5, "regression", {"scale": 2.0})
    LossFacts("custom pinball", 3.0, 0.0)
    for name, slope, bend, parameters in (
        ("logistic", 1.0, 0.2, {}),
        ("logistic", 0.5, 0.25, {}),
        ("smooth-hinge", 1.0, 0.5, {"h": 0.5}),
        ("log-cosh", 1.0, 0.5, {"scale": 1.0}),
        ("smooth-hinge", 1.0, 1.0, {}),
        ("squared", 1.0, 1.0, {}),
    ):
        with pytest.raises(ParameterError):
            LossFacts(name, slope, bend, parameters=parameters)


@pytest.mark.parametrize("eta", [1e305, 1e101, 1e-101, 1e-320])
def test_magnitudes_that_floats_would_lose_are_refused(eta):
    with pytest.raises(ParameterError, match="`eta` must be between"):
        MemoryLedger(run_facts(), site_facts()).charge(Charge(0, 1, eta, 3.0))
    with pytest.raises(ParameterError, match="`scale` must be between"):
        MemoryLedger(run_facts(), site_facts()).charge(Charge(0, 1, 0.5, eta))
    with pytest.raises(ParameterError, match="`C` must be between"):
        run_facts(C=eta)
    with pytest.raises(ParameterError, match="`dual_step` must stay between"):
        site_facts(dual_step=(eta,))


def test_more_neighbours_than_other_sites_are_refused():
    with pytest.raises(ParameterError, match="`degree` must be below the number of sites, 2; got 2"):
        MemoryLedger(run_facts(2), site_facts(2))


@pytest.mark.parametrize("sites", [100_000, 10**15])
def test_a_masked_network_that_is_too_large_is_refused_at_once(sites):
    edited = json.loads(masked_certificate().to_json())
    edited["run"]["sites"] = sites
    with pytest.raises(CertificateError, match="of a masked run"):
        Certificate.from_json(json.dumps(signed(edited)))


def test_whole_numbers_are_compared_exactly():
    """A tiny float is not site 0: a statement that looks for the worst site would not find it."""
    text = forged(lambda edited: edited.update(worst_site=1e-300))
    with pytest.raises(CertificateError, match="`worst_site` is stated as 1e-300"):
        Certificate.from_json(text).check()
