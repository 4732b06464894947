"""The account belongs to the table, is charged with the first message, and follows the owner's settings."""

import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest

from support.sitemasked import masked_network
from support.sitering import REAL
from support.sitestore import charge_round, open_store
from support.sitework import PATH_OF_3, network, shards
from taciturn import Budget
from taciturn.cli.app import run
from taciturn.core.errors import BudgetExceeded, ExitCode, LedgerError, WrongFiles
from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.charging import admit, charge_first
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.state.account import Account, open_account

LOST = "does not contain this run, which was charged to it"
CHANGES = ("deleted", "emptied", "put back", "written over")
OWN = REAL | {"budget": {"epsilon": 50.0}}


def edit(path: Path, **entries):
    """The site with other entries in its file; None takes one out."""
    facts = tomllib.loads(path.read_text()) | entries
    path.write_text(write_toml(facts))
    return load_site(path)


def real_site(folder: Path, **entries):
    """A site of a real run."""
    return make_ready(edit(network(folder, PATH_OF_3, job={"seed": None}, site=OWN)[0], **entries))


@pytest.fixture
def ready(tmp_path):
    return real_site(tmp_path / "net")


def release(ready, store, t=1):
    """Charge the account and store a message, as the driver does."""
    charge_first(ready, open_account(ready.site), store)
    charge_round(ready, store, t)


def admitted(ready, store=None):
    admit(ready, open_account(ready.site), store)


def runs(ready):
    place = open_account(ready.site).place
    return [entry.run for entry in Budget(place).runs] if place.exists() else []


def test_a_run_is_charged_with_its_first_message_and_not_before(ready):
    admitted(ready)
    with open_store(ready) as store:
        assert runs(ready) == []
        release(ready, store)
        assert runs(ready) == [store.id]
        open_account(ready.site).finish(store.id)
        assert runs(ready) == [store.id]
    assert Budget(open_account(ready.site).place).spent == pytest.approx(ready.planned().epsilon, rel=1e-6)


def test_a_run_is_charged_once_however_often_it_is_restarted(ready):
    """This includes a crash between charge and store, and a budget that pays for one run only."""
    ready = real_site(ready.site.folder / "again", budget=budget(ready, 1.01))
    with open_store(ready) as store:
        charge_first(ready, open_account(ready.site), store)  # and then the power went
    for t in (1, 2):
        with open_store(ready) as store:
            admitted(ready, store)
            release(ready, store, t)
    assert len(runs(ready)) == 1


def budget(ready, times, **more):
    return {"epsilon": times * ready.planned().epsilon, "ledger": "account/budget.sqlite"} | more


def test_site_over_its_budget_is_refused_before_it_connects(ready):
    poor = real_site(ready.site.folder / "poor", budget=budget(ready, 0.9))
    with pytest.raises(BudgetExceeded):
        admitted(poor)
    assert not poor.site.state.exists() and runs(poor) == []


@pytest.mark.parametrize("what", CHANGES)
def test_an_account_that_lost_the_run_stops_the_site(ready, tmp_path, what):
    place, earlier = open_account(ready.site).place, Budget(tmp_path / "earlier", 50.0).path
    with open_store(ready) as store:
        release(ready, store)
        change(place, what, earlier)
        for act in (
            lambda: release(ready, store, 2),
            lambda: open_account(ready.site).finish(store.id),
            lambda: admitted(ready, store),
        ):
            with pytest.raises(WrongFiles, match=LOST):
                act()
        assert store.rounds == [1]
    assert place.exists() == (what != "deleted")


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


def test_allowed_changes_of_an_account_do_not_stop_a_site(ready, tmp_path, monkeypatch):
    """Other jobs charge it, or it moves to another disk; an unchanged account is not read again."""
    place = open_account(ready.site).place
    account = open_account(ready.site)
    with open_store(ready) as store:
        release(ready, store)
        Budget(place).reserve(ready.forecast(), "another job")
        charge_first(ready, account, store)
        shutil.copy(place, tmp_path / "moved")
        (tmp_path / "moved").replace(place)
        charge_first(ready, account, store)
        monkeypatch.setattr(Account, "_read", lambda *rest: pytest.fail("was read"))
        charge_first(ready, account, store)


