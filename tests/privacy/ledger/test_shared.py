"""One charge covers K outputs: never K charges, and never an uncovered output."""

from __future__ import annotations

import numpy as np
import pytest

from support.example_run import run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, LedgerError
from taciturn.privacy.facts import Charge, RoundCharges, SiteBudget
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.privacy.ledger.shared import SharedLedger


def shared(outputs: int, **options: object) -> SharedLedger:
    return SharedLedger(MemoryLedger(run_facts(outputs=outputs), site_facts(), **options))


def round_of(t: int, sites: list[int], eta: float = 0.5) -> RoundCharges:
    return RoundCharges(t, np.array(sites), np.full(len(sites), eta), np.full(len(sites), 3.0), None)


def test_three_outputs_of_a_round_are_one_charge_and_a_fourth_is_refused() -> None:
    ledger = shared(3)
    for _ in range(3):
        ledger.charge_round(round_of(1, [0, 1, 2]))
        assert [ledger.columns(i).t.tolist() for i in range(3)] == [[1]] * 3
    with pytest.raises(LedgerError, match="charged for 3 releases in round 1 of site 0"):
        ledger.charge_round(round_of(1, [0, 1, 2]))
    with pytest.raises(LedgerError, match="This release is refused: either 3 releases were made"):
        ledger.charge(Charge(2, 1, 0.5, 3.0))


def test_charge_is_recorded_before_the_first_output_is_released() -> None:
    ledger = shared(2)
    ledger.charge(Charge(0, 1, 0.5, 3.0))
    assert ledger.ledger.columns(0).t.tolist() == [1]


def test_an_output_with_other_numbers_is_not_covered() -> None:
    ledger = shared(2)
    ledger.charge(Charge(0, 1, 0.5, 3.0))
    with pytest.raises(LedgerError, match="settings other than those in the charge"):
        ledger.charge(Charge(0, 1, 0.5, 9.0))
    ledger.charge(Charge(0, 1, 0.5, 3.0))


def test_outputs_may_come_in_any_order_and_grouping() -> None:
    ledger = shared(2)
    ledger.charge_round(round_of(1, [0, 1]))
    ledger.charge_round(round_of(2, [0, 1]))
    ledger.charge_round(round_of(1, [0, 1, 2]))
    ledger.charge_round(round_of(2, [1, 2]))
    assert [ledger.columns(i).t.tolist() for i in range(3)] == [[1, 2]] * 3
    ledger.charge_round(round_of(2, [0, 2]))
    with pytest.raises(LedgerError):
        ledger.charge(Charge(2, 2, 0.5, 3.0))


def test_a_refused_charge_covers_no_output() -> None:
    ledger = shared(2, budget=SiteBudget(1e-3, 1e-5))
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            ledger.charge_round(round_of(1, [0, 1]))
    assert ledger.columns(0).t.size == 0


def test_failed_solve_of_any_output_is_recorded() -> None:
    ledger = shared(2)
    ledger.charge(Charge(0, 1, 0.5, 3.0))
    assert not ledger.aborted
    ledger.charge(Charge(0, 1, 0.5, 3.0, aborted=True))
    assert ledger.aborted
