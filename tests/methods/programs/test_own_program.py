"""A user's program moves no sum further than its clip, for any expressions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taciturn as tt
from support.certified_runs import Means
from taciturn import expressions as ex
from taciturn.methods.base import Network
from taciturn.methods.programs.counts import Counts
from taciturn.methods.programs.own_program import OwnProgram, ProgramHalf, ProgramTable, UnitRows, UnitVectors
from taciturn.privacy.sums import ALIGNED, VECTORS, SumFacts

UNITS = 50


def query_of(expression, **parameters):
    return tt.Query(expression, {name: np.array(value, dtype=float) for name, value in parameters.items()})


EXPRESSIONS = {
    "columns": (query_of(ex.columns()), 3),
    "outer": (query_of(ex.outer(ex.columns())), 6),
    "gradient": (
        query_of(
            (ex.sigmoid(ex.affine(ex.columns(0, 1), "w")) - ex.columns(2)) * ex.columns(0, 1), w=[[1, -2]]
        ),
        2,
    ),
    "cells": (query_of(ex.cells(ex.columns(0), [-1, 0, 1])), 2),
    "hats": (query_of(ex.hats(ex.columns(1), [-1, 0, 1])), 3),
    "nearest": (query_of(ex.first_largest(ex.affine(ex.columns(), "c")), c=np.eye(3)), 3),
    "divide by zero": (query_of(ex.columns() / (ex.columns() - ex.columns())), 3),
    "overflow": (query_of(ex.columns() * 1e308 * 1e308), 3),
    "exponential": (query_of(ex.exponential(ex.columns() * 1e6)), 3),
    "cosine": (query_of(ex.cosine(ex.columns() * 1e200)), 3),
    "clip and norm": (query_of(ex.join(ex.norm(ex.columns()), ex.clip(ex.columns(), 0.5))), 4),
    "comparison": (query_of(ex.join(ex.columns(0) > 0.3, ex.columns(1) < ex.parameter("t")), t=[0.1]), 2),
}


def facts(length):
    return SumFacts(1, VECTORS, length, 2 / UNITS, 0.0, 2.0**-30 / UNITS, 2.0**20)


def integers(X, query, length, bound=1.0, person=None, share=None):
    half = UnitVectors(UnitRows(X, person, share), UNITS, {1: bound})
    return half.integers([query], facts(length))[0]


def hard_rows(rng, n):
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-6, 7, size=(n, 3))
    X[rng.random(X.shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e308])
    return X


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_replaced_row_moves_a_sum_by_no_more_than_the_clip(name):
    query, length = EXPRESSIONS[name]
    rng, grid = np.random.default_rng(1), facts(length).grid
    most = 2 / (UNITS * grid) + math.sqrt(length)
    for _ in range(50):
        X = hard_rows(rng, 20)
        old = integers(X, query, length, bound=0.7)
        X[3] = hard_rows(rng, 1)[0]
        new = integers(X, query, length, bound=0.7)
        assert np.linalg.norm((old - new).astype(float)) <= most


@pytest.mark.parametrize("bound", [0.5, 2.0])
def test_sums_are_in_units_of_the_bound(bound):
    query, _ = EXPRESSIONS["columns"]
    found = integers(np.array([[0.3, -0.1, 0.2]]), query, 3, bound=bound) * facts(3).grid * UNITS
    np.testing.assert_allclose(found, np.array([0.3, -0.1, 0.2]) / bound, rtol=1e-6)


def test_the_bound_is_attained():
    query, _ = EXPRESSIONS["columns"]
    one, other = np.array([[0.6, 0.8, 0.0]]), np.array([[-0.6, -0.8, 0.0]])
    moved = np.linalg.norm((integers(one, query, 3) - integers(other, query, 3)).astype(float))
    assert moved == pytest.approx(2 / (UNITS * facts(3).grid), rel=1e-6)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_what_a_row_adds_does_not_depend_on_the_rows_beside_it(name):
    query, length = EXPRESSIONS[name]
    X = hard_rows(np.random.default_rng(2), 64)
    whole = integers(X, query, length)
    alone = sum(integers(X[k : k + 1], query, length) for k in range(len(X)))
    shuffled = integers(X[np.random.default_rng(3).permutation(len(X))], query, length)
    assert np.array_equal(whole, alone) and np.array_equal(whole, shuffled)


def test_all_rows_of_a_person_move_a_sum_as_far_as_one_row():
    query, length = EXPRESSIONS["columns"]
    rng, person = np.random.default_rng(4), np.array([0] * 7 + [1] * 3)
    share = np.where(person == 0, 1 / 7, 1 / 3)
    most = 2 / (UNITS * facts(3).grid) + math.sqrt(3)
    for _ in range(50):
        X = 10 * rng.normal(size=(10, 3))
        old = integers(X, query, length, person=person, share=share)
        X[person == 0] = 10 * rng.normal(size=(7, 3))
        new = integers(X, query, length, person=person, share=share)
        assert np.linalg.norm((old - new).astype(float)) <= most


class Clusters(tt.Program):
    """k-means: the nearest centre of each row, and the rows around it, in a few sums."""

    def __init__(self, centres, rounds):
        self.centres, self.rounds = np.array(centres, dtype=float), rounds

    def steps(self, facts):
        k = len(self.centres)
        return [tt.Step(f"round {t}", k * (facts.columns + 1), 2.0) for t in range(self.rounds)]

    def start(self):
        return self.centres

    def query(self, centres):
        row = ex.columns()
        near = ex.first_largest(ex.affine(row, "twice", "less"))
        k = len(centres)
        pick = [ex.affine(near, f"pick{j}") for j in range(k)]
        parts = [part for one in pick for part in (one, row * one)]
        parameters = {"twice": 2 * centres, "less": -(centres**2).sum(axis=1)}
        parameters |= {f"pick{j}": np.eye(k)[j : j + 1] for j in range(k)}
        return tt.Query(ex.join(*parts), parameters)

    def advance(self, centres, total):
        blocks = total.values.reshape(len(centres), -1)
        shares = np.maximum(blocks[:, :1], 0.02)
        return np.where(blocks[:, :1] > 0.02, blocks[:, 1:] / shares, centres)

    def result(self, centres):
        return centres


def test_k_means_in_expressions_finds_the_groups():
    rng = np.random.default_rng(5)
    truth = np.array([[0.5, 0.5], [-0.5, 0.2], [0.1, -0.6]])
    X = truth[rng.integers(3, size=20_000)] + 0.05 * rng.normal(size=(20_000, 2))
    program = Clusters([[0.3, 0.2], [-0.2, 0.1], [0.0, -0.3]], rounds=6)
    found = tt.run_program(program, X, epsilon=1.0, colluding=1, random_state=0)
    assert np.abs(found.value - truth).max() < 0.03
    assert found.certificate.epsilon <= 1.0 and len(found.totals) == 6


class Median(tt.Program):
    """The median of one column by bisection: the share of rows below a guess, twelve times."""

    def steps(self, facts):
        return [tt.Step(f"step {t}", 1, 1.0) for t in range(12)]

    def start(self):
        return (0.0, 1.0)

    def query(self, interval):
        return tt.Query(ex.columns(0) < ex.parameter("guess"), {"guess": [sum(interval) / 2]})

    def advance(self, interval, total):
        low, high = interval
        middle = (low + high) / 2
        return (middle, high) if total.values[0] < 0.5 else (low, middle)

    def result(self, interval):
        return sum(interval) / 2


def test_a_median_in_expressions():
    x = np.random.default_rng(6).beta(2, 5, size=50_000)
    found = tt.run_program(Median(), x[:, None], epsilon=1.0, random_state=1)
    assert found.value == pytest.approx(np.median(x), abs=0.01)


class Wrong(Median):
    def query(self, interval):
        return tt.Query(ex.columns())


def test_an_expression_of_another_width_is_refused():
    with pytest.raises(tt.errors.ParameterError, match="`length` of step 'step 0' must be 2"):
        tt.run_program(Wrong(), np.zeros((9000, 2)), epsilon=1.0, delta=1e-5)


class Centred(ex.Columns):
    """A class of the program's author that looks at the rows beside each row."""

    def of(self, X, values):
        return X - X.mean(axis=0)


