"""Certificates of masked sums: the assumed colluders of each figure, JSON both ways, and the statement."""

import contextlib
import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from taciturn.core.errors import BudgetExceeded, CertificateError, LedgerError, ParameterError
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.claims import epsilon_curve
from taciturn.privacy.collusion import masked_mu
from taciturn.privacy.facts import Charge, RunFacts, SiteBudget, SiteFacts
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts
from taciturn.privacy.sums import SumFacts

DELTA = 1e-5
ROUNDS = 4


def masked_run(sites=5, colluding=1, std=2.0**18, rounds=ROUNDS, **changes):
    sums = tuple(
        SumFacts(t, "gradient", length=7, sensitivity=0.01, stray=1e-10, grid=2.0**-20, std=std * (1 + t / 9))
        for t in range(1, rounds + 1)
    )
    return RunFacts(
        **{
            "method": "masked",
            "noise": "discrete",
            "loss": LossFacts("logistic", slope_bound=1.0, curvature_bound=0.25),
            "sites": sites,
            "rounds": rounds,
            "dimension": 7,
            "C": 1.0,
            "regularization": 0.0,
            "sums": sums,
            "records": 100 * sites,
            "largest": 100,
            "colluding": colluding,
        }
        | changes
    )


def all_sites(run):
    return [SiteFacts(i, samples=100, degree=run.sites - 1) for i in range(run.sites)]


def charged(run, rounds=None, budget=None, ledger=None):
    book = MemoryLedger(run, all_sites(run), budget) if ledger is None else ledger
    for entry in run.sums[:rounds]:
        for facts in book.sites:
            book.charge(Charge(facts.site, entry.t, scale=entry.std))
    return book


def certified(run, rounds=None, delta=DELTA):
    return Certificate.from_ledger(charged(run, rounds), delta)


def mu_by_hand(run, honest, rounds=None):
    """Section 9, written down a second time."""
    total = 0.0
    for entry in run.sums[:rounds]:
        units = (entry.sensitivity + 2 * entry.stray) / entry.grid + math.sqrt(entry.length)
        total += (units / entry.std) ** 2 / honest
    return math.sqrt(total)


def delta_by_hand(mu, epsilon):
    return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("colluding", [0, 1, 3, None])
def test_figures_follow_from_the_noise_of_the_honest_sites(colluding):
    run = masked_run(colluding=colluding)
    certificate = certified(run)
    honest = 5 - (4 if colluding is None else colluding)
    mu = mu_by_hand(run, honest)
    assert mu <= certificate.mu <= mu * (1 + 1e-10)
    assert certificate.epsilon == certificate.epsilon_against(colluding)
    assert delta_by_hand(mu, certificate.epsilon) == pytest.approx(DELTA, rel=1e-6)
    assert math.isinf(certificate.pure_epsilon) and math.isinf(certificate.paper_epsilon)


def test_the_table_grows_with_the_colluders_and_ends_without_masks():
    run = masked_run(sites=6)
    table = [certified(run).epsilon_against(c) for c in range(6)]
    assert all(np.diff(table) > 0)
    alone = certified(dataclasses.replace(run, colluding=None))
    assert table[-1] == alone.epsilon == certified(run).epsilon_against(None)
    few = certified(dataclasses.replace(run, connectivity=2))
    assert few.against == (table[0], table[1], *[table[-1]] * 4)
    with pytest.raises(ParameterError, match="colluding"):
        certified(run).epsilon_against(6)


def test_rounds_that_were_not_charged_cost_nothing_and_each_that_was_costs_more():
    run = masked_run()
    costs = [certified(run, rounds=k).charged_epsilon for k in range(ROUNDS + 1)]
    assert costs[0] == 0.0 and all(np.diff(costs) > 0)
    planned = {certified(run, rounds=k).epsilon for k in range(1, ROUNDS + 1)}
    assert planned == {costs[-1]} and certified(run, rounds=0).epsilon == 0.0
    np.testing.assert_allclose(epsilon_curve(certified(run)), costs[1:], rtol=1e-12)


def test_json_goes_both_ways_and_every_tampered_figure_is_refused():
    run = masked_run()
    certificate = Certificate.from_json(certified(run).to_json())
    certificate.verify()
    assert certificate.against == certified(run).against and certificate.run.sums == run.sums
    for change in (
        lambda body: body["epsilon_against"].__setitem__(4, 1e-3),
        lambda body: body.update(epsilon=body["epsilon"] / 2),
        lambda body: body.update(mu=body["mu"] / 2),
        lambda body: body["run"].update(colluding=0),
        lambda body: body["run"].update(sites=9),
        lambda body: body["run"]["sums"][0].update(std=1e9),
        lambda body: body["run"]["sums"][2].update(sensitivity=1e-5),
        lambda body: body["sites"][0].update(mu=None),
        lambda body: body["sites"][0].update(charged_rounds=3),
    ):
        body = json.loads(certified(run).to_json())
        change(body)
        with pytest.raises((CertificateError, ParameterError)):
            Certificate.from_json(json.dumps(body)).verify()


