"""An adaptive program attacks one record: it nearly reaches what is certified, and never passes it."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn import expressions as ex
from taciturn.auditing.counting import measure_mu
from taciturn.graph import Graph
from taciturn.methods.programs import own_program
from taciturn.methods.programs.own_program import OwnProgram, ProgramTable, UnitRows
from taciturn.privacy.accounting.gaussian import gaussian_mu
from taciturn.runtime.local import run_local
from taciturn.runtime.setup import prepare

RUNS, STEPS, ROWS = 4000, 3, 4


class Attack(tt.Program):
    """Asks for the one record, as large as the clip lets it be, with a sign that follows the last total."""

    def steps(self, facts):
        return [tt.Step(f"step {t}", 1, 1.0) for t in range(STEPS)]

    def start(self):
        return (1.0,)

    def query(self, state):
        return tt.Query(ex.columns(0) * ex.parameter("sign"), {"sign": [1e6 * state[-1]]})

    def advance(self, state, total):
        return (*state, 1.0 if total.values[0] > 0 else -1.0)

    def result(self, state):
        return state


def scores(record, seed):
    """The best statistic of what the attacker sees, (runs,): totals turned to the side that it asked for."""
    X = np.zeros((ROWS, 1))
    X[0] = record
    method = OwnProgram(Attack(), epsilon=2.0, delta=0.05)
    problem = ProgramTable([UnitRows(X)], np.array([ROWS]), 1)
    setup = prepare(problem, Graph.complete(1), method, rounds=STEPS, repeats=RUNS, seed=seed, measure=False)
    totals = run_local(setup, show=False).coef[:, 0]
    signs = np.concatenate([np.ones((RUNS, 1)), np.where(totals[:, :-1] > 0, 1.0, -1.0)], axis=1)
    return (totals * signs).sum(axis=1), setup.forecast(0.05).epsilon


def attacked():
    (old, certified), (new, _) = scores(1.0, 1), scores(-1.0, 2)
    assert certified <= 2.0
    return measure_mu({"sum": (old, new)}, confidence=0.999), float(gaussian_mu(certified, 0.05))


def test_an_adaptive_program_never_passes_what_is_certified():
    measured, certified = attacked()
    assert 0.8 * certified < measured <= certified


def test_a_doubled_clip_of_a_program_is_caught(monkeypatch):
    clipped = own_program.clipped
    monkeypatch.setattr(own_program, "clipped", lambda vectors, bound: 2 * clipped(vectors, bound))
    measured, certified = attacked()
    assert measured > certified


def test_a_step_that_is_not_charged_is_caught(monkeypatch):
    """Every step has the noise of the whole budget: its certificate shows it, and nothing is run."""
    usual = own_program.SumPlan
    monkeypatch.setattr(own_program, "SumPlan", lambda **named: usual(**named | {"share": 1.0}))
    rows = np.zeros((200, 1))
    with pytest.raises(tt.errors.ParameterError, match="`epsilon` is too large"):
        tt.run_program(Attack(), rows, epsilon=2.0, large_delta=True, random_state=0)
