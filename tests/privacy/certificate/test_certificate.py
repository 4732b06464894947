"""A certificate follows from its facts, and every edit is detected."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.example_run import (
    DELTA,
    SIGMA,
    certificate,
    charges,
    ledger,
    run_facts,
    site_facts,
)
from taciturn.core.errors import BudgetExceeded, CertificateError, LedgerError, ParameterError
from taciturn.privacy.accounting import bounds
from taciturn.privacy.accounting.gaussian import gaussian_epsilon
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.claims import epsilon_curve, paper_curve, pure_curve
from taciturn.privacy.certificate.site_costs import site_costs
from taciturn.privacy.costs import Releases, renyi_totals
from taciturn.privacy.facts import Charge, SiteBudget, SiteFacts
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.loss_facts import LossFacts

# -- the numbers ------------------------------------------------------------------------------------


def test_one_run_under_three_bounds() -> None:
    stated = certificate(sites=5, rounds=100)
    assert stated.paper_epsilon == pytest.approx(64.82, abs=0.005)
    assert stated.pure_epsilon == pytest.approx(58.05, abs=0.005)
    assert stated.epsilon == pytest.approx(2.969, abs=0.0005)
    gaussian = certificate(sites=5, rounds=100, noise="gaussian", scale=SIGMA)
    assert gaussian.epsilon == pytest.approx(2.2921, abs=0.0005)
    assert (gaussian.accountant, stated.accountant) == ("gaussian", "renyi")
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
    book = MemoryLedger(run_facts(3, 6, noise="gaussian", regularization=0.3), site_facts(2))
    etas, sigmas = 0.5 * 1.1 ** np.arange(6), SIGMA * 0.9 ** np.arange(6)
    for t in range(6):
        book.charge(Charge(1, t + 1, etas[t], sigmas[t]))
    k = bounds.sample_weight(1750, etas, 2, 9044)
    stated = Certificate.from_ledger(book, DELTA)
    mu = math.sqrt(np.sum((2 * k / sigmas) ** 2))  # sigma < 3.5 a: the bend is free
    assert stated.costs[1].epsilon == pytest.approx(float(gaussian_epsilon(mu, DELTA)), rel=1e-7)
    assert (stated.costs[1].accountant, stated.costs[1].order) == ("gaussian", None)
    assert stated.costs[0].epsilon == 0


def test_sites_alike_cost_alike_and_order_of_charging_does_not_matter() -> None:
    stated = certificate(sites=4, rounds=5)
    assert len(set(stated.costs)) == 1
    book = MemoryLedger(run_facts(4, 5), site_facts(4, eta=(0.5,), scale=(3.0,)))
    for charge in reversed(charges(4, 5)):
        book.charge(charge)
    assert Certificate.from_ledger(book, DELTA).to_json() == stated.to_json()


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_a_site_pays_for_its_own_rounds_only(noise: str) -> None:
    book = MemoryLedger(run_facts(3, 9, noise=noise), site_facts(2))
    for charge in charges(2, 9):
        if charge.site == 0 or charge.t <= 4:
            book.charge(charge)
    alone = certificate(rounds=4, noise=noise)
    rows = [(facts, None, book.columns(facts.site)) for facts in book.sites]
    assert site_costs(book.run, rows, DELTA)[1].epsilon == pytest.approx(alone.epsilon, rel=1e-9)


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_classes_multiply(noise: str) -> None:
    one, many = (ledger(rounds=4, noise=noise, outputs=k) for k in (1, 3))
    thrice = Certificate.from_ledger(ledger(rounds=12, noise=noise), DELTA)
    stated = Certificate.from_ledger(many, DELTA)
    assert stated.epsilon == pytest.approx(thrice.epsilon)
    assert stated.pure_epsilon == pytest.approx(thrice.pure_epsilon)
    assert Certificate.from_ledger(one, DELTA).epsilon < stated.epsilon


def test_dual_perturbation_is_penalty_perturbation_with_one_step() -> None:
    assert certificate(method="dual").costs == certificate().costs


def test_primal_perturbation_pays_for_the_sensitivity() -> None:
    stated = certificate(method="primal", tol=1e-3, regularization=0.6, rounds=1)
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


LOG_COSH = LossFacts("log-cosh", 1.0, 0.5, parameters={"scale": 2.0})
HINGE = LossFacts("smooth-hinge", 1.0, 1.0, parameters={"h": 0.5})


@pytest.mark.parametrize(
    ("loss", "bound"),
    [
        (LossFacts("logistic", 1.0, 0.25), lambda k: bounds.pure_logistic(k, 1.0, 0.2)),
        (LossFacts("custom", 1.0, 0.3), lambda k: bounds.pure_norm(k, 1.0, 0.2, 1.0, 0.3)),
        (
            LossFacts("log-cosh", 1.0, 0.5, parameters={"scale": 2.0}),
            lambda k: bounds.pure_log_cosh(k, 1.0, 0.2, 0.5),
        ),
        (
            LossFacts("smooth-hinge", 1.0, 1.0, parameters={"h": 0.5}),
            lambda k: bounds.pure_norm(k, 1.0, 0.2, 1.0, 1.0),
        ),
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


def test_gaussian_output_noise_is_moved_by_twice_the_tolerance() -> None:
    """Sigma_out = 1e6, with a tolerance so wide that this term dominates the cost; two classes."""
    tol, rounds, x = 2e5, 50, 1750 / (2 * 0.5 * 2 * 9044) / 4
    stated = certificate(
        rounds=rounds, noise="gaussian", scale=SIGMA, output_noise="gaussian", tol=tol, outputs=2
    )
    mu = math.sqrt(2 * rounds * ((8 * x / SIGMA) ** 2 + (2 * tol / 1e6) ** 2))
    assert stated.epsilon == pytest.approx(float(gaussian_epsilon(mu, DELTA)), rel=1e-7)


def test_norm_output_noise_is_moved_by_twice_the_tolerance() -> None:
    """In one dimension it is Laplace noise, whose Renyi divergence has a closed form."""
    tol, alpha, q = 0.4e-6, 1e6, np.array([1.5, 2.0, 10.0, 100.0])
    run = run_facts(3, 1, output_noise="norm", tol=tol, dimension=1)
    release = Releases.single(run, site_facts(1)[0], Charge(0, 1, 0.5, 3.0, alpha))
    extra = renyi_totals(run, release, q) - renyi_totals(replace(run, output_noise=None), release, q)
    u, r = 2 * tol * alpha, q - 1
    laplace = np.log((q * np.exp(r * u) + r * np.exp(-q * u)) / (q + r)) / r
    assert np.all(extra[0] >= laplace)
    assert np.all(extra[0] <= 1.5 * laplace)


def test_no_noise_means_infinite_epsilon() -> None:
    book = MemoryLedger(run_facts(3, 2, method="none", noise="none"), site_facts(2))
    book.charge_all([Charge(0, 1, 0.5), Charge(1, 1, 0.5)])
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.epsilon == stated.pure_epsilon == stated.paper_epsilon == math.inf
    assert "No random noise was added" in stated.statement()
    assert json.loads(stated.to_json())["epsilon"] is None
    Certificate.from_json(stated.to_json()).verify()


@pytest.mark.parametrize("method", ["penalty", "primal"])
@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_row_lengthened_by_rounding_is_charged(method: str, noise: str) -> None:
    settings = {"method": method, "noise": noise, "rounds": 1, "sites": 1}
    stated = certificate(**settings)
    k = 1750 * (1 + 1e-12) / (2 * 0.5 * 2 * 9044)  # such a row passes the check of rows
    if noise == "norm":
        assert stated.pure_epsilon > 2 * k * 3.0
    else:
        assert stated.epsilon > gaussian_epsilon(2 * k / 3.0, DELTA)


# -- the paper's condition --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "theta", "holds"),
    [(9044, 0.5, True), (400, 0.5, False), (9044, 0.6, False), (9044, 0.01, False)],
)
def test_the_papers_condition_is_checked(samples: int, theta: float, holds: bool) -> None:
    sites = [SiteFacts(0, samples, 2, (0.5, theta))]
    book = MemoryLedger(run_facts(3, 3), sites)
    for charge in charges(1, 3):
        book.charge(charge)
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.costs[0].paper_condition is holds
    assert ("does NOT apply" in json.loads(stated.to_json())["theorems"][0]) is not holds


# -- what was charged, no less ----------------------------------------------------------------------


def test_a_skipped_charge_is_noticed() -> None:
    book = MemoryLedger(run_facts(3, 4), site_facts(2))
    for charge in charges(2, 4):
        if (charge.site, charge.t) != (1, 3):
            book.charge(charge)
    with pytest.raises(CertificateError, match="site 1 was charged for later rounds but not for round 3"):
        Certificate.from_ledger(book, DELTA)


def test_the_statement_counts_the_rounds() -> None:
    assert "In each of 4 rounds every site" in certificate(rounds=4).statement()
    assert "In one round every site" in certificate(rounds=1).statement()


def test_the_budget_stops_the_run_and_nothing_is_recorded() -> None:
    limit = SiteBudget(1.5, DELTA)
    planned = site_facts(2, eta=(0.5,), scale=(3.0,))
    book = MemoryLedger(run_facts(3, 100), planned, [limit, None])
    stopped = 0
    for t in range(1, 101):
        book.charge(Charge(1, t, 0.5, 3.0))
        if not stopped:
            try:
                book.charge(Charge(0, t, 0.5, 3.0))
            except BudgetExceeded as error:
                stopped = t
                assert "above its budget of 1.5" in str(error)
    assert book.columns(0).t.tolist() == list(range(1, stopped))
    assert book.columns(1).t.size == 100
    stated = Certificate.from_ledger(book, DELTA)
    assert 1.45 < stated.costs[0].epsilon <= 1.5 < stated.costs[1].epsilon
    with pytest.raises(BudgetExceeded):
        book.charge_all([Charge(0, stopped, 0.5, 3.0)])
    book.charge(Charge(0, stopped, 0.5, 0.001))  # a cheaper round still fits


def test_a_filter_certifies_its_budget() -> None:
    limit = SiteBudget(2.0, DELTA, order=10.0)
    book = MemoryLedger(run_facts(3, 100, noise="gaussian"), site_facts(3)[:1], limit)
    with pytest.raises(BudgetExceeded):
        for t in range(1, 101):
            book.charge(Charge(0, t, 0.5, SIGMA, degree=1 + t % 2))
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.epsilon == 2.0 and stated.pure_epsilon == math.inf and stated.costs[0].order == 10.0
    assert Certificate.from_ledger(book, DELTA / 2).epsilon == math.inf
    assert Certificate.from_ledger(book, DELTA * 2).epsilon == 2.0
    Certificate.from_json(stated.to_json()).verify()


def test_slightly_exceeded_budget_certifies_nothing() -> None:
    book = ledger(rounds=20, noise="gaussian", scale=SIGMA)
    columns = tuple(book.columns(site.site) for site in book.sites)
    orders = np.array([8.0])
    spent = renyi_totals(book.run, Releases.of(book.run, book.sites, columns), orders)
    cost = float(bounds.to_epsilon(orders, spent, DELTA)[0][0])

    def stated(epsilon: float) -> float:
        limits = (SiteBudget(epsilon, DELTA, 8.0),) * len(book.sites)
        return Certificate.from_facts(book.run, book.sites, limits, columns, DELTA).epsilon

    assert cost <= stated(cost * (1 - 1e-12)) < cost * (1 + 1e-9)
    assert stated(cost * (1 - 5e-5)) == math.inf


def test_filter_over_different_rounds_certifies_the_admitted_rounds() -> None:
    limit = SiteBudget(2.0, DELTA, 8.0)
    book = MemoryLedger(run_facts(3, 1500, noise="gaussian"), site_facts(2), limit)
    with pytest.raises(BudgetExceeded):
        for t in range(1, 1501):
            book.charge(Charge(0, t, 1.0002**t, 1.5 * SIGMA))
    assert book.columns(0).t.size > 400
    assert Certificate.from_ledger(book, DELTA).costs[0].epsilon == pytest.approx(2.0, rel=1e-9)


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


def test_the_curve_of_reacting_charges_is_at_the_order_of_the_budget() -> None:
    """The best of many orders, chosen after the run, is no bound for charges that depend on the run."""
    limit = SiteBudget(3.0, DELTA, order=10.0)
    book = MemoryLedger(run_facts(3, 3, noise="gaussian"), site_facts(3), limit)
    for charge in charges(3, 3, scale=10 * SIGMA):
        book.charge(charge)
    stated = Certificate.from_ledger(book, DELTA)
    first = Releases.single(stated.run, stated.sites[0], Charge(0, 1, 0.5, 10 * SIGMA))
    spent = renyi_totals(stated.run, first, np.array([10.0]))
    by_hand = bounds.to_epsilon(np.array([10.0]), spent, DELTA)[0]
    assert epsilon_curve(stated)[0] >= by_hand * (1 - 1e-9)
    assert np.all(epsilon_curve(stated) <= limit.epsilon)


def test_the_papers_curve_takes_the_worst_site_of_each_round() -> None:
    book = MemoryLedger(run_facts(3, 2), site_facts(2))
    for site, t, eta in ((0, 1, 0.5), (0, 2, 50.0), (1, 1, 1.0), (1, 2, 0.5)):
        book.charge(Charge(site, t, eta, 3.0))
    unit = 1750 * (1.4 * 0.25 + 3.0) / (2 * 9044)
    np.testing.assert_allclose(paper_curve(book), [unit / 0.5, unit * (1 + 1 / 0.5)], rtol=1e-9)


def test_delta_must_be_a_probability() -> None:
    with pytest.raises(ParameterError, match="`delta`"):
        Certificate.from_ledger(ledger(), delta=0.0)
    with pytest.raises(LedgerError):
        ledger().charge(Charge(0, 1, 0.5, 3.0))


def test_longer_rows_cost_more() -> None:
    """D grows with X and the bend with its square."""
    loss = LossFacts("custom", 1.0, 0.25)
    k = 1750 / (2 * 0.5 * 2 * 9044)
    stated = certificate(rounds=1, loss=loss, data_norm=2.0)
    assert stated.pure_epsilon == pytest.approx(3.0 * 4 * k + math.log1p(k))
    assert stated.epsilon > certificate(rounds=1, loss=loss).epsilon
    wide = certificate(rounds=9, noise="gaussian", scale=SIGMA, data_norm=2.0)
    assert wide.epsilon > certificate(rounds=9, noise="gaussian", scale=SIGMA).epsilon


def test_the_pure_figure_is_that_of_the_worst_site() -> None:
    book = MemoryLedger(run_facts(3, 1), [SiteFacts(0, 9044, 1, (0.5,)), SiteFacts(1, 2000, 1, (0.5,))])
    book.charge_all(charges(2, 1))
    stated = Certificate.from_ledger(book, DELTA)
    assert stated.pure_epsilon == stated.costs[1].pure_epsilon > 4 * stated.costs[0].pure_epsilon
    assert stated.paper_epsilon == stated.costs[1].paper_epsilon
    assert stated.worst_site == 1


def test_a_number_that_is_off_by_a_millionth_is_found() -> None:
    body = json.loads(certificate().to_json())
    body["epsilon"] *= 1 - 1e-6
    with pytest.raises(CertificateError, match="`epsilon` is stated as"):
        Certificate.from_json(json.dumps(body)).verify()


@pytest.mark.parametrize("head", [{"rows": "x", "digest": 3}, {"rows": 1, "digest": "00"}, {"rows": -1}, [1]])
def test_impossible_ledger_head_is_refused(head: Any) -> None:
    body = json.loads(certificate().to_json()) | {"ledger_head": head}
    with pytest.raises(CertificateError, match=r"ledger_head|cannot be read"):
        Certificate.from_json(json.dumps(body))


def test_more_rounds_than_can_be_computed_in_seconds_are_refused() -> None:
    body = json.loads(certificate().to_json())
    body["run"]["rounds"] = 20_000_000
    with pytest.raises(CertificateError, match="sites times rounds"):
        Certificate.from_json(json.dumps(body))
