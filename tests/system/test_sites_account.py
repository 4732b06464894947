"""The account of a table on real processes: it loses a run, it is spent, or a partner sends a bad key."""

import shutil

import pytest

from sites.state.test_account import CHANGES, LOST, change, edit
from support.linkcut import until
from support.sitering import KINDS
from taciturn import Budget
from taciturn.core.errors import ExitCode
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.state.account import open_account

CASES = [(3, "penalty", CHANGES[0]), (3, "masked", CHANGES[2])]  # all of them: tests/sites/state


@pytest.mark.parametrize(("size", "kind", "what"), CASES)
def test_an_account_that_loses_the_run_while_it_goes_on_stops_the_site(ring_of, tmp_path, size, kind, what):
    """It stops before the next charge; with the right file restored, the same command finishes the run."""
    ring = ring_of(size, kind, rounds=4)
    place, kept = open_account(ring.sites[0]).place, tmp_path / "kept"
    terms = ring.sites[0].file.budget
    earlier = Budget(tmp_path / "earlier", terms.epsilon, terms.delta).path
    ring.start(*range(1, size))
    ring.start(0, hold=3)
    until((ring.paths[0].parent / "held").exists)
    shutil.copy(place, kept)
    change(place, what, earlier)
    ring.go(0)
    assert ring.running[0].wait() == ExitCode.WRONG_FILES, ring.logs()
    assert LOST in ring.text(0)
    assert ring.charged()[0] == [1, 2]
    ring.start(0)
    assert ring.running[0].wait() == ExitCode.WRONG_FILES, ring.logs()
    assert ring.charged()[0] == [1, 2]
    shutil.copy(kept, place)
    ring.start(0)
    assert ring.codes() == [0] * size, ring.logs()
    assert [entry.finished for entry in Budget(place).runs] == [True]


@KINDS
def test_partner_over_its_budget_costs_no_other_site(ring_of, kind):
    ring = ring_of(3, kind, rounds=3, site={"patience": 3.0})
    planned = make_ready(ring.sites[2]).planned().epsilon
    edit(ring.paths[2], budget={"epsilon": 0.9 * planned, "ledger": "account/budget.sqlite", "colluding": 1})
    ring.start(0, 1, 2)
    assert ring.codes() == [ExitCode.NEIGHBOUR] * 2 + [ExitCode.BUDGET_SPENT], ring.logs()
    assert [open_account(site).place.exists() for site in ring.sites] == [False] * 3
    assert not ring.sites[2].database.exists()


def test_partner_with_an_invalid_key_costs_no_other_site(ring_of):
    """An X25519 key of low order allows no agreement on masks, so nothing is released."""
    ring = ring_of(3, "masked", rounds=3, site={"patience": 5.0})
    ring.start(0, 1)
    ring.start(2, lie="invalid key")
    codes = ring.codes()
    assert codes[:2] == [ExitCode.NEIGHBOUR] * 2, ring.logs()
    assert [open_account(site).place.exists() for site in ring.sites[:2]] == [False] * 2
    assert ring.charged()[:2] == [[], []]
