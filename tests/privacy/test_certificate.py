"""A certificate follows from its facts, says so in words, and cannot be edited unnoticed."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from privacy.example_run import charges, run_facts, site_facts
from tacit.errors import BudgetExceeded, CertificateError, LedgerError, ParameterError
from tacit.privacy import bounds
from tacit.privacy.certificate import Certificate, epsilon_curve, paper_curve, pure_curve
from tacit.privacy.facts import Ceiling, Charge, LossFacts, SiteFacts
from tacit.privacy.ledger import MemoryLedger

DELTA = 1e-5
SIGMA = math.sqrt(105) / 3


def ledger(
    sites: int = 2, rounds: int = 3, scale: float = 3.0, planned: int | None = None, **run: Any
) -> MemoryLedger:
    book = MemoryLedger(run_facts(sites, planned or rounds, **run), site_facts(sites))
    output = {"output_scale": 1e6} if run.get("output_noise") else {}
    for charge in charges(sites, rounds, scale=scale, **output):
        book.charge(charge)
    return book


def certificate(**settings: Any) -> Certificate:
    return Certificate.from_ledger(ledger(**settings), delta=DELTA)


# -- the numbers ------------------------------------------------------------------------------------


def test_the_very_same_run_by_three_bounds() -> None:
    stated = certificate(sites=5, rounds=100)
    assert stated.paper_epsilon == pytest.approx(64.82, abs=0.005)
    assert stated.pure_epsilon == pytest.approx(58.05, abs=0.005)
    assert stated.epsilon == pytest.approx(2.969, abs=0.0005)
    gaussian = certificate(sites=5, rounds=100, noise="gaussian", scale=SIGMA)
    assert gaussian.epsilon == pytest.approx(2.956, abs=0.0005)
    assert gaussian.pure_epsilon == gaussian.paper_epsilon == math.inf


def test_every_round_counts() -> None:
    one, ten = certificate(rounds=1), certificate(rounds=10)
    assert ten.pure_epsilon == pytest.approx(10 * one.pure_epsilon)
    assert ten.paper_epsilon == pytest.approx(10 * one.paper_epsilon)
    k = 1750 / (2 * 0.5 * 2 * 9044)
    assert one.pure_epsilon == pytest.approx(2 * k * 3.0)
    sure = Certificate.from_ledger(ledger(rounds=1), delta=1e-30)
    assert sure.epsilon == sure.pure_epsilon and sure.costs[0].order is None


def test_the_worst_site_sets_the_figure() -> None:
    sites = [SiteFacts(0, 9044, 2, (0.5,)), SiteFacts(1, 300, 2, (0.5,)), SiteFacts(2, 9044, 1, (0.5,))]
    book = MemoryLedger(run_facts(3, 4), sites)
    for charge in charges(3, 4):
        book.charge(charge)
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.worst_site == 1
    assert stated.epsilon == stated.costs[1].epsilon == max(cost.epsilon for cost in stated.costs)
    assert stated.costs[2].pure_epsilon == pytest.approx(2 * stated.costs[0].pure_epsilon)


def test_a_heterogeneous_site_is_the_sum_of_its_rounds() -> None:
    book = MemoryLedger(run_facts(2, 6, noise="gaussian", regularization=0.3), site_facts(2))
    etas, sigmas = 0.5 * 1.1 ** np.arange(6), SIGMA * 0.9 ** np.arange(6)
    for t in range(6):
        book.charge(Charge(1, t + 1, etas[t], sigmas[t]))
    k = bounds.sample_weight(1750, etas, 2, 9044)
    x = bounds.bend(k, bounds.least_eigenvalue(0.15, etas, 2), 0.25)
    rdp = bounds.renyi_gaussian(bounds.ORDERS[:, None], bounds.displacement(k, 1.0), sigmas, x).sum(axis=1)
    epsilon, order = bounds.to_epsilon(bounds.ORDERS, rdp, DELTA)
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.costs[1].epsilon == pytest.approx(float(epsilon), rel=1e-9)
    assert stated.costs[1].order == order
    assert stated.costs[0].epsilon == 0


def test_sites_alike_cost_alike_and_order_of_charging_does_not_matter() -> None:
    stated = certificate(sites=4, rounds=5)
    assert len(set(stated.costs)) == 1
    book = MemoryLedger(run_facts(4, 5), site_facts(4))
    for charge in reversed(charges(4, 5)):
        book.charge(charge)
    assert Certificate.from_ledger(book, DELTA).to_json() == stated.to_json()


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_a_site_pays_for_its_own_rounds_only(noise: str) -> None:
    book = MemoryLedger(run_facts(2, 9, noise=noise), site_facts(2))
    for charge in charges(2, 9):
        if charge.site == 0 or charge.t <= 4:
            book.charge(charge)
    alone = certificate(rounds=4, noise=noise)
    assert Certificate.from_ledger(book, DELTA).costs[1].epsilon == pytest.approx(alone.epsilon, rel=1e-9)


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_classes_multiply(noise: str) -> None:
    one, many = (ledger(rounds=4, noise=noise, classes=k) for k in (1, 3))
    thrice = Certificate.from_ledger(ledger(rounds=12, noise=noise), DELTA)
    stated = Certificate.from_ledger(many, DELTA)
    assert stated.epsilon == pytest.approx(thrice.epsilon)
    assert stated.pure_epsilon == pytest.approx(thrice.pure_epsilon)
    assert Certificate.from_ledger(one, DELTA).epsilon < stated.epsilon


def test_dual_perturbation_is_penalty_perturbation_with_one_step() -> None:
    assert certificate(mechanism="dual").costs == certificate().costs


def test_primal_perturbation_pays_for_the_sensitivity() -> None:
    stated = certificate(mechanism="primal", tol=1e-3, regularization=0.4, rounds=1)
    k, a = 1750 / (2 * 0.5 * 2 * 9044), 1 + 0.2 / (2 * 0.5 * 2)
    assert stated.pure_epsilon == pytest.approx(3.0 * (2 * k / a + 2e-3))
    assert stated.paper_epsilon == math.inf and not stated.costs[0].paper_condition
    assert not stated.run.idealised


def test_an_unregularised_coordinate_costs_its_share() -> None:
    loss = LossFacts("custom", 1.0, 0.25)
    full = certificate(loss=loss, regularization=50.0, scale=0.2)
    part = certificate(loss=loss, regularization=50.0, regularized=False, scale=0.2)
    none = certificate(loss=loss, regularization=0.0, scale=0.2)
    assert full.pure_epsilon < part.pure_epsilon == none.pure_epsilon


@pytest.mark.parametrize(
    ("loss", "bound"),
    [
        (LossFacts("logistic", 1.0, 0.25), lambda k: bounds.pure_logistic(k, 1.0, 0.2)),
        (LossFacts("logistic", 1.0, 0.3), lambda k: bounds.pure_norm(k, 1.0, 0.2, 1.0, 0.3)),
        (LossFacts("log-cosh", 1.0, 0.5), lambda k: bounds.pure_log_cosh(k, 1.0, 0.2, 0.5)),
        (LossFacts("smooth-hinge", 1.0, 1.0), lambda k: bounds.pure_norm(k, 1.0, 0.2, 1.0, 1.0)),
    ],
)
def test_each_loss_has_its_bound(loss: LossFacts, bound: Any) -> None:
    k = 1750 / (2 * 0.5 * 2 * 9044)
    assert certificate(loss=loss, scale=0.2, rounds=1).pure_epsilon == pytest.approx(float(bound(k)))


def test_output_noise_adds_what_it_covers() -> None:
    ideal = certificate(rounds=2)
    norm = certificate(rounds=2, output_noise="norm", tol=1e-9)
    assert norm.pure_epsilon == pytest.approx(ideal.pure_epsilon + 2 * 2e-9 * 1e6)
    gaussian = certificate(rounds=50, noise="gaussian", scale=SIGMA, output_noise="gaussian", tol=2e5)
    assert gaussian.epsilon > certificate(rounds=50, noise="gaussian", scale=SIGMA).epsilon
    mixed = certificate(rounds=2, output_noise="gaussian", tol=1e-9)
    assert mixed.pure_epsilon == math.inf and math.isfinite(mixed.epsilon)
    assert ideal.run.idealised and not norm.run.idealised


def test_no_noise_is_infinite_and_says_so() -> None:
    book = MemoryLedger(run_facts(2, 2, mechanism="none", noise="none"), site_facts(2))
    book.charge_all([Charge(0, 1, 0.5), Charge(1, 1, 0.5)])
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.epsilon == stated.pure_epsilon == stated.paper_epsilon == math.inf
    assert "No random noise was added" in stated.statement()
    assert json.loads(stated.to_json())["epsilon"] is None
    Certificate.from_json(stated.to_json()).verify()


# -- the paper's condition --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "theta", "holds"),
    [(9044, 0.5, True), (400, 0.5, False), (9044, 0.6, False), (9044, 0.01, False)],
)
def test_the_papers_condition_is_checked(samples: int, theta: float, holds: bool) -> None:
    sites = [SiteFacts(0, samples, 2, (0.5, theta))]
    book = MemoryLedger(run_facts(2, 3), sites)
    for charge in charges(1, 3):
        book.charge(charge)
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.costs[0].paper_condition is holds
    assert ("does NOT apply" in json.loads(stated.to_json())["theorems"][0]) is not holds


# -- what was charged, no less ----------------------------------------------------------------------


def test_a_skipped_charge_is_noticed() -> None:
    book = MemoryLedger(run_facts(2, 4), site_facts(2))
    for charge in charges(2, 4):
        if (charge.site, charge.t) != (1, 3):
            book.charge(charge)
    with pytest.raises(CertificateError, match="site 1 was charged for later rounds but not for round 3"):
        Certificate.from_ledger(book, DELTA)


def test_a_run_that_stopped_pays_for_what_it_charged() -> None:
    stopped = certificate(rounds=4, planned=10)
    assert stopped.costs == certificate(rounds=4).costs
    assert "10 rounds were planned" in stopped.statement()
    assert "were planned" not in certificate(rounds=4).statement()


def test_the_ceiling_stops_the_run_and_nothing_is_recorded() -> None:
    limit = Ceiling(1.5, DELTA)
    book = MemoryLedger(run_facts(2, 100), site_facts(2), [limit, None])
    stopped = 0
    for t in range(1, 101):
        book.charge(Charge(1, t, 0.5, 3.0))
        if not stopped:
            try:
                book.charge(Charge(0, t, 0.5, 3.0))
            except BudgetExceeded as error:
                stopped = t
                assert "past its ceiling of 1.5" in str(error)
    assert book.columns(0).t.tolist() == list(range(1, stopped))
    assert book.columns(1).t.size == 100
    stated = Certificate.from_ledger(book, DELTA)
    assert 1.45 < stated.costs[0].epsilon <= 1.5 < stated.costs[1].epsilon
    with pytest.raises(BudgetExceeded):
        book.charge_all([Charge(0, stopped, 0.5, 3.0)])
    book.charge(Charge(0, stopped, 0.5, 0.001))  # a cheaper round still fits


def test_a_filter_certifies_its_ceiling() -> None:
    limit = Ceiling(2.0, DELTA, order=10.0)
    book = MemoryLedger(run_facts(3, 100, noise="gaussian"), site_facts(3)[:1], limit)
    with pytest.raises(BudgetExceeded):
        for t in range(1, 101):
            book.charge(Charge(0, t, 0.5, SIGMA, degree=1 + t % 2))
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.epsilon == 2.0 and stated.pure_epsilon == math.inf and stated.costs[0].order == 10.0
    assert Certificate.from_ledger(book, DELTA / 2).epsilon == math.inf
    assert Certificate.from_ledger(book, DELTA * 2).epsilon == 2.0
    Certificate.from_json(stated.to_json()).verify()


# -- JSON -------------------------------------------------------------------------------------------


def varied(noise: str = "norm") -> Certificate:
    """Every kind of number in one certificate."""
    run = run_facts(
        4,
        5,
        noise=noise,
        output_noise=noise,
        tol=1e-9,
        grid=2.0**-30,
        clip=1e6,
        regularization=0.01,
        classes=2,
    )
    sites = [SiteFacts(i, 500 + i, 1 + i % 2, (0.5, 0.4, 0.3)) for i in range(3)]
    book = MemoryLedger(run, sites, [None, Ceiling(1e4, 1e-6), None])
    for charge in charges(3, 4):
        book.charge(charge._replace(eta=0.5 + charge.site * charge.t / 7, output_scale=1e6 / charge.t))
    return Certificate.from_ledger(book, DELTA)


def test_json_goes_both_ways() -> None:
    stated = varied()
    again = Certificate.from_json(stated.to_json())
    again.verify()
    stated.verify()
    assert again.to_json() == stated.to_json()
    assert again.costs == stated.costs and again.run == stated.run and again.sites == stated.sites
    assert again.ceilings == stated.ceilings and again.statement() == stated.statement()
    for old, new in zip(stated.releases, again.releases, strict=True):
        for a, b in zip(old, new, strict=True):
            np.testing.assert_array_equal(a, b)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every number in a JSON document."""
    if isinstance(value, dict):
        return [place for key in value for place in numbers(value[key], (*path, key))]
    if isinstance(value, list):
        return [place for key, entry in enumerate(value) for place in numbers(entry, (*path, key))]
    return [path] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_any_number_changed_by_hand_is_caught() -> None:
    source = varied("gaussian").to_json()
    places = numbers(json.loads(source))
    assert len(places) > 60
    for place in places:
        body = json.loads(source)
        inner = body
        for key in place[:-1]:
            inner = inner[key]
        old = inner[place[-1]]
        inner[place[-1]] = old + 1 if isinstance(old, int) else old * 1.001 if old else 0.5
        with pytest.raises(CertificateError):
            Certificate.from_json(json.dumps(body)).verify()


