"""Mutants that once survived, each killed by a test of its own."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from support.example_run import DELTA, run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, CertificateError, LedgerError, ParameterError
from taciturn.methods.base import Network
from taciturn.methods.programs.descent_losses import loss_facts
from taciturn.methods.programs.masked_descent import MaskedDescent, PublicFacts
from taciturn.methods.sums.prepared import PreparedSums
from taciturn.objective import Logistic, SmoothHinge
from taciturn.privacy.accounting import bounds, sensitivity
from taciturn.privacy.accounting.budgets import BUDGET_ORDERS, Limit
from taciturn.privacy.accounting.gaussian import gaussian_mu
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.site_costs import check_releases
from taciturn.privacy.collusion import masked_slack
from taciturn.privacy.costs import Releases, exact_slack, float_delta, renyi_totals, usable_delta
from taciturn.privacy.facts import Charge, Columns, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.ledger.pricing import run_cost

THREE = Network.without_rows([200, 100, 300], [2, 2, 2], total=3, dimension=5)


def test_the_tolerance_is_part_of_the_primal_renyi_sensitivity():
    run = run_facts(method="primal", noise="gaussian", tol=0.5)
    releases = Releases.single(run, site_facts()[0], Charge(0, 1, 0.5, 3.0))
    k = 1750 / (2 * 0.5 * 2 * 9044)
    found = renyi_totals(run, releases, bounds.ORDERS)[0]
    np.testing.assert_allclose(found, bounds.ORDERS * ((2 * k + 2 * 0.5) / 3.0) ** 2 / 2, rtol=1e-9)


def test_the_price_of_a_charge_is_that_of_the_site_with_so_many_samples():
    """Equal numbers at a large site and a small one: the second pays more than the first."""
    large, small = site_facts(2)
    ledger = MemoryLedger(run_facts(), [large, replace(small, samples=100)], SiteBudget(3.0, DELTA))
    ledger.charge(Charge(0, 1, 0.5, 3.0))
    with pytest.raises(BudgetExceeded):
        ledger.charge(Charge(1, 1, 0.5, 3.0))


@pytest.mark.parametrize("level", ["OFF", "NORMAL"])
def test_a_connection_that_may_lose_a_commit_is_refused(tmp_path, level):
    db = sqlite3.connect(tmp_path / "state.sqlite", isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {level}")
        with pytest.raises(LedgerError, match="synchronous = FULL"):
            SqliteLedger(db, run_facts(), site_facts())
        db.execute("PRAGMA synchronous = FULL")
        SqliteLedger(db, run_facts(), site_facts()).close()
    finally:
        db.close()


def test_sites_that_differ_in_dual_step_or_budget_alone_have_costs_of_their_own():
    """The paper's condition follows from the dual step; a filter at a fixed order certifies its budget."""
    near, far = site_facts(2)
    steps = MemoryLedger(run_facts(rounds=1), [near, replace(far, dual_step=(0.9,))])
    limits = MemoryLedger(run_facts(rounds=1), site_facts(2), [SiteBudget(5.0, DELTA, order=8.0), None])
    for ledger in (steps, limits):
        for site in (0, 1):
            ledger.charge(Charge(site, 1, 0.5, 3.0))
    held = [cost.paper_condition for cost in Certificate.from_ledger(steps, DELTA).costs]
    assert held == [True, False]
    first, second = (cost.epsilon for cost in Certificate.from_ledger(limits, DELTA).costs)
    assert first == 5.0 > second


# -- budgets over several runs ------------------------------------------------------------------------


def whole_numbers(noise: str = "gaussian") -> Certificate:
    """Three sites of very different size, whose releases are whole numbers."""
    facts = {"noise": noise, "output_noise": noise, "tol": 1e-7, "grid": 2.0**-40, "clip": 64.0}
    run = run_facts(3, 4, **facts, integers=True, simulated=False, where="process")
    sites = [replace(facts, samples=n) for facts, n in zip(site_facts(), (9044, 60, 900), strict=True)]
    ledger = MemoryLedger(run, sites)
    for t in range(1, 5):
        for site in range(3):
            ledger.charge(Charge(site, t, 0.5, 3.0, output_scale=1e5 if noise == "norm" else 1e-5))
    return Certificate.from_ledger(ledger, DELTA)


