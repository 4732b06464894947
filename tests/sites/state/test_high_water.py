"""A state that was restored or moved goes on only if its owner confirms it; then figures are 'at least'."""

import json
import shutil

import numpy as np
import pytest

from sites.state.test_account import real_site, release
from support.sitestore import open_store
from taciturn.core.errors import StateLost, WrongFiles
from taciturn.sites.rounds.charging import read_mark
from taciturn.sites.rounds.results import write_results
from taciturn.sites.state.account import open_account
from taciturn.sites.state.high_water import SLOT, HighWaterMark


@pytest.fixture
def marks(tmp_path):
    return HighWaterMark(tmp_path / "marks")


def test_high_water_mark_never_decreases(marks):
    assert marks.read("run") is None
    for attempt, round in ((0, 1), (0, 2), (0, 2), (1, 1), (1, 5)):
        marks.raise_to("run", attempt, round, "here")
        assert marks.read("run").reached == (attempt, round)
    for attempt, round in ((1, 4), (0, 46)):
        with pytest.raises(StateLost, match="has already sent round 5 of attempt 1"):
            marks.raise_to("run", attempt, round, "here")
    assert marks.read("run").reached == (1, 5) and marks.read("other") is None


def test_a_state_below_the_mark_or_moved_needs_its_owner(marks):
    marks.raise_to("run", 0, 46, "here")
    marks.check("run", 0, 46, "here")
    marks.check("run", 0, 47, "here")  # stored, and stopped before the mark was raised
    with pytest.raises(StateLost, match=r"is at round 22.*--newest-state"):
        marks.check("run", 0, 22, "here")
    with pytest.raises(StateLost, match=r"was moved, copied or restored.*run site\.toml --newest-state"):
        marks.check("run", 0, 46, "there")
    marks.confirm("run", 0, 22, "here")
    marks.check("run", 0, 22, "here")
    assert marks.read("run").at_least
    marks.raise_to("run", 0, 23, "here")
    assert marks.read("run").at_least  # for good
    with pytest.raises(StateLost):
        marks.check("run", 0, 22, "here")  # a confirmation is for one time


def test_a_confirmation_of_a_state_that_was_not_moved_changes_nothing(marks):
    marks.confirm("run", 0, 1, "here")
    assert marks.read("run") is None
    marks.raise_to("run", 0, 5, "here")
    marks.confirm("run", 0, 5, "here")
    assert not marks.read("run").at_least


def test_torn_write_keeps_the_previous_mark(marks):
    for t in (1, 2, 3):
        marks.raise_to("run", 0, t, "here")
    (path,) = marks.folder.iterdir()
    data = bytearray(path.read_bytes())
    newest = SLOT * (marks.read("run").writes % 2)
    data[newest + 70] ^= 1
    path.write_bytes(data)
    assert marks.read("run").round == 2
    path.write_bytes(bytes(2 * SLOT))
    with pytest.raises(WrongFiles, match="is damaged"):
        marks.read("run")


# -- on a site ----------------------------------------------------------------------------------------


@pytest.fixture
def ready(tmp_path):
    return real_site(tmp_path / "net")


def stands(ready, store):
    return store.id, *store.reached, store.identity


def restored(ready, earlier):
    shutil.rmtree(ready.site.state)
    shutil.copytree(earlier, ready.site.state)


def test_restored_state_does_not_continue_without_confirmation(ready, tmp_path):
    """Neighbours are not asked. After the owner's confirmation, the figures are 'at least'."""
    account = open_account(ready.site)
    marks = account.marks
    assert not marks.folder.is_relative_to(ready.site.state)
    with open_store(ready) as store:
        release(ready, store, 1)
        marks.raise_to(*stands(ready, store))
    shutil.copytree(ready.site.state, tmp_path / "earlier")
    with open_store(ready) as store:
        read_mark(ready, store, account)
        release(ready, store, 2)
        marks.raise_to(*stands(ready, store))
    restored(ready, tmp_path / "earlier")
    with open_store(ready) as store:
        with pytest.raises(
            StateLost, match="it is at round 1 of attempt 1, but this site has already sent round 2"
        ):
            read_mark(ready, store, account)
        read_mark(ready, store, account, newest=True)
        assert store.at_least and store.reached == (1, 2)  # it never draws round 2 again
    with open_store(ready) as store:
        read_mark(ready, store, account)  # the owner is asked once
        assert store.at_least
        write_results(ready, store, np.zeros(4))
    statement = json.loads((ready.site.state / "statement.json").read_text())["statement"]
    assert statement["at_least"] is True


def test_moved_state_does_not_continue_without_confirmation(ready, tmp_path):
    account = open_account(ready.site)
    marks = account.marks
    with open_store(ready) as store:
        release(ready, store, 1)
        marks.raise_to(*stands(ready, store))
    shutil.copytree(ready.site.state, tmp_path / "moved")
    restored(ready, tmp_path / "moved")
    with open_store(ready) as store, pytest.raises(StateLost, match="was moved, copied or restored"):
        read_mark(ready, store, account)


def test_lost_state_does_not_restart_without_confirmation(ready):
    with open_store(ready) as store:
        release(ready, store, 1)
    shutil.rmtree(ready.site.state)
    with open_store(ready) as store:
        with pytest.raises(StateLost, match="the state was lost"):
            read_mark(ready, store, open_account(ready.site))
        read_mark(ready, store, open_account(ready.site), newest=True)
        assert store.at_least


def test_a_copy_that_is_behind_sends_nothing(ready):
    """Two processes share one account: the one that stores an already sent round stops before it sends."""
    marks = open_account(ready.site).marks
    with open_store(ready) as store:
        release(ready, store, 1)
        marks.raise_to(store.id, 1, 3, "the other one")
        release(ready, store, 2)
        with pytest.raises(StateLost, match="Nothing is sent"):
            marks.raise_to(*stands(ready, store))