@pytest.mark.parametrize("name", ["epsilon", "pure_epsilon", "paper_epsilon"])
def test_a_wrong_number_is_named_even_under_a_fresh_digest(name: str) -> None:
    stated = varied()
    wrong = dataclasses.replace(stated, **{name: getattr(stated, name) * 0.9})
    with pytest.raises(CertificateError, match=f"`{name}` is stated as"):
        Certificate.from_json(wrong.to_json()).verify()
    with pytest.raises(CertificateError, match=f"`{name}` is stated as"):
        wrong.verify()
    site = stated.costs[1]._replace(**{name: getattr(stated.costs[1], name) * 0.9})
    forged = dataclasses.replace(stated, costs=(stated.costs[0], site, stated.costs[2]))
    with pytest.raises(CertificateError, match=rf"`sites\[1\]\.{name}` is stated as"):
        Certificate.from_json(forged.to_json()).verify()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"simulated": true', '"simulated": false'),
        ("SIMULATED: ", ""),
        ('"paper_condition": false', '"paper_condition": true'),
        ('"epsilon"', '"epsilon": 0.1, "epsilon"'),
        ('"epsilon"', '"epsilom"'),
        ('"format": "tacit certificate 1"', '"format": "other"'),
        ('"loss": {', '"loss": 3, "lost": {'),
        ("{", ""),
        ('"worst_site": 0', '"worst_site": NaN'),
        ('"norm"', '"gaussian"'),
    ],
)
def test_other_changes_are_caught(old: str, new: str) -> None:
    source = varied().to_json()
    assert old in source
    with pytest.raises(CertificateError):
        Certificate.from_json(source.replace(old, new, 1)).verify()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document, whatever is there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inner for place in places(entry, (*path, key)))]


