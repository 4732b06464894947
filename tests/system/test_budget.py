"""A budget is never overspent, whatever runs, crashes and restarts: recomputed from the releases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taciturn as tt
from support import budget_runs
from support.budget_runs import Crash, delta_of, mu_of, start_run, watch_releases
from taciturn.core.errors import BudgetExceeded

EPSILON, DELTA = 1.0, 1e-5
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["masked", "gaussian", "score"]),
        st.sampled_from([0.2, 0.45, 0.6, 0.9]),
        st.sampled_from([None, None, None, 0, 2, 8, 9]),  # after so many releases it dies; there are 9
        st.booleans(),
    ),
    min_size=2,
    max_size=7,
)


@settings(max_examples=10)
@given(operations=OPERATIONS)
def test_a_budget_of_1_is_never_overspent(tmp_path_factory, operations):
    path = tmp_path_factory.mktemp("budget") / "ledger.sqlite"
    released, admitted, reached = [], 0, 0.0
    tt.Budget(path, epsilon=EPSILON, delta=DELTA)
    for kind, epsilon, crash, refit in operations:
        with tt.Budget(path) as budget, watch_releases(released, crash):  # each one a new process
            for size in (epsilon, budget.left) if refit else (epsilon,):
                reached = max(reached, budget.spent)
                try:
                    start_run(kind, size or epsilon)
                except BudgetExceeded:
                    continue
                except Crash:
                    pass
                admitted += 1
    budget = tt.Budget(path)
    assert len(budget.runs) == admitted
    assert sum(not run.finished for run in budget.runs) <= admitted
    assert delta_of(mu_of(released), EPSILON) <= DELTA
    assert delta_of(mu_of(released), budget.spent) <= DELTA  # what it says was spent is not less than it was
    assert reached <= budget.spent <= EPSILON


def test_three_processes_one_of_which_dies_share_one_file(tmp_path):
    path, log = tmp_path / "ledger.sqlite", tmp_path / "log"
    tt.Budget(path, epsilon=EPSILON, delta=DELTA)
    arguments = [("masked", "0.3", "-1"), ("score", "0.3", "-1"), ("masked", "0.45", "7")]
    script = Path(budget_runs.__file__)
    where = [str(script.parents[1]), str(Path(tt.__file__).parents[1])]
    children = [
        subprocess.Popen(
            [sys.executable, str(script), str(path), str(log), *given],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(where)},
        )
        for given in arguments
    ]
    codes = [child.wait() for child in children]
    assert codes == [0, 0, 9]
    released = [(tuple(run), site, mu) for run, site, mu in map(json.loads, log.read_text().splitlines())]
    budget = tt.Budget(path)
    assert delta_of(mu_of(released), EPSILON) <= DELTA
    assert [run.finished for run in budget.runs].count(False) == 1  # charged as if it had come to its end
    assert len({run for run, _, _ in released}) == len(budget.runs) >= 4
    assert delta_of(mu_of(released), 0.6) > DELTA  # and it was used: by far more than half
    with budget, pytest.raises(BudgetExceeded):
        start_run("masked", 0.45)


def test_a_crash_leaves_the_whole_run_charged_and_a_refusal_leaves_nothing(tmp_path):
    released = []
    with tt.Budget(tmp_path / "a.sqlite", epsilon=EPSILON, delta=DELTA) as budget:
        for crash in (0, 5, 9):
            with watch_releases(released, crash), pytest.raises(Crash):
                start_run("masked", 0.5)
        before, head = budget.spent, budget.head
        assert before > 0.85  # three runs, of which the first released nothing
        assert [run.finished for run in budget.runs] == [False] * 3
        with (
            watch_releases(released, None),
            pytest.raises(BudgetExceeded, match=r"costs epsilon = 0\.500 .* nothing was"),
        ):
            start_run("masked", 0.5)
        assert (budget.spent, budget.head) == (before, head)
    assert len({run for run, _, _ in released}) == 2  # the refused one has drawn nothing
