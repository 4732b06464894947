"""A hostile job file does not get past a site's own budget."""

import shutil
import tomllib

import pytest

from support.sitering import KINDS, SIZES, ring_links, ring_network
from support.sitework import network
from taciturn import Budget
from taciturn.cli.app import run
from taciturn.core.errors import BudgetExceeded, ExitCode
from taciturn.jobfile.toml_files import write_toml
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready

BUDGET = {"epsilon": 3.0}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"delta": 0.5}, "`delta` must be at most"),
        ({"delta": 0.5, "large_delta": True}, "`job.delta` must be at most 1/24"),
        ({"delta": 0.999999, "large_delta": True}, "`job.delta` must be at most 1/24"),
        ({"grid": 1e-300, "clip": 1e-290}, "the job's `grid` must be at least"),
        ({"grid": 2.0**-60}, "the job's `grid` must be at least"),
    ],
)
@SIZES
def test_job_that_would_void_a_budget_is_refused(tmp_path, capsys, job, words, size):
    """Every site refuses it before it creates a state, and so does `check`."""
    paths = network(tmp_path, ring_links(size), job=job, site={"budget": BUDGET})
    for command in [["check", str(paths[0]), "--wait", "0"], *(["run", str(path)] for path in paths)]:
        assert run(["site", *command]) != 0
        assert words in capsys.readouterr().err
    assert not any((path.parent / "state").exists() for path in paths)


@KINDS
@SIZES
def test_a_job_with_a_seed_is_refused_unless_the_owner_rehearses(tmp_path, capsys, size, kind):
    """With a public seed, anyone could repeat all noise. Every site refuses it before it creates a state."""
    paths = ring_network(tmp_path, size, kind, seed=1, site={"rehearsal": None})
    for command in [["check", str(paths[0]), "--wait", "0"], *(["run", str(path)] for path in paths)]:
        assert run(["site", *command]) == ExitCode.WRONG_FILES
        (line,) = capsys.readouterr().err.splitlines()
        assert (
            "`job.seed` must be left out of the job, except in a rehearsal; got 1." in line
            and "`rehearsal = true`" in line
        )
    assert not any((path.parent / "state").exists() for path in paths)


@pytest.mark.parametrize("kind", ["penalty", "masked"])
def test_a_rehearsal_that_the_owner_wants_says_what_it_is(ring_of, capsys, kind):
    ring = ring_of(3, kind, rounds=3, seed=1)
    assert all(site.file.rehearsal for site in ring.sites)
    run(["site", "check", str(ring.paths[0]), "--wait", "0"])
    assert "note  the job has a seed" in capsys.readouterr().out
    ring.start(0, 1, 2)
    assert ring.codes() == [0] * 3, ring.logs()
    assert ring.text(0).count("WARNING this is a rehearsal") == 1


def test_site_delta_above_one_over_the_rows_must_be_allowed_explicitly(tmp_path, capsys):
    path = network(tmp_path / "a", site={"budget": {"epsilon": 3.0, "delta": 0.1}})[0]
    assert run(["site", "check", str(path), "--wait", "0"]) != 0
    assert "`budget.delta` must be at most 1/24" in capsys.readouterr().err
    path = network(tmp_path / "b", site={"budget": {"epsilon": 3.0, "delta": 0.1, "large_delta": True}})[0]
    assert make_ready(load_site(path)).budget.delta == 0.1


@pytest.mark.parametrize("delta", [0.5, 0.999999])
def test_a_job_is_judged_at_the_delta_of_the_site(tmp_path, delta):
    """The site charges every job at its own delta, whatever delta the job states."""
    kept, loose = (
        make_ready(
            load_site(
                network(tmp_path / name, job={"delta": d, "large_delta": True}, site={"budget": budget})[0]
            )
        )
        for name, d, budget in (("a", 1e-5, BUDGET), ("b", delta, BUDGET | {"large_delta": True}))
    )
    assert loose.forecast().epsilon == kept.forecast().epsilon > 3.0
    ledger = MemoryLedger(loose.run, [loose.facts], loose.budget)
    with pytest.raises(BudgetExceeded, match="at delta = 1e-05"):
        for t in range(1, 6):
            ledger.charge(next(loose.prepared.charges(t).each()))


def another_job(paths, name):
    """The same tables, a new job, new state folders."""
    for path in paths:
        shutil.rmtree(load_site(path).state)
    job = paths[0].parent.parent / "job.toml"
    job.write_text(job.read_text().replace('name = "trial"', f'name = "{name}"'))


@pytest.mark.parametrize(("size", "kind"), [(3, "penalty"), (3, "masked")])
def test_one_budget_for_one_table_across_all_jobs(ring_of, capsys, size, kind):
    """It pays for one run and not for two; a killed run stays charged, once."""
    ring = ring_of(size, kind, rounds=3)
    for path in ring.paths:
        ready = make_ready(load_site_with(path, {}, 1000.0))
        load_site_with(path, {}, 1.1 * ready.planned().epsilon)
    check = ["site", "check", str(ring.paths[0]), "--wait", "0"]
    assert run(check) == 0
    assert "account of the table: 0 runs" in capsys.readouterr().out
    assert not (ring.paths[0].parent / "account").exists()
    ring.start(*range(1, size))
    ring.start(0, point="after the charge", t=2)
    assert ring.running[0].wait() < 0
    ring.start(0)
    assert ring.codes() == [0] * size, ring.logs()
    accounts = [Budget(path.parent / "account" / "budget.sqlite") for path in ring.paths]
    assert [[entry.finished for entry in account.runs] for account in accounts] == [[True]] * size
    another_job(ring.paths, "second")
    assert run(check) == 1
    assert "FAIL  account: " in capsys.readouterr().out
    ring.start(*range(size))
    assert ring.codes() == [ExitCode.BUDGET_SPENT] * size, ring.logs()
    assert ring.charged() == [[]] * size
    assert [len(account.runs) for account in accounts] == [1] * size


def load_site_with(path, entries, epsilon, ledger="account/budget.sqlite"):
    """The site with another budget, and other settings, in its file."""
    facts = tomllib.loads(path.read_text()) | entries
    facts["budget"] = {"epsilon": epsilon, "ledger": ledger}
    path.write_text(write_toml(facts))
    return load_site(path)