class Changing:
    """A query that shows one expression to the check and would give another to the sum."""

    def __init__(self):
        self.parameters, self.shown = {}, 0

    @property
    def expression(self):
        self.shown += 1
        return ex.columns() if self.shown == 1 else Centred()


@pytest.mark.parametrize(
    "expression",
    [Centred(), ex.outer(Centred()), ex.join(ex.columns(0), Centred((0,))), ex.columns() + Centred()],
)
def test_an_expression_that_is_not_of_the_closed_set_is_refused(expression, monkeypatch):
    monkeypatch.setattr(Wrong, "query", lambda self, state: tt.Query(expression))
    with pytest.raises(tt.errors.ParameterError, match=r"must be made of taciturn\.expressions; got Centred"):
        tt.run_program(Wrong(), np.zeros((9000, 2)), epsilon=1.0, delta=1e-5)


def test_a_program_whose_first_query_is_wrong_costs_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(Wrong, "query", lambda self, state: tt.Query(Centred()))
    with tt.Budget(tmp_path / "ledger.sqlite", epsilon=1.0) as budget:
        with pytest.raises(tt.errors.ParameterError, match="must be made of"):
            tt.run_program(Wrong(), np.zeros((9000, 2)), epsilon=0.5)
        assert budget.runs == ()


