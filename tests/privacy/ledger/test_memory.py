"""Every release is charged once, before it happens, and for good."""

from __future__ import annotations

import numpy as np
import pytest

from support.example_run import charges, run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, LedgerError, ParameterError
from taciturn.privacy.facts import Charge, RoundCharges, SiteBudget
from taciturn.privacy.ledger.memory import Ledger, MemoryLedger


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger(run_facts(), site_facts())


def test_charges_come_back_in_the_order_of_the_rounds(ledger: MemoryLedger) -> None:
    for t in (2, 1, 3):
        ledger.charge(Charge(site=1, t=t, eta=0.5 * t, scale=3.0))
    columns = ledger.columns(1)
    np.testing.assert_array_equal(columns.t, [1, 2, 3])
    np.testing.assert_array_equal(columns.eta, [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(columns.degree, [2, 2, 2])
    assert ledger.columns(0).t.size == 0
    assert isinstance(ledger, Ledger)


def test_a_round_is_charged_once(ledger: MemoryLedger) -> None:
    ledger.charge(Charge(site=0, t=1, eta=0.5, scale=3.0))
    with pytest.raises(LedgerError, match="site 0 has been charged for round 1 already"):
        ledger.charge(Charge(site=0, t=1, eta=0.7, scale=9.0))
    assert ledger.columns(0).eta.tolist() == [0.5]


def test_all_sites_or_none(ledger: MemoryLedger) -> None:
    ledger.charge(Charge(site=2, t=1, eta=0.5, scale=3.0))
    with pytest.raises(LedgerError):
        ledger.charge_all(charges(3, 1))
    assert [ledger.columns(i).t.size for i in range(3)] == [0, 0, 1]
    ledger.charge_all([Charge(site=i, t=2, eta=0.5, scale=3.0) for i in range(3)])
    assert [ledger.columns(i).t.size for i in range(3)] == [1, 1, 2]
    with pytest.raises(ParameterError, match="at most one charge per site"):
        ledger.charge_all([Charge(site=0, t=t, eta=0.5, scale=3.0) for t in (3, 4)])


def by_columns(t: int, sites: list[int], eta: float = 0.5, scale: float | None = 3.0) -> RoundCharges:
    scales = None if scale is None else np.full(len(sites), scale)
    return RoundCharges(t, np.array(sites), np.full(len(sites), eta), scales, None)


def test_a_round_by_columns_is_the_same_as_its_charges(ledger: MemoryLedger) -> None:
    other = MemoryLedger(run_facts(), site_facts())
    ledger.charge_round(by_columns(2, [2, 0]))
    for charge in by_columns(2, [2, 0]).each():
        other.charge(charge)
    for site in range(3):
        for mine, theirs in zip(ledger.columns(site), other.columns(site), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("charges", "error", "message"),
    [
        (by_columns(1, [0, 2]), LedgerError, "site 2 has been charged for round 1 already"),
        (by_columns(2, [0, 0]), ParameterError, "at most one charge per site"),
        (by_columns(2, [0, 77]), ParameterError, "one of the ledger's 3 sites; got 77"),
        (by_columns(2, [0], eta=0.0), ParameterError, "`eta` must be"),
        (by_columns(2, [0], scale=np.inf), ParameterError, "`scale` must be"),
        (by_columns(2, [0], scale=None), ParameterError, "`scale` must be"),
        (by_columns(10**6, [0]), ParameterError, "`t` must be within the planned rounds"),
        (by_columns(2, [0])._replace(output_scale=np.ones(1)), ParameterError, "`output_scale` must be left"),
    ],
)
def test_a_round_by_columns_is_refused_as_a_whole(
    ledger: MemoryLedger, charges: RoundCharges, error: type[Exception], message: str
) -> None:
    ledger.charge(Charge(site=2, t=1, eta=0.5, scale=3.0))
    with pytest.raises(error, match=message):
        ledger.charge_round(charges)
    assert [ledger.columns(i).t.size for i in range(3)] == [0, 0, 1]


def test_a_round_by_columns_stops_at_a_budget() -> None:
    ledger = MemoryLedger(run_facts(), site_facts(), SiteBudget(1e-6, 1e-5))
    with pytest.raises(BudgetExceeded):
        ledger.charge_round(by_columns(1, [0, 1, 2]))
    assert [ledger.columns(i).t.size for i in range(3)] == [0, 0, 0]


def test_nothing_refunds(ledger: MemoryLedger) -> None:
    names = {name for name in dir(ledger) if not name.startswith("_")}
    assert names == {"aborted", "budgets", "charge", "charge_all", "charge_round", "columns", "run", "sites"}
    ledger.charge(Charge(site=0, t=1, eta=0.5, scale=3.0))
    ledger.columns(0).eta[:] = 1e9
    ledger.columns(0).t[:] = 3
    assert ledger.columns(0).eta.tolist() == [0.5]
    assert ledger.columns(0).t.tolist() == [1]


@pytest.mark.parametrize(
    ("charge", "message"),
    [
        (Charge(0, 0, 0.5, 3.0), "`t` must be within"),
        (Charge(0, 5, 0.5, 3.0), "`t` must be within"),
        (Charge(9, 1, 0.5, 3.0), "`site` must be one of"),
        (Charge(0, 1, 0.0, 3.0), "`eta` must be"),
        (Charge(0, 1, float("nan"), 3.0), "`eta` must be"),
        (Charge(0, 1, 0.5, float("inf")), "`scale` must be"),
        (Charge(0, 1, 0.5), "`scale` must be"),
        (Charge(0, 1, 0.5, -1.0), "`scale` must be"),
        (Charge(0, 1, 0.5, 3.0, 1e9), "`output_scale` must be left out"),
        (Charge(0, 1, 0.5, 3.0, None, 3), "`degree` must be within"),
    ],
)
def test_a_senseless_charge_is_refused(ledger: MemoryLedger, charge: Charge, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ledger.charge(charge)
    assert ledger.columns(0).t.size == 0


def test_changing_degree_needs_a_filter(ledger: MemoryLedger) -> None:
    with pytest.raises(LedgerError, match="give the site a `SiteBudget` with an `order`"):
        ledger.charge(Charge(0, 1, 0.5, 3.0, None, 1))


def test_run_without_noise_refuses_a_noise_scale() -> None:
    ledger = MemoryLedger(run_facts(method="none", noise="none"), site_facts())
    ledger.charge(Charge(site=0, t=1, eta=0.5))
    with pytest.raises(ParameterError, match="`scale` must be left out"):
        ledger.charge(Charge(site=1, t=1, eta=0.5, scale=3.0))


def test_a_filter_at_a_fixed_order_does_not_look_at_the_pure_cost() -> None:
    """One round is cheap as a pure cost and expensive at order 1.2; the order was fixed in advance."""
    limit = SiteBudget(0.6, 1e-5, order=1.2)
    book = MemoryLedger(run_facts(3, 3), site_facts(2), limit)
    with pytest.raises(BudgetExceeded):
        book.charge(Charge(0, 1, 0.5, 3.0))
    MemoryLedger(run_facts(3, 3), site_facts(2), SiteBudget(0.6, 1e-5)).charge(Charge(0, 1, 0.5, 3.0))


def test_a_filter_counts_the_output_noise_of_every_charge() -> None:
    """The same penalty and noise, less output noise: the second charge costs more than the first."""
    run = run_facts(3, 2, noise="gaussian", output_noise="gaussian", tol=1e-3)
    book = MemoryLedger(run, site_facts(2), SiteBudget(5.0, 1e-5))
    book.charge(Charge(0, 1, 0.5, 3.0, 1.0))
    with pytest.raises(BudgetExceeded):
        book.charge(Charge(0, 2, 0.5, 3.0, 1e-5))
