"""Mutants that once survived, each killed by a test of its own."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from support.example_run import DELTA, run_facts, site_facts
from taciturn.errors import BudgetExceeded, LedgerError
from taciturn.privacy.accounting import bounds
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.costs import Releases, renyi_totals
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger


def test_the_tolerance_is_part_of_the_primal_renyi_sensitivity():
    run = run_facts(method="primal", noise="gaussian", tol=0.5)
    releases = Releases.single(site_facts()[0], Charge(0, 1, 0.5, 3.0))
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