def test_the_expression_that_was_checked_is_the_one_that_is_summed(monkeypatch):
    monkeypatch.setattr(Wrong, "query", lambda self, state: Changing())
    half = ProgramHalf(Wrong(), (tt.Step("step", 2, 1.0),), 2)
    (query,) = half.query(half.start(1))
    assert type(query.expression) is ex.Columns


def test_a_budget_is_charged_for_the_whole_program(tmp_path):
    with tt.Budget(tmp_path / "ledger.sqlite", epsilon=1.2, delta=1e-5) as budget:
        tt.run_program(Median(), np.zeros((90_000, 1)), epsilon=1.0, delta=1e-5)
        assert budget.spent > 0
        with pytest.raises(tt.errors.BudgetExceeded):
            tt.run_program(Median(), np.zeros((90_000, 1)), epsilon=1.0, delta=1e-5)


class TwoSteps(Median):
    def steps(self, facts):
        assert facts.columns == 3
        return [tt.Step("cells", 4, 1.0, share=1.0, aligned=True), tt.Step("vectors", 2, 5.0, share=3.0)]


def test_steps_share_the_budget_and_move_by_what_a_unit_may_add():
    problem = ProgramTable([UnitRows(np.zeros((rows, 3))) for rows in (30, 20)], np.array([30, 20]), 7, False)
    network = Network.of(problem, tt.Graph.complete(2))
    method = OwnProgram(TwoSteps(), epsilon=1.0, delta=1e-5, columns=3)
    first, second = method.part(network).plans
    assert (first.part, first.length, first.share) == (ALIGNED, 4, 0.25)
    assert (second.part, second.length, second.share) == (VECTORS, 2, 0.75)
    assert first.sensitivity == math.sqrt(2) / UNITS and second.sensitivity == 2 / UNITS
    assert {(plan.stray, plan.largest, plan.whole) for plan in (first, second)} == {(0.0, 1.0, True)}
    with pytest.raises(tt.errors.ParameterError, match="`rounds` must be 2"):
        method.prepare(network, rounds=3)
    small, large = method.prepare(network).tables.sums
    assert small.grid * small.std / small.sensitivity == pytest.approx(
        math.sqrt(3) * large.grid * large.std / large.sensitivity, rel=1e-3
    )


@pytest.mark.parametrize("units", [7, 50, 4_001])
def test_unit_adds_norm_at_most_one_to_counts_asked_beside_other_questions(units):
    """Its weight is rounded down to a whole number of grid steps."""
    rows = UnitRows(np.zeros((units, 3)))
    network = Network.of(ProgramTable([rows], np.array([units]), 3, False), tt.Graph.complete(1))
    for grid in (2.0**-30 / 3, 2.0**-20, 1e-4 / 7):
        sums = (SumFacts(1, ALIGNED, 7, math.sqrt(2) / units, 0.0, grid, 2.0**20),)
        program = Counts((4, 3), epsilon=1.0, delta=1e-5).part(network).half(sums, 1)
        moved = program.steps * grid * math.sqrt(2)
        assert (1 - 1e-3) / units - grid * 2 < moved <= 1 / units


def test_every_person_counts_once_whatever_the_number_of_their_rows():
    """The mean over persons of the means of their rows, from a simulation with almost no noise."""
    person = np.repeat(np.arange(400), np.arange(400) % 7 + 1)
    X = np.where(person % 7 == 6, 0.5, -0.1)[:, None] * np.ones(3)
    found = tt.run_program(Means(), X, epsilon=40.0, person=person, sites=2, random_state=0)
    expected = np.where(np.arange(400) % 7 == 6, 0.5, -0.1).mean()
    assert found.value[0] == pytest.approx([expected] * 3, abs=0.01)
