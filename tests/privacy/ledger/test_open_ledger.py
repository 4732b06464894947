"""A run has one ledger: a new file, one that is open already, or one in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.example_run import run_facts, site_facts
from taciturn.core.errors import LedgerError, ParameterError
from taciturn.privacy.facts import Charge, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger, open_ledger
from taciturn.privacy.ledger.memory import MemoryLedger

RUN, SITES = run_facts(), site_facts()


def test_a_path_is_a_durable_ledger_that_can_still_be_read_afterwards(tmp_path: Path) -> None:
    with open_ledger(str(tmp_path / "a.sqlite"), RUN, SITES, SiteBudget(9.0, 1e-5)) as ledger:
        assert isinstance(ledger, SqliteLedger) and ledger.budgets == (SiteBudget(9.0, 1e-5),) * 3
        ledger.charge(Charge(0, 1, 0.5, 3.0))
    assert ledger.columns(0).t.tolist() == [1]
    with pytest.raises(LedgerError, match="closed"):
        ledger.charge(Charge(0, 2, 0.5, 3.0))
    with SqliteLedger(tmp_path / "a.sqlite", readonly=True) as kept:
        assert kept.columns(0).t.tolist() == [1]


def test_without_a_path_it_is_in_memory() -> None:
    with open_ledger(None, RUN, SITES, SiteBudget(9.0, 1e-5)) as ledger:
        assert isinstance(ledger, MemoryLedger) and ledger.budgets[0] == SiteBudget(9.0, 1e-5)


def test_an_open_ledger_is_taken_as_it_is_and_left_open(tmp_path: Path) -> None:
    named = [replace(site, name=f"clinic {site.site}") for site in SITES]
    with SqliteLedger(tmp_path / "a.sqlite", run_facts(marks=("told",)), named) as mine:
        with open_ledger(mine, RUN, SITES) as ledger:
            assert ledger is mine
        mine.charge(Charge(0, 1, 0.5, 3.0))


@pytest.mark.parametrize(
    ("run", "sites", "words"),
    [
        (run_facts(C=1.0), SITES, "another `C`"),
        (run_facts(outputs=2), SITES, "another `outputs`"),
        (run_facts(rounds=5), SITES, "another `rounds`"),
        (RUN, site_facts(samples=10), "another `samples`"),
        (RUN, SITES[:2], "other sites"),
    ],
)
def test_an_open_ledger_of_other_facts_is_refused(run, sites, words) -> None:
    with pytest.raises(LedgerError, match=words), open_ledger(MemoryLedger(RUN, SITES), run, sites):
        raise AssertionError("opened")


def test_invalid_ledger_argument_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ParameterError, match="must be a path or a ledger; got int"),
        open_ledger(3, RUN, SITES),
    ):
        raise AssertionError("opened")
    budget, mine = SiteBudget(9.0, 1e-5), MemoryLedger(RUN, SITES)
    with pytest.raises(ParameterError, match="`budget`"), open_ledger(mine, RUN, SITES, budget):
        raise AssertionError("opened")