def test_a_budget_is_charged_what_the_worst_site_costs_at_every_order():
    planned = whole_numbers("norm")
    cost = run_cost(planned)
    table = Releases.of(planned.run, planned.sites, planned.releases)
    each = renyi_totals(planned.run, table, BUDGET_ORDERS)
    assert (each[1] > 2 * each[0]).all() and (each[1] > 2 * each[2]).all()
    low = BUDGET_ORDERS < 3  # where Renyi divergence says less than mu^2 does
    np.testing.assert_allclose(np.array(cost.renyi)[low], each[1][low], rtol=1e-9)


def test_a_budget_is_charged_for_discrete_noise_and_for_floats():
    """It refuses the run that exceeds the reserve for either."""
    planned = whole_numbers()
    cost = run_cost(planned)
    assert cost.slack == exact_slack(planned.run).epsilon > 0
    assert cost.failure == exact_slack(planned.run).failure > 0
    assert cost.floats == float_delta(planned.run) > 4e-13
    small = replace(cost, mu=1e-6, renyi=(1e-12,) * len(BUDGET_ORDERS), alone=9.0)
    limit = Limit("gaussian", 1.0, 1e-7)
    assert limit.admits([small, small])
    assert not limit.admits([small] * int(1e-10 / cost.floats + 2))
    assert not limit.admits([replace(small, slack=6e-4)] * 2)


def test_a_budget_is_charged_for_the_discrete_noise_of_masked_sums():
    facts = PublicFacts(3, total=600, largest=300, dimension=5, loss=Logistic(), regularization=0.0)
    tables = MaskedDescent(epsilon=1.0, delta=DELTA, colluding=1).tables(facts, 5)
    prepared = PreparedSums(THREE, tables)
    run = prepared.run_facts(simulated=True)
    cost = run_cost(prepared.forecast(run, DELTA))
    slack = masked_slack(run, range(1, 6), 2)
    assert (cost.slack, cost.failure) == (slack.epsilon, slack.failure)
    assert cost.slack > 0 and cost.failure > 0


def test_reserve_for_discrete_noise_is_also_taken_from_delta():
    """delta' = (1 - 1e-3) (1 - 2e-9) e^-A delta, A = 1e-3 epsilon: docs/privacy.md, Theorem P."""
    epsilon, delta = 40.0, 1e-5
    A = 1e-3 * epsilon
    inner = delta * (1 - 1e-3) * (1 - 2e-9) * np.exp(-A)
    by_hand = gaussian_mu(epsilon - A, inner) ** 2
    assert Limit("gaussian", epsilon, delta).most == pytest.approx(float(by_hand), rel=1e-9)
    without = gaussian_mu(epsilon - A, inner * np.exp(A)) ** 2
    assert float(without) > float(by_hand) * (1 + 1e-4)


@pytest.mark.parametrize("t", [2, 3, 4])
def test_smaller_slope_is_accepted_only_for_the_first_gradient(t):
    """At f = 0 a logistic gradient is half as steep; a later sum that claims so much less is refused."""
    facts = PublicFacts(3, total=600, largest=300, dimension=5, loss=Logistic(), regularization=0.0)
    method = MaskedDescent(epsilon=1.0, delta=DELTA, colluding=1, bounded=False)
    run = PreparedSums(THREE, method.tables(facts, 5)).run_facts(simulated=True)
    assert [entry.part for entry in run.sums] == ["second moments"] + ["gradient"] * 4
    first, later = run.sums[1], run.sums[t]
    assert later.sensitivity == pytest.approx(2 * first.sensitivity)
    halved = replace(later, sensitivity=first.sensitivity)
    with pytest.raises(ParameterError, match=f"`sensitivity` of sum {t + 1} must be at least"):
        replace(run, sums=(*run.sums[:t], halved, *run.sums[t + 1 :]))


def test_what_a_renyi_budget_leaves_at_each_order_converts_to_no_more_than_the_budget():
    limit = Limit("renyi", 3.0, 1e-5)
    epsilon, delta = limit._inner()
    room = limit._room()
    usable = room > 0
    q = BUDGET_ORDERS[usable]
    converted = room[usable] + np.log1p(-1 / q) - (np.log(delta) + np.log(q)) / (q - 1)
    assert np.all(converted <= epsilon * (1 + 1e-12)) and np.all(converted >= epsilon * (1 - 1e-6))


