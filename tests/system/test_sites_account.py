"""The account of a table while a run goes on, and where it cannot be one."""

import os
import shutil
import tomllib
from importlib import import_module

import pytest

from support.linkcut import until
from support.sitemasked import masked_network
from support.sitering import REAL
from support.sitework import PATH_OF_3, network
from taciturn import Budget
from taciturn.cli.app import run
from taciturn.errors import ExitCode, WrongFiles
from taciturn.sites.files.site import load_site
from taciturn.sites.files.toml import write_toml
from taciturn.sites.rounds.account import Entry, foresee, pay, settle
from taciturn.sites.rounds.driver import open_store
from taciturn.sites.rounds.prepare import make_ready

LEDGER = "account/budget.sqlite"
LOST = "does not hold this run, which was charged to it"
CHANGES = ("deleted", "emptied", "put back", "written over")


def with_ledger(path, ledger=LEDGER):
    """The site with an account of its table, in its file and loaded."""
    facts = tomllib.loads(path.read_text())
    facts["budget"] |= {"ledger": str(ledger)}
    path.write_text(write_toml(facts))
    return load_site(path)


def change(place, what, earlier):
    """Do to an account what nobody should; `earlier` is one from before the run."""
    if what in ("deleted", "put back"):
        place.unlink()
    if what == "emptied":
        os.truncate(place, 0)
    if what == "put back":
        shutil.copy(earlier, place)
    if what == "written over":
        place.write_bytes(earlier.read_bytes())  # in the same file


CASES = [
    *((5, kind, what) for kind in ("penalty", "masked") for what in CHANGES),
    (20, "penalty", "deleted"),
]


@pytest.mark.parametrize(("size", "kind", "what"), CASES)
def test_an_account_that_loses_the_run_while_it_goes_on_stops_the_site(ring_of, tmp_path, size, kind, what):
    """Before the next round is charged; with the right file back, the same command goes on to the end."""
    ring = ring_of(size, kind, rounds=4)
    place, kept = with_ledger(ring.paths[0]).path(LEDGER), tmp_path / "kept"
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


@pytest.fixture
def ready(tmp_path):
    """A site of a real run, with an account."""
    own = REAL | {"budget": {"epsilon": 50.0}}
    return make_ready(with_ledger(network(tmp_path / "net", PATH_OF_3, job={"seed": None}, site=own)[0]))


@pytest.mark.parametrize("what", CHANGES)
def test_the_end_of_a_run_is_noted_in_no_other_account(ready, tmp_path, what):
    place = ready.site.path(ready.site.file.budget.ledger)
    earlier = Budget(tmp_path / "earlier", 50.0).path
    with open_store(ready) as store:
        pay(ready, store)
        change(place, what, earlier)
        with pytest.raises(WrongFiles, match=LOST):
            settle(ready, store)
    assert place.exists() == (what != "deleted")


def test_what_may_happen_to_an_account_stops_nobody(ready, tmp_path, monkeypatch):
    """Others pay into it, it is moved to another disk; and a look at one that nobody touched reads none."""
    place = ready.site.path(ready.site.file.budget.ledger)
    with open_store(ready) as store:
        pay(ready, store)
        Budget(place).reserve(ready.forecast(), "another job")
        store.before_release()
        shutil.copy(place, tmp_path / "moved")
        (tmp_path / "moved").replace(place)
        store.before_release()
        monkeypatch.setattr(Entry, "read", lambda entry: pytest.fail("was read"))
        store.before_release()


def test_an_empty_account_is_a_wrong_file_and_no_new_budget(ready):
    place = ready.site.path(ready.site.file.budget.ledger)
    place.parent.mkdir()
    place.touch()
    with open_store(ready) as store, pytest.raises(WrongFiles, match="is empty"):
        pay(ready, store)
    ((good, words),) = foresee(ready)
    assert not good and f"`budget.ledger`: {place} is empty" in words
    assert place.stat().st_size == 0


@pytest.mark.parametrize(
    "ledger", ["/proc/x/y", "/dev/null", "/dev/null/x", ".", "rows.npz/x", "rows.npz", "empty"]
)
def test_an_account_that_cannot_be_one_is_refused_before_the_network(tmp_path, capsys, monkeypatch, ledger):
    """A device, a folder, a file of something else, a place where none can be made."""
    path = network(tmp_path, PATH_OF_3, job={"seed": None}, site=REAL)[0]
    (path.parent / "empty").touch()
    place = with_ledger(path, ledger).path(path.parent / ledger)
    before = sorted(path.parent.iterdir())
    assert run(["site", "check", str(path), "--wait", "0"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert line.startswith("FAIL  account: ") and str(place) in line
    assert sorted(path.parent.iterdir()) == before
    monkeypatch.setattr(
        import_module("taciturn.sites.rounds.driver"), "Session", lambda *_: pytest.fail("on the network")
    )
    assert run(["site", "run", str(path)]) == ExitCode.WRONG_FILES
    (line,) = capsys.readouterr().err.splitlines()
    assert str(place) in line


def test_a_masked_job_is_counted_against_as_many_others_as_the_site_says(tmp_path, capsys):
    budget = {"epsilon": 1.0, "colluding": 2}
    path = masked_network(tmp_path / "a", job={"colluding": 0}, site={"budget": budget})[0]
    for command in (["check", str(path), "--wait", "0"], ["run", str(path)]):
        assert run(["site", *command]) == ExitCode.WRONG_FILES
        (line,) = capsys.readouterr().err.splitlines()
        assert "`budget.colluding`: the job's `colluding` must be at least 2; got 0." in line
    assert not (path.parent / "state").exists()
    enough = masked_network(tmp_path / "b", job={"colluding": 2}, site={"budget": budget})[0]
    assert load_site(enough).job.colluding == 2
    few = masked_network(tmp_path / "c", [(0, 1)], job={"colluding": 1}, site={"budget": budget})[0]
    assert load_site(few).job.colluding == 1  # all the others
