"""Every ledger keeps what `Ledger` promises: one charge per round, before the release, permanent, atomic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.example_run import charges, run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, LedgerError, ParameterError
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import Charge, RoundCharges, RunFacts, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import Ledger, MemoryLedger
from taciturn.privacy.ledger.shared import SharedLedger

Open = Callable[..., Ledger]
KINDS: dict[str, Callable[..., Any]] = {
    "memory": lambda path, *facts: MemoryLedger(*facts),
    "disk": lambda path, *facts: SqliteLedger(path, *facts),
    "shared, memory": lambda path, *facts: SharedLedger(MemoryLedger(*facts)),
    "shared, disk": lambda path, *facts: SharedLedger(SqliteLedger(path, *facts)),
}


@pytest.fixture(params=KINDS)
def begin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Begins a ledger of three sites and four rounds; more than one, if need be."""
    with ExitStack() as stack:

        def opened(run: RunFacts | None = None, budget: SiteBudget | None = None) -> Ledger:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite"
            facts = run or run_facts()
            ledger: Ledger = KINDS[request.param](path, facts, site_facts(), budget)
            close = getattr(getattr(ledger, "ledger", ledger), "close", None)
            if close is not None:
                stack.callback(close)
            return ledger

        yield opened


def round_of(t: int, sites: list[int], eta: float = 0.5, scale: float | None = 3.0) -> RoundCharges:
    scales = None if scale is None else np.full(len(sites), scale)
    return RoundCharges(t, np.array(sites), np.full(len(sites), eta), scales, None)


def counts(ledger: Ledger) -> list[int]:
    return [ledger.columns(i).t.size for i in range(3)]


def test_it_is_a_ledger_and_holds_its_facts(begin: Open) -> None:
    ledger = begin(budget=SiteBudget(9.0, 1e-5))
    assert isinstance(ledger, Ledger)
    assert ledger.run == run_facts() and list(ledger.sites) == site_facts()
    assert ledger.budgets == (SiteBudget(9.0, 1e-5),) * 3 and counts(ledger) == [0, 0, 0]
    assert not ledger.aborted


def test_what_was_charged_comes_back_in_the_order_of_the_rounds(begin: Open) -> None:
    ledger = begin()
    for t in (2, 1, 4):
        ledger.charge(Charge(site=1, t=t, eta=0.5 * t, scale=3.0 / t))
    columns = ledger.columns(1)
    assert columns.t.tolist() == [1, 2, 4] and columns.eta.tolist() == [0.5, 1.0, 2.0]
    assert columns.scale.tolist() == [3.0, 1.5, 0.75] and columns.degree.tolist() == [2, 2, 2]
    assert counts(ledger) == [0, 3, 0]


def test_a_round_is_charged_once(begin: Open) -> None:
    ledger = begin()
    ledger.charge(Charge(0, 1, 0.5, 3.0))
    for again in (Charge(0, 1, 0.5, 3.0), Charge(0, 1, 0.7, 9.0)):
        with pytest.raises(LedgerError):
            ledger.charge(again)
    with pytest.raises(LedgerError):
        ledger.charge_round(round_of(1, [0]))
    assert ledger.columns(0).eta.tolist() == [0.5]


def test_a_round_of_several_sites_is_the_same_as_its_charges(begin: Open) -> None:
    together, apart = begin(), begin()
    together.charge_round(round_of(2, [2, 0]))
    for charge in round_of(2, [2, 0]).each():
        apart.charge(charge)
    for site in range(3):
        for one, other in zip(together.columns(site), apart.columns(site), strict=True):
            np.testing.assert_array_equal(one, other)


