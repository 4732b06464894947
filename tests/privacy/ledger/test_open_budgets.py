"""The files that list processes with an open budget: correct after crashes, and unusable by other users."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import taciturn as tt
from support.budget_workers import describe
from taciturn.core import ancestors
from taciturn.core.errors import LedgerError
from taciturn.privacy.ledger import open_budgets


@pytest.fixture
def budgets(tmp_path):
    return [tt.Budget(tmp_path / f"{name}.sqlite", epsilon=3) for name in "AB"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place of its own for them."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(open_budgets, "FOLDERS", (str(place),))
    return place


def entries(folder):
    return sorted(name for found in folder.iterdir() for name in os.listdir(found))


def test_without_a_budget_nothing_is_written(folder):
    assert describe() == "done" and list(folder.iterdir()) == []
    assert open_budgets.VARIABLE not in os.environ


def test_entry_says_that_its_block_ended_and_stale_ones_have_no_effect(folder, budgets):
    with budgets[0]:
        (mine,) = entries(folder)
        assert open_budgets._read(mine).ended == 0
    assert entries(folder) == [mine] and open_budgets.VARIABLE not in os.environ
    assert open_budgets._read(mine).ended > 0
    rest = "1-" + mine.rpartition("-")[2]  # started at another time
    (home,) = folder.iterdir()
    text = f'["{budgets[0].path}", "{mine}", "a name", ""]'
    for number in (os.getppid(), 2**22 + 5):
        (home / f"{number}-{rest}").write_text(text)
    assert describe() == "done" and budgets[0].runs == ()
    with budgets[1]:
        assert len(entries(folder)) == 3  # their workers may still have to hear of them
    for name in entries(folder):
        os.utime(home / name, (0, 0))
    with budgets[1]:
        assert entries(folder) == [mine]


@pytest.mark.process
def test_a_parent_that_has_one_open_is_found_by_proc_and_by_ps(folder, budgets, monkeypatch):
    for proc in (Path("/proc"), folder / "none"):
        monkeypatch.setattr(ancestors, "PROC", str(proc))
        with budgets[0]:
            (home,) = folder.iterdir()
        (home / ancestors.process_entry(os.getppid())).write_text(f'["{budgets[0].path}", "", "a name", ""]')
        assert describe() == "done"
        (home / ancestors.process_entry(os.getppid())).unlink()
    assert len(budgets[0].runs) == 2


@pytest.mark.process
def test_without_proc_and_ps_a_process_that_may_belong_to_an_open_budget_is_refused(
    folder, budgets, monkeypatch
):
    monkeypatch.setattr(ancestors, "PROC", str(folder / "none"))
    monkeypatch.setenv("PATH", "")
    with budgets[0]:
        (home,) = folder.iterdir()
    assert describe() == "done"  # the only entry is its own
    (home / "1-unknown-0").write_text(f'["{budgets[0].path}", "", "a name", ""]')
    assert "cannot tell whether it belongs to that budget" in describe()
    with budgets[1]:
        assert describe() == "done"


def test_a_worker_of_a_process_that_was_killed_in_its_block_is_refused(folder, budgets, monkeypatch):
    """The worker is older than the block: only its memory shows that the dead process started it."""
    with budgets[0]:
        (home,) = folder.iterdir()
    dead = f"{2**22 + 5}-1-{ancestors.process_entry(1).rpartition('-')[2]}"
    (home / dead).write_text(f'["{budgets[0].path}", "{dead}", "a name", ""]')
    assert describe() == "done"
    monkeypatch.setattr(ancestors, "ancestors_at_start", [dead])
    assert "was killed while it had the budget" in describe()
    assert budgets[0].runs == ()


def test_budget_block_is_refused_if_workers_could_not_detect_it(tmp_path, budgets, monkeypatch):
    monkeypatch.setattr(open_budgets, "FOLDERS", (str(tmp_path / "absent"),))
    with (
        pytest.raises(LedgerError, match="can be written, so worker processes would not know about the"),
        budgets[0],
    ):
        raise AssertionError("entered")
    assert describe() == "done" and budgets[0].runs == ()


def test_a_folder_that_others_can_write_to_is_not_used(folder, tmp_path, budgets, monkeypatch):
    with budgets[0]:
        (home,) = folder.iterdir()
    second = tmp_path / "second"
    second.mkdir()
    monkeypatch.setattr(open_budgets, "FOLDERS", (str(folder), str(second)))
    home.chmod(0o777)
    (home / ancestors.process_entry(os.getppid())).write_text(f'["{budgets[0].path}", "", "a name", ""]')
    assert describe() == "done" and budgets[0].runs == ()
    with budgets[1]:
        assert len(entries(second)) == 1


def test_budget_block_named_in_the_environment_counts_while_its_process_is_inside(
    folder, budgets, monkeypatch
):
    monkeypatch.setenv(open_budgets.VARIABLE, "")
    monkeypatch.delenv(open_budgets.VARIABLE)  # as it will be again afterwards
    with budgets[0]:
        given = os.environ[open_budgets.VARIABLE]
        entry, name = given.split(" ")
        assert open_budgets.block_at_start() == (name, budgets[0].block)
        monkeypatch.setenv(open_budgets.VARIABLE, f"{entry} of an earlier block")
        assert open_budgets.block_at_start() == ("of an earlier block", None)
        (home,) = folder.iterdir()
        text = (home / entry).read_text()
    (home / entry).write_text(text)
    monkeypatch.setenv(open_budgets.VARIABLE, given)
    assert open_budgets.block_at_start()[1] is not None
    dead = f"{2**22 + 5}-{entry.partition('-')[2]}"
    (home / dead).write_text(text)
    for other, kept in ((f"{dead} {name}", name), (f"../{home.name}/{entry} {name}", name), ("", "")):
        monkeypatch.setenv(open_budgets.VARIABLE, other)
        assert open_budgets.block_at_start() == (kept, None)
