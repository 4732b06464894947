"""Sweeps: every combination once, and a correct Pareto front."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.core.errors import ParameterError
from taciturn.paper.sweeps import grid as sweep


def test_a_grid_has_every_combination_once():
    points = sweep.grid({"a": [1, 2, 3], "b": ["x"], "c": [True, False]})
    assert len(points) == 6 and len({tuple(point.items()) for point in points}) == 6
    assert sweep.grid({}) == [{}]
    with pytest.raises(ParameterError, match="b must have at least one value"):
        sweep.grid({"a": [1], "b": []})


def test_settings_go_to_their_place_and_leave_the_rest_alone():
    table = {"run": {"rounds": 5}, "method": {"penalty": {"start": 0.5, "ratio": 1.0}}}
    changed = sweep.place_settings(table, {"method.penalty.ratio": 1.1, "run.rounds": 7, "name": "x"})
    assert changed == {"run": {"rounds": 7}, "method": {"penalty": {"start": 0.5, "ratio": 1.1}}, "name": "x"}
    assert table == {"run": {"rounds": 5}, "method": {"penalty": {"start": 0.5, "ratio": 1.0}}}


@pytest.mark.parametrize("name", ["run.rounds.start", "nothing.rounds"])
def test_path_through_a_value_is_refused(name):
    with pytest.raises(ParameterError, match=f"{name} must be a dotted key"):
        sweep.place_settings({"run": {"rounds": 5}}, {name: 1})


numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf, np.nan])


@given(st.lists(st.tuples(numbers, numbers), max_size=12))
def test_the_front_consists_of_the_unbeaten_points(points):
    costs, losses = [c for c, _ in points], [loss for _, loss in points]

    def beaten(k):
        return any(
            c <= costs[k] and x <= losses[k] and (c < costs[k] or x < losses[k])
            for c, x in points
            if np.isfinite([c, x]).all()
        )

    wanted = [bool(np.isfinite(points[k]).all()) and not beaten(k) for k in range(len(points))]
    assert sweep.front(costs, losses).tolist() == wanted


def test_jobs_one_after_another():
    assert list(sweep.run_each(lambda x: x * x, [3, 4])) == [(0, 9), (1, 16)]
    assert list(sweep.run_each(print, [], engine="auto")) == []
    with pytest.raises(ParameterError, match="`engine`"):
        list(sweep.run_each(print, [1], engine="abacus"))


@pytest.mark.parametrize("chosen", ["local", "ray"])
def test_auto_times_the_first_job_and_runs_each_job_once(monkeypatch, chosen):
    asked, there = [], []
    monkeypatch.setattr(sweep, "choose_for_jobs", lambda seconds, jobs: asked.append(jobs) or chosen)
    tasks = ModuleType("tasks")
    tasks.scatter = lambda run, items, address: there.extend(items) or enumerate(map(run, items))
    monkeypatch.setitem(sys.modules, "taciturn.runtime.ray.tasks", tasks)
    monkeypatch.setitem(sys.modules, "taciturn.runtime.ray", ModuleType("taciturn.runtime.ray"))
    assert list(sweep.run_each(lambda x: x * x, [3, 4, 5], engine="auto")) == [(0, 9), (1, 16), (2, 25)]
    assert asked == [2] and there == ([4, 5] if chosen == "ray" else [])