def test_statement_names_the_assumed_colluders():
    said = certified(masked_run()).statement()
    table = certified(masked_run()).against
    for words in (
        "controls one site of its choice, but not the site that holds the target record",
        "relies on the noise of the 4 sites that the attacker does not control",
    ):
        assert words in said
    assert "relies neither on masks" in said and "person with several records is protected less" in said
    assert f"epsilon = {math.ceil(table[-1] * 100) / 100:.2f}"[:12] in said
    alone = certified(masked_run(colluding=None)).statement()
    assert "controls every site except the site that holds the target record" in alone
    assert "would hold even if each site" in alone
    assert "computational" not in alone


def test_certificates_of_other_methods_assume_that_all_other_sites_collude():
    run = RunFacts("penalty", "gaussian", masked_run().loss, 5, 2, 3, C=1.0, regularization=0.1)
    book = MemoryLedger(run, [SiteFacts(0, 100, 2, (0.5,))])
    book.charge(Charge(0, 1, eta=0.5, scale=1.0))
    certificate = Certificate.from_ledger(book, DELTA)
    assert {certificate.epsilon_against(c) for c in (0, 2, 4, None)} == {certificate.epsilon}
    assert certificate.mu is None and certificate.against == ()
    with pytest.raises(ParameterError, match="colluding"):
        certificate.epsilon_against(5)


def test_a_budget_stops_the_round_that_would_pass_it_in_memory_and_on_disk(tmp_path):
    run = masked_run()
    two, three = certified(run, rounds=2).charged_epsilon, certified(run, rounds=3).charged_epsilon
    limit = SiteBudget((two + three) / 2, DELTA)
    with pytest.raises(BudgetExceeded, match="round 3"):
        charged(run, budget=limit)
    path = tmp_path / "ledger.sqlite"
    site = SiteFacts(1, samples=10, degree=4)
    with SqliteLedger(path, run, [site], limit) as book:
        charged(run, rounds=2, ledger=book)
    with SqliteLedger(path, run, [site], limit) as book:  # a new process knows what was spent
        with pytest.raises(BudgetExceeded, match="round 3"):
            book.charge(Charge(1, 3, scale=run.sums[2].std))
        with pytest.raises(LedgerError, match="already"):
            book.charge(Charge(1, 2, scale=run.sums[1].std))
        stated = Certificate.from_ledger(book, DELTA)
    assert stated.epsilon == two and stated.head is not None
    Certificate.from_json(stated.to_json()).verify()


@pytest.mark.parametrize("k", range(1, ROUNDS + 1))
def test_budget_admits_exactly_the_affordable_rounds(k):
    """This includes the last round, where one check of the whole run admits every charge."""
    run = masked_run()
    cost = certified(run, rounds=k).charged_epsilon
    charged(run, rounds=k, budget=SiteBudget(cost, DELTA))
    with pytest.raises(BudgetExceeded, match=f"round {k} would raise the epsilon"):
        charged(run, budget=SiteBudget(cost * (1 - 1e-9), DELTA))
    backwards = MemoryLedger(run, all_sites(run)[:1], SiteBudget(cost, DELTA))
    with pytest.raises(BudgetExceeded) if k < ROUNDS else contextlib.nullcontext():
        for entry in reversed(run.sums):
            backwards.charge(Charge(0, entry.t, scale=entry.std))


def test_a_renyi_order_has_no_place_beside_masked_sums():
    with pytest.raises(ParameterError, match="order"):
        charged(masked_run(), budget=SiteBudget(1.0, DELTA, order=8.0))


def test_a_person_at_several_sites_pays_for_the_rounding_of_each():
    person = {"unit": "person", "persons": 500, "records": None}
    one = certified(masked_run(**person))
    assert one.epsilon == certified(masked_run()).epsilon
    coarse = masked_run(**person, sites_per_person=3)
    extra = 2 * (2 * coarse.sums[0].stray / coarse.sums[0].grid + math.sqrt(7))
    units = coarse.sums[0].sensitivity / coarse.sums[0].grid + extra / 2 * 3
    first = certified(coarse, rounds=1)
    assert masked_mu(coarse, [1], 4) == pytest.approx(units / coarse.sums[0].std / 2, rel=1e-9)
    assert "all records of the target person" in first.statement()
    assert "3 sites" in first.run.relation


KEYS = (
    "X25519",
    "known to the two sites alone",
    "ChaCha20",
    "computational",
    "masks that hide the message of each site",
)


@pytest.mark.parametrize("where", ["process", "simulated", "network"])
def test_certificate_claims_key_agreement_only_for_real_sites(where):
    """In one process all keys come from one random draw: no key agreement took place."""
    place = {} if where == "simulated" else {"simulated": False, "where": where}
    run = masked_run(**place)
    sites = all_sites(run)[:1] if where == "network" else all_sites(run)
    body = json.loads(Certificate.from_ledger(charged(run, ledger=MemoryLedger(run, sites)), DELTA).to_json())
    said = " ".join([body["statement"], *body["theorems"], *body["conditions"]])
    if where == "network":
        assert all(word in said for word in KEYS)
    else:
        assert not any(word in said for word in KEYS)
        assert "assumes that the process kept noise and" in said