def test_all_sites_or_none(begin: Open) -> None:
    ledger = begin()
    ledger.charge(Charge(2, 1, 0.7, 3.0))
    for wrong in (round_of(1, [0, 1, 2]), round_of(2, [0, 1, 7]), round_of(2, [0, 1], eta=np.nan)):
        with pytest.raises((LedgerError, ParameterError)):
            ledger.charge_round(wrong)
        assert counts(ledger) == [0, 0, 1]
    ledger.charge_round(round_of(2, [0, 1, 2]))
    assert counts(ledger) == [1, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        Charge(0, 0, 0.5, 3.0),
        Charge(0, 5, 0.5, 3.0),
        Charge(3, 1, 0.5, 3.0),
        Charge(0, 1, 0.0, 3.0),
        Charge(0, 1, float("inf"), 3.0),
        Charge(0, 1, 0.5, 0.0),
        Charge(0, 1, 0.5, float("nan")),
        Charge(0, 1, 0.5, 3.0, output_scale=1.0),
    ],
    ids=str,
)
def test_what_cannot_be_charged_is_refused_and_leaves_no_trace(begin: Open, wrong: Charge) -> None:
    ledger = begin()
    with pytest.raises(ParameterError):
        ledger.charge(wrong)
    assert counts(ledger) == [0, 0, 0]
    ledger.charge(Charge(0, 1, 0.5, 3.0))
    assert counts(ledger) == [1, 0, 0]


def test_a_budget_stops_a_site_before_it_passes_it_and_no_other(begin: Open) -> None:
    full = begin(run_facts(rounds=3))
    for charge in charges(3, 3):
        full.charge(charge)
    limit = SiteBudget(1.0001 * Certificate.from_ledger(full, 1e-5).charged_epsilon, 1e-5)
    ledger = begin(budget=limit)
    for t in (1, 2, 3):
        ledger.charge(Charge(0, t, 0.5, 3.0))
    with pytest.raises(BudgetExceeded):
        ledger.charge(Charge(0, 4, 0.5, 3.0))
    with pytest.raises(BudgetExceeded):
        ledger.charge_round(round_of(4, [0, 1]))
    assert counts(ledger) == [3, 0, 0]
    ledger.charge(Charge(1, 4, 0.5, 3.0))
    assert counts(ledger) == [3, 1, 0]


def test_failed_solve_is_charged_and_recorded(begin: Open) -> None:
    ledger = begin()
    ledger.charge(Charge(0, 1, 0.5, 3.0, aborted=True))
    assert ledger.aborted and counts(ledger) == [1, 0, 0]
    with pytest.raises(LedgerError):
        ledger.charge(Charge(0, 1, 0.5, 3.0))


def test_threads_charge_each_round_once(begin: Open, request: pytest.FixtureRequest) -> None:
    rounds = 10 if "disk" in request.node.callspec.params["begin"] else 200
    ledger, refused = begin(run_facts(rounds=rounds)), []

    def work() -> None:
        for charge in charges(3, rounds):
            try:
                ledger.charge(charge)
            except LedgerError:
                refused.append(charge)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts(ledger) == [rounds] * 3 and len(refused) == 3 * 3 * rounds
    assert (head := getattr(ledger, "head", None)) is None or head.rows == 1 + 3 * rounds


def test_nothing_takes_a_charge_back(begin: Open) -> None:
    names = {name for name in dir(begin()) if not name.startswith("_")}
    fixed = {"aborted", "budgets", "columns", "run", "sites", "head", "ledger"}
    assert names - fixed <= {"charge", "charge_all", "charge_round", "close", "transaction"}


def test_all_ledgers_give_the_same_certificate(begin: Open) -> None:
    ledger, memory = begin(), MemoryLedger(run_facts(), site_facts())
    for t in range(1, 5):
        ledger.charge_round(round_of(t, [0, 1, 2], eta=0.5 * 1.1**t))
        memory.charge_round(round_of(t, [0, 1, 2], eta=0.5 * 1.1**t))
    one, other = (Certificate.from_ledger(book, 1e-5) for book in (ledger, memory))
    assert (one.epsilon, one.pure_epsilon, one.worst_site) == (
        other.epsilon,
        other.pure_epsilon,
        other.worst_site,
    )
