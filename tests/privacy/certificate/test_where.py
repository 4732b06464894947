"""The location of the rows is a fact of a run; the statement follows from it and cannot contradict it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from support.example_run import DELTA, certificate, charges, run_facts, site_facts
from support.forger import accepted, signed
from support.problems import make_sites
from support.sitework import sites
from taciturn.core.errors import CertificateError, ParameterError
from taciturn.privacy.certificate import document
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import PLANNED, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.sites.rounds.prepare import make_ready

REAL = {"simulated": False, "output_noise": "norm", "tol": 1e-9}


def one_site(folder: Path, where: str) -> Certificate:
    run = run_facts(rounds=2, where=where, **REAL)
    with SqliteLedger(folder / "ledger.sqlite", run, site_facts(1)) as ledger:
        for charge in charges(1, 2, output_scale=1e6):
            ledger.charge(charge)
        return Certificate.from_ledger(ledger, DELTA)


def test_one_process_that_held_all_rows_states_it():
    problem = tt.Problem(make_sites(n=3), C=20.0, regularization=0.1)
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(2.0))
    run = tt.train(problem, tt.Graph.ring(3), method, rounds=2)
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 2))
    fitted = tt.PrivateLogisticRegression(sites=3, effort="quick", rounds=2).fit(X, X[:, 0] > 0)
    masked = tt.PrivateLogisticRegression(sites=3, colluding=1, rounds=3).fit(X, X[:, 0] > 0)
    for made in (run.certificate(), fitted.certificate_, masked.certificate_):
        assert made.run.where == "process"
        said = made.statement()
        assert "without pooling" not in said and "left a site" not in said and "leaves a site" not in said
        assert "One process held the records of all 3 sites" in said
        assert json.loads(made.to_json())["status"].startswith("real, in one process")
        made.verify()


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("folders", "3 sites on one machine trained one model together. Each site was a process that read"),
        ("network", "3 sites trained one model together without pooling their records"),
    ],
)
def test_separate_sites_state_where_they_ran(tmp_path, where, words):
    made = one_site(tmp_path, where)
    assert words in made.statement() and "before anything left a site" in made.statement()
    Certificate.from_json(made.to_json()).verify()


def test_simulated_and_planned_runs_are_stated_as_such():
    assert certificate().run.where == "simulated"
    assert certificate().statement().split("\n\n")[1].startswith("One process simulated 3 sites")
    assert run_facts(simulated=False, marks=(PLANNED,)).where == "planned"
    for settings in (REAL, {"where": "network"}, {"marks": (PLANNED,), "where": "process"}):
        with pytest.raises(ParameterError, match="`where` must be one of"):
            run_facts(**settings)


def test_a_job_tells_machines_from_folders_by_its_addresses(tmp_path):
    site = sites(tmp_path, site={"output_noise": {"kind": "gaussian", "std": 1e-5}})[0]
    assert site.job.where == "" and make_ready(site).run.where == "simulated"
    real = site.job.model_copy(update={"seed": None})
    assert real.where == "folders"
    far = real.sites[1].model_copy(update={"endpoint": "tls/hospital.example:7447"})
    assert real.model_copy(update={"sites": (real.sites[0], far, real.sites[2])}).where == "network"


def test_one_site_of_a_process_or_all_sites_of_a_network_are_refused(tmp_path):
    whole = run_facts(rounds=1, where="process", **REAL)
    for run, number in ((whole, 1), (replace(whole, where="network"), 3)):
        ledger = MemoryLedger(run, site_facts(number))
        with pytest.raises(CertificateError, match="must cover"):
            Certificate.from_ledger(ledger, DELTA)
    made = one_site(tmp_path, "network")
    body = json.loads(made.to_json())
    assert accepted(json.dumps(signed(body | {"ledger_head": None}))) is None


def test_edited_location_is_rejected_while_the_statement_contradicts_it(tmp_path):
    made = one_site(tmp_path, "folders")
    body = json.loads(made.to_json())
    for where in ("network", "process", "simulated", "planned", "", "cloud"):
        forged = body | {"run": body["run"] | {"where": where}}
        assert accepted(json.dumps(signed(forged))) is None
    other = replace(made, run=replace(made.run, where="network"), stated=None)
    assert accepted(document.text(document.document(other))).epsilon == made.epsilon


# -- a delta above one over the number of records ----------------------------------------------------


@pytest.mark.parametrize("delta", [0.5, 0.02])
def test_a_large_delta_is_refused_unless_allowed_and_marked(delta, tmp_path):
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (90, 2))
    settings = {"sites": 3, "effort": "quick", "rounds": 2, "delta": delta, "random_state": 0}
    with pytest.raises(ParameterError, match="`delta` must be at most 1/90"):
        tt.PrivateLogisticRegression(**settings).fit(X, X[:, 0] > 0)
    made = tt.PrivateLogisticRegression(**settings, large_delta=True).fit(X, X[:, 0] > 0).certificate_
    assert "LARGE DELTA" in made.statement() and "LARGE DELTA" in json.loads(made.to_json())["status"]
    Certificate.from_json(made.to_json()).verify()
    with pytest.raises(ParameterError, match="`delta` must be at most 1/90"):
        tt.plan(epsilon=1.0, delta=delta, samples=30, graph=tt.Graph.ring(3), dimension=2, effort="quick")
    with pytest.raises(ParameterError, match=r"`delta` must be at most 1/72.*set `large_delta`"):
        sites(tmp_path, job={"delta": delta})


def test_a_delta_of_one_over_the_number_of_records_is_still_admitted():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 2))
    settings = {"sites": 2, "effort": "quick", "rounds": 1, "random_state": 0}
    made = tt.PrivateLogisticRegression(**settings, delta=0.01).fit(X, X[:, 0] > 0).certificate_
    assert not made.large_delta and "LARGE" not in made.statement()


def test_real_run_is_certified_at_a_large_delta_only_if_allowed():
    problem = tt.Problem(make_sites(n=3), C=20.0, regularization=0.1)
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(2.0))
    run = tt.train(problem, tt.Graph.ring(3), method, rounds=1, budget=SiteBudget(99.0, 1e-5))
    with pytest.raises(ParameterError, match="`delta` must be at most"):
        run.certificate(0.4)
    assert run.certificate(0.4, large_delta=True).large_delta


def test_allowing_a_large_delta_is_part_of_the_agreed_job(tmp_path):
    plain = sites(tmp_path)[0].job
    given = plain.model_dump(by_alias=True, exclude_defaults=True)
    insisted, again = (type(plain).model_validate(given | more) for more in ({"large_delta": True}, {}))
    assert again.hash == plain.hash != insisted.hash


@pytest.mark.parametrize("delta", [1e-320, 5e-324, 1e-30])
def test_smallest_delta_can_be_stated(delta):
    ledger = MemoryLedger(run_facts(rounds=1), site_facts(3))
    for charge in charges(3, 1):
        ledger.charge(charge)
    made = Certificate.from_ledger(ledger, delta)
    assert "except for a chance of at most 1 in 10 to the power of" in made.statement()
    assert json.loads(made.to_json())["delta"] == delta
    Certificate.from_json(made.to_json()).verify()