def test_garbage_is_a_certificate_error_and_nothing_else() -> None:
    source = varied("gaussian").to_json()
    everywhere = places(json.loads(source))[1:]
    garbage: list[Any] = [None, "x", [], {}, -1, 0, 10**12, 10**400, 1e308, True, [[1]], 2.5]
    rng = np.random.default_rng()
    for place in everywhere:
        body = json.loads(source)
        inner = body
        for key in place[:-1]:
            inner = inner[key]
        new = garbage[rng.integers(len(garbage))]
        if inner[place[-1]] != new or type(inner[place[-1]]) is not type(new):
            inner[place[-1]] = new
            with pytest.raises(CertificateError):
                Certificate.from_json(json.dumps(body)).verify()


def test_schedules_are_stored_once() -> None:
    book = MemoryLedger(run_facts(200, 40), site_facts(200))
    for charge in charges(200, 40):
        book.charge(charge._replace(eta=0.5 * 1.01**charge.t))
    body = json.loads(Certificate.from_ledger(book, DELTA).to_json())
    assert sum(len(table) for table in body["tables"]) == 40 + 4
    assert len(body["sites"]) == 200


# -- words ------------------------------------------------------------------------------------------


def test_the_statement_is_plain() -> None:
    said = varied().statement()
    for needed in (
        "4 sites",
        "4 rounds",
        "3 of the 4 sites",
        "2 lists",
        "SIMULATED",
        "1 in 100,000",
        "epsilon = ",
    ):
        assert needed in said
    assert "IDEALISED" not in said and "\n" not in said and "  " not in said
    assert "IDEALISED" in certificate().statement()
    real = certificate(simulated=False, output_noise="norm", tol=1e-9, marks=("bounds taken from the data",))
    assert "SIMULATED" not in real.statement() and "NOTE: bounds taken from the data." in real.statement()
    assert json.loads(real.to_json())["status"].startswith("real; solver error covered by norm noise")