def test_empty_account_file_is_refused_and_not_taken_for_a_new_budget(ready):
    place = open_account(ready.site).place
    place.parent.mkdir()
    place.touch()
    with pytest.raises(WrongFiles, match="is empty"):
        admitted(ready)
    assert place.stat().st_size == 0


def test_a_budget_that_was_edited_is_a_wrong_file(ready):
    with open_store(ready) as store:
        release(ready, store)
    path = ready.site.folder / "site.toml"
    shutil.rmtree(ready.site.state)
    other = make_ready(edit(path, budget={"epsilon": 60.0, "ledger": "account/budget.sqlite"}))
    with pytest.raises(WrongFiles, match="was created with epsilon") as refused:
        admitted(other)
    assert str(refused.value).count("budget.sqlite") == 1  # the path, once
    assert "give the value that the file was created with" in str(refused.value)


# -- the account belongs to the table ---------------------------------------------------------------


def table_site(folder: Path, rows: Path, name: str):
    """A site of a real job of its own, in a folder of its own, about a table that lies elsewhere."""
    facts = {"label": {"column": "income", "positive": "high"}, "C": 1.0, "dimension": None, "seed": None}
    facts |= {
        "schema": {"fields": [{"name": "age", "low": 0, "high": 100}]},
        "intercept": False,
        "name": name,
    }
    paths = network(folder, [(0, 1)], data=shards(2, rows=6), job=facts | {"name": name}, site=OWN)
    return make_ready(edit(paths[0], data=str(rows), budget={"epsilon": 50.0}))


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    (tmp_path / "clinic.csv").write_text("age,income\n" + "50,high\n20,low\n" * 3)
    return tmp_path / "clinic.csv"


def test_jobs_in_two_folders_share_the_account_of_their_table(tmp_path, rows):
    first, second = (table_site(tmp_path / name, rows, name) for name in ("a", "b"))
    assert open_account(first.site).place == open_account(second.site).place
    assert not open_account(first.site).place.is_relative_to(first.site.folder)
    with open_store(first) as store:
        release(first, store)
    assert open_account(second.site).seen().runs == 1
    assert open_account(second.site).seen().left < 50.0
    assert open_account(first.site).place.parent.stat().st_mode & 0o077 == 0


def test_a_copy_of_a_table_gets_no_budget_of_its_own(tmp_path, rows):
    first = table_site(tmp_path / "a", rows, "a")
    with open_store(first) as store:
        release(first, store)
    copied = tmp_path / "copy.csv"
    shutil.copy(rows, copied)
    second = table_site(tmp_path / "b", copied, "b")
    with pytest.raises(WrongFiles, match="a table with the same columns has an account at") as refused:
        admitted(second)
    assert str(open_account(first.site).place) in str(refused.value)
    path = second.site.folder / "site.toml"
    same = edit(path, budget={"epsilon": 50.0, "ledger": str(open_account(first.site).place)})
    assert open_account(same).seen().runs == 1


# -- as the owner counts ------------------------------------------------------------------------------


def test_a_masked_job_is_judged_against_all_others_unless_the_owner_allows_fewer(tmp_path):
    """A job with thirty names, which may all be one party, and `colluding = 0`."""
    links = [(i, (i + 1) % 30) for i in range(30)]
    paths = masked_network(
        tmp_path,
        links,
        job={"colluding": 0, "seed": None, "C": 5.0},
        site={"budget": {"epsilon": 2.0}},
        data=shards(30, rows=20),
    )
    ready = make_ready(load_site(paths[0]))
    assert ready.forecast().epsilon <= 1.0 < 2.0 < ready.planned().epsilon
    assert ready.planned().epsilon == ready.forecast().epsilon_against(29)
    with pytest.raises(BudgetExceeded, match="would exceed a budget"):
        admitted(ready)
    for colluding, passes in ((0, True), (29, False), (99, False)):
        own = edit(paths[0], budget={"epsilon": 2.0, "colluding": colluding, "ledger": f"{colluding}.sqlite"})
        counted = make_ready(own)
        assert (counted.planned().epsilon <= 2.0) == passes
    assert admitted(make_ready(edit(paths[0], budget={"epsilon": 2.0, "colluding": 0}))) is None


