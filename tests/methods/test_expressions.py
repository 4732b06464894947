"""Expressions of a program: which queries are accepted, and expressions as data."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn import expressions as ex
from taciturn.core.errors import ParameterError
from taciturn.methods.sums.expression_json import expression_from, expression_to


def test_expressions_travel_as_data_and_nothing_else_does():
    made = ex.join(ex.clip(ex.columns(0, 2), 2.0), ex.cells(ex.columns(1), [0, 1, 2])) + ex.parameter("p")
    assert expression_from(expression_to(made)) == made
    for bad in (
        {"form": "Function", "name": "__import__", "part": expression_to(ex.columns())},
        {"form": "Columns"},
        {"form": "os.system", "chosen": None},
        "columns",
        {"form": "Columns", "chosen": None, "more": 1},
        {"form": "Elementwise", "name": "add", "parts": [expression_to(ex.columns())] * 3},
        {"form": "Elementwise", "name": "power", "parts": [expression_to(ex.columns())] * 2},
    ):
        with pytest.raises(ParameterError, match=r"`expression`|`name` must be one of"):
            expression_from(bad)


@pytest.mark.parametrize(
    "made",
    [
        lambda: ex.Columns(()),
        lambda: ex.Columns((True, False)),
        lambda: ex.Columns((0.5,)),
        lambda: ex.Constant(()),
        lambda: ex.Constant(("x",)),
        lambda: ex.Joined(()),
        lambda: ex.Function("norm", 5),
        lambda: ex.Located("cells", ex.columns(0), ("a", "b")),
        lambda: ex.Affine(ex.columns(), ["A"]),
    ],
)
def test_an_expression_of_no_width_or_of_another_type_is_refused(made):
    """Compiled loops would read memory beside such a vector, which may hold other rows."""
    with pytest.raises(ParameterError, match="must not be empty or of a wrong type"):
        made()


def test_an_empty_parameter_is_refused():
    query = tt.Query(ex.norm(ex.first_largest(ex.parameter("p"))), {"p": []})
    with pytest.raises(ParameterError, match="`p` must not be empty"):
        tt.run_program(Asks(lambda: query), np.zeros((50, 1)), epsilon=1.0, large_delta=True, random_state=0)


class Asks(tt.Program):
    """One step, and any answer to it."""

    def __init__(self, query, steps=None):
        self.asked, self.planned = query, steps

    def steps(self, facts):
        return self.planned or [tt.Step("a", 1, 1.0)]

    def start(self):
        return 0

    def query(self, state):
        return self.asked()

    def advance(self, state, total):
        return state + 1

    def result(self, state):
        return state


class LooksAround(tt.expressions.Expression):
    """Code that sees all rows at once: no clip bounds what one of them changes."""

    aligned = True

    def width(self, columns, shapes):
        return 1

    def of(self, X, values):
        return np.repeat(X[:1, :1], len(X), axis=0)


def doubled():
    part = ex.columns(0)
    for _ in range(60):
        part = part + part
    return tt.Query(part)


def nested():
    part = ex.columns(0)
    for _ in range(5000):
        part = part + 1.0
    return tt.Query(part)


@pytest.mark.parametrize(
    ("query", "match"),
    [
        (lambda: tt.Query(LooksAround()), "must be made of taciturn.expressions; got LooksAround"),
        (lambda: tt.Query(ex.clip(LooksAround(), 1.0)), "must be made of taciturn.expressions"),
        (doubled, "at most 10,000 parts"),
        (nested, "at most 10,000 parts"),
        (lambda: None, "must return a tt.Query"),
        (lambda: tt.Query(ex.columns(0), {"w": ["x"]}), "parameters are numbers"),
    ],
)
def test_a_query_in_this_process_is_held_to_the_same_forms_as_between_sites(query, match):
    with pytest.raises(ParameterError, match=match):
        tt.run_program(Asks(query), np.zeros((50, 1)), epsilon=1.0, large_delta=True, random_state=0)


def test_steps_of_another_type_are_refused():
    with pytest.raises(ParameterError, match=r"must contain tt\.Step objects"):
        tt.run_program(Asks(None, [("a", 1)]), np.zeros((50, 1)), epsilon=1.0, random_state=0)
