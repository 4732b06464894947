"""Questions and regressions on a cluster: the bits of one process; secret noise is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn import expressions as ex
from taciturn.core.errors import ParameterError
from taciturn.runtime.ray import RayEngine

ROWS = 1200


class Median(tt.Program):
    """Three halvings, each of which depends on the total before it."""

    def steps(self, facts):
        return [tt.Step("above", 1, bound=0.5) for _ in range(3)]

    def start(self):
        return 0.0, 1.0

    def query(self, state):
        return tt.Query((ex.columns(0) > ex.parameter("middle")) - 0.5, {"middle": [sum(state) / 2]})

    def advance(self, state, total):
        low, high = state
        middle = (low + high) / 2
        return (middle, high) if total.values[0] > 0 else (low, middle)

    def result(self, state):
        return state


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (ROWS, 2))
    return X, (rng.random(ROWS) < X[:, 0]).astype(float), rng.exponential(1.0, ROWS)


def questions(rows):
    X, y, time = rows
    given = {"epsilon": 3.0, "sites": 3, "colluding": 1, "random_state": 0}
    columns, ranges = {"a": X[:, 0], "b": X[:, 1]}, {"a": (0, 1), "b": (0, 1)}
    person = np.arange(ROWS) // 2
    return {
        "describe": lambda engine: tt.private_description(columns, ranges, engine=engine, **given).facts(),
        "survival": lambda engine: tt.private_survival(
            time, y > 0, horizon=2, engine=engine, **given
        ).facts(),
        "correlations": lambda engine: tt.private_correlations(
            columns, ranges, engine=engine, **given
        ).facts(),
        "program": lambda engine: tt.run_program(Median(), X, engine=engine, person=person, **given).value,
        "glm": lambda engine: fitted(X, y, engine, given),
    }


def fitted(X, y, engine, given):
    model = tt.PrivateGLM(bounds=[(0, 1), (0, 1)], engine=engine, **given).fit(X, y)
    return model.summary().facts(), model.certificate_.to_json()


def test_answers_on_a_cluster_equal_those_of_one_process(joined, rows):
    for name, ask in questions(rows).items():
        assert repr(ask(RayEngine(shards=2))) == repr(ask("local")), name
    assert repr(questions(rows)["describe"]("ray")) == repr(questions(rows)["describe"]("local"))


def test_secret_noise_on_a_cluster_is_refused_by_name(rows):
    X, y, _ = rows
    with pytest.raises(ParameterError, match="without `random_state`, `engine` must be 'local'"):
        tt.private_description({"a": X[:, 0]}, {"a": (0, 1)}, epsilon=1.0, engine="ray")
    with pytest.raises(ParameterError, match="without `random_state`, `engine` must be 'local'"):
        tt.PrivateGLM(bounds=[(0, 1), (0, 1)], engine="ray").fit(X, y)
    with pytest.raises(ParameterError, match="`engine`"):
        tt.run_program(Median(), X, epsilon=1.0, engine="mars")