def test_an_owner_can_demand_that_the_unit_is_a_person(tmp_path, capsys):
    path = network(tmp_path, PATH_OF_3, job={"seed": None}, site=OWN)[0]
    with pytest.raises(WrongFiles, match=r"`budget\.unit`: the budget is for persons"):
        edit(path, budget={"epsilon": 50.0, "unit": "person"})
    edit(path, budget={"epsilon": 50.0, "ledger": "a.sqlite"})
    run(["site", "check", str(path), "--wait", "0"])
    out = capsys.readouterr().out
    assert "unit of the owner's budget: record" in out and "for any one record" in out


def test_status_shows_the_account_of_the_table(ready, capsys):
    path = ready.site.folder / "site.toml"
    with open_store(ready) as store:
        release(ready, store)
    account = open_account(ready.site)
    Budget(account.place).reserve(ready.forecast(), "another job")
    assert run(["site", "status", str(path)]) == 0
    assert f"account of the table: 2 runs spent epsilon {f'{account.seen().spent:.3g}'[:2]}" in (
        out := capsys.readouterr().out
    ), out
    assert f"\n  in {account.place}\n" in out
    assert run(["site", "status", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["account"]["runs"] == 2 and facts["left"] == pytest.approx(account.seen().left)
    assert facts["left"] < facts["budget"] - facts["epsilon"]


def test_check_shows_the_account_and_makes_none(ready, capsys):
    path = str(ready.site.folder / "site.toml")
    assert run(["site", "check", path, "--wait", "0"]) == 0
    out = capsys.readouterr().out
    assert "account of the table: 0 runs" in out and "a new account will be created at" in out
    assert "the others have the same" not in out
    assert not open_account(ready.site).place.parent.exists()


@pytest.mark.parametrize(
    "ledger", ["/proc/x/y", "/dev/null", "/dev/null/x", ".", "rows.npz/x", "rows.npz", "empty"]
)
def test_unusable_account_path_is_refused_before_connecting(ready, capsys, ledger):
    """A device, a folder, a file of another kind, or a path that cannot be created."""
    folder = ready.site.folder
    (folder / "empty").touch()
    path = folder / "site.toml"
    place = open_account(edit(path, budget={"epsilon": 50.0, "ledger": ledger})).place
    before = sorted(folder.iterdir())
    assert run(["site", "check", str(path), "--wait", "0"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")]
    assert line.startswith("FAIL  account: ") and str(place) in line
    assert run(["site", "run", str(path)]) == ExitCode.WRONG_FILES
    assert str(place) in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_unusable_account_path_of_a_run_that_has_begun_is_named(ready):
    with open_store(ready):
        pass
    changed = make_ready(edit(ready.site.folder / "site.toml", budget={"epsilon": 50.0, "ledger": "."}))
    with open_store(changed) as store, pytest.raises(WrongFiles, match=r"`budget.ledger`: .* must be a file"):
        admitted(changed, store)


def test_path_with_a_nul_character_is_refused_by_name(ready):
    with pytest.raises(WrongFiles, match="`state` must not contain a NUL character"):
        edit(ready.site.folder / "site.toml", state="a\0b")


def test_a_site_inside_the_block_of_another_budget_is_refused(ready, tmp_path):
    """A site charges the account of its table, so the budget around it would miss the run."""
    place = open_account(ready.site).place
    place.parent.mkdir(parents=True, exist_ok=True)
    with open_store(ready) as store:
        with (
            Budget(tmp_path / "around.sqlite", epsilon=1) as around,
            pytest.raises(LedgerError, match="run the site outside of the `with` block"),
        ):
            release(ready, store)
        assert around.runs == () and runs(ready) == []
        with Budget(place, 50.0, 1e-5):
            release(ready, store)
    assert len(runs(ready)) == 1
