"""A hostile job file does not get past a site's own budget."""

import pytest

from support.sitework import network
from taciturn.cli.app import run
from taciturn.errors import BudgetExceeded
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready

BUDGET = {"epsilon": 3.0}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"delta": 0.5}, "`delta` must be at most"),
        ({"delta": 0.5, "large_delta": True}, "`job.delta`: must be at most 1/24"),
        ({"delta": 0.999999, "large_delta": True}, "`job.delta`: must be at most 1/24"),
        ({"grid": 1e-300, "clip": 1e-290}, "the job's `grid` must be at least"),
        ({"grid": 2.0**-60}, "the job's `grid` must be at least"),
    ],
)
@pytest.mark.parametrize("command", [["check", "--wait", "0"], ["run"]])
def test_a_job_that_makes_a_budget_mean_nothing_is_refused(tmp_path, capsys, job, words, command):
    path = network(tmp_path, job=job, site={"budget": BUDGET})[0]
    assert run(["site", command[0], str(path), *command[1:]]) != 0
    assert words in capsys.readouterr().err
    assert not load_site_state(path).exists()


def load_site_state(path):
    return path.parent / "state"


def test_a_delta_of_ones_own_above_one_over_the_rows_needs_a_word(tmp_path, capsys):
    path = network(tmp_path / "a", site={"budget": {"epsilon": 3.0, "delta": 0.1}})[0]
    assert run(["site", "check", str(path), "--wait", "0"]) != 0
    assert "`budget.delta`: must be at most 1/24" in capsys.readouterr().err
    path = network(tmp_path / "b", site={"budget": {"epsilon": 3.0, "delta": 0.1, "large_delta": True}})[0]
    assert make_ready(load_site(path)).budget.delta == 0.1


@pytest.mark.parametrize("delta", [0.5, 0.999999])
def test_a_job_is_judged_at_the_delta_of_the_site(tmp_path, delta):
    """Even where the file insists: what the job calls cheap is charged at what the site calls a delta."""
    kept, loose = (
        make_ready(
            load_site(
                network(tmp_path / name, job={"delta": d, "large_delta": True}, site={"budget": budget})[0]
            )
        )
        for name, d, budget in (("a", 1e-5, BUDGET), ("b", delta, BUDGET | {"large_delta": True}))
    )
    assert loose.affordable() == kept.affordable() < 5
    assert loose.forecast().epsilon == kept.forecast().epsilon > 3.0
    ledger = MemoryLedger(loose.run, [loose.facts], loose.budget)
    with pytest.raises(BudgetExceeded, match="at delta = 1e-05"):
        for t in range(1, 6):
            ledger.charge(loose.node.charge_of(t))