@pytest.mark.parametrize("X", [0.5, 1.0, 2.0])
def test_the_error_of_moments_covers_one_sum_of_x_and_one_of_its_square(X):
    one_sum = sensitivity.gradient_stray(1.0, 0.0, 1000, 1.0)
    assert sensitivity.moments_stray(1000, X) == pytest.approx(one_sum * (X + X * X), rel=1e-14, abs=0)
    assert one_sum > 1000 * 2.0**-53


@pytest.mark.parametrize(("degree", "refused"), [(2, False), (3, True), (4, True)])
def test_a_site_of_three_never_has_three_neighbours_whatever_its_filter_allows(degree, refused):
    run, site, limit = run_facts(rounds=1), site_facts()[0], SiteBudget(9.0, DELTA, order=8.0)
    columns = Columns.of(site, [Charge(0, 1, 0.5, 3.0, degree=degree)])
    with pytest.raises(CertificateError) if refused else nullcontext():
        check_releases(run, replace(site, degree=1), limit, columns)


@pytest.mark.parametrize("change", [{"site": 3}, {"degree": 3}])
def test_one_site_outside_of_the_network_is_refused_whatever_the_others_are(change):
    with pytest.raises(ParameterError, match="must be below the number of sites, 3"):
        MemoryLedger(run_facts(), [*site_facts(2), replace(site_facts()[2], **change)])


def test_sites_that_released_nothing_cost_nothing_beside_those_that_did():
    """An uncharged round adds no cost, wherever it is in the table."""
    run = run_facts(noise="gaussian")
    sites = site_facts(2)
    columns = [Columns.of(sites[0], [Charge(0, 1, 0.5, 3.0)]), Columns.of(sites[1], [])]
    costs = renyi_totals(run, Releases.of(run, sites, columns), bounds.ORDERS)
    assert np.all(costs[0] > 0) and not costs[1].any()
    alone = renyi_totals(run, Releases.single(run, sites[0], Charge(0, 1, 0.5, 3.0)), bounds.ORDERS)
    assert np.array_equal(costs[0], alone[0])


def test_rounds_without_a_charge_add_no_output_noise_to_the_cost():
    run, sites = run_facts(noise="gaussian", output_noise="gaussian", tol=1e-3), site_facts(2)
    columns = [Columns.of(sites[0], [Charge(0, 1, 0.5, 3.0, output_scale=0.1)]), Columns.of(sites[1], [])]
    costs = renyi_totals(run, Releases.of(run, sites, columns), bounds.ORDERS)
    assert np.all(costs[0] > 0) and not costs[1].any()


def test_a_delta_of_which_floats_take_more_than_half_is_refused():
    run = whole_numbers().run
    share = float_delta(run)
    with pytest.raises(ParameterError, match="drawn in floating point is inexact"):
        usable_delta(run, 1.8 * share)
    assert usable_delta(run, 2.2 * share) == pytest.approx(1.2 * share, rel=1e-6, abs=0)


@pytest.mark.parametrize("h", [0.25, 0.5, 1.0, 2.0])
def test_the_slope_at_zero_of_a_smooth_hinge_is_that_of_the_loss(h):
    facts = loss_facts(SmoothHinge(h))
    assert facts.slope_at_zero == pytest.approx(abs(float(SmoothHinge(h).slope(np.zeros(1))[0])), rel=1e-12)


@pytest.mark.parametrize(("order", "named"), [(8.0, True), (None, False)])
def test_a_certificate_names_a_filter_only_if_charges_may_react_to_the_run(order, named):
    ledger = MemoryLedger(
        run_facts(noise="gaussian"), site_facts(), [SiteBudget(9.0, DELTA, order=order)] * 3
    )
    for site in range(3):
        ledger.charge(Charge(site, 1, 0.5, 3.0))
    told = Certificate.from_ledger(ledger, DELTA).to_json()
    assert ("A Renyi filter limits their sum" in told) == named