# -- curves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_curves_end_at_the_certificate(noise: str) -> None:
    book = ledger(rounds=30, noise=noise, scale=SIGMA if noise == "gaussian" else 3.0)
    stated = Certificate.from_ledger(book, DELTA)
    curve = epsilon_curve(stated)
    assert curve.shape == (30,) and (np.diff(curve) > 0).all()
    assert curve[-1] == pytest.approx(stated.epsilon, rel=1e-6)
    assert pure_curve(stated)[-1] == pytest.approx(stated.pure_epsilon)
    assert paper_curve(book)[-1] == pytest.approx(stated.paper_epsilon)


def test_the_papers_curve_takes_the_worst_site_of_each_round() -> None:
    book = MemoryLedger(run_facts(2, 2), site_facts(2))
    for site, t, eta in ((0, 1, 0.5), (0, 2, 50.0), (1, 1, 1.0), (1, 2, 0.5)):
        book.charge(Charge(site, t, eta, 3.0))
    unit = 1750 * (1.4 * 0.25 + 3.0) / (2 * 9044)
    np.testing.assert_allclose(paper_curve(book), [unit / 0.5, unit * (1 + 1 / 0.5)], rtol=1e-9)


def test_delta_must_be_a_probability() -> None:
    with pytest.raises(ParameterError, match="`delta`"):
        Certificate.from_ledger(ledger(), delta=0.0)
    with pytest.raises(LedgerError):
        ledger().charge(Charge(0, 1, 0.5, 3.0))
