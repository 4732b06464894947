"""simulate(engine=...): the same run on every engine; Ray only on request."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import MissingExtra, ParameterError

ADMM = tt.ADMM(0.5)


@pytest.fixture
def no_ray(monkeypatch):
    """As if the extra had not been installed."""
    for name in [
        name for name in sys.modules if name == "ray" or name.startswith(("ray.", "taciturn.runtime.ray"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delattr("taciturn.runtime.ray", raising=False)


def test_asking_for_ray_without_the_extra_gives_the_command(problem, ring, no_ray):
    with pytest.raises(MissingExtra, match=r"`ray` is not installed; run: pip install 'taciturn\[ray\]'"):
        tt.simulate(problem, ring, ADMM, rounds=2, engine="ray")
    with pytest.raises(MissingExtra):
        _ = tt.runtime.RayEngine


def test_auto_works_without_the_extra(problem, ring, no_ray):
    auto = tt.simulate(problem, ring, ADMM, rounds=2, engine="auto")
    assert np.array_equal(auto.coef, tt.simulate(problem, ring, ADMM, rounds=2).coef)


def test_a_family_s_name_or_a_networkx_graph_is_taken_for_a_graph(problem, ring):
    expected = tt.simulate(problem, ring, ADMM, rounds=2).coef
    assert np.array_equal(tt.simulate(problem, "ring", ADMM, rounds=2).coef, expected)
    assert np.array_equal(tt.simulate(problem, ring.to_networkx(), ADMM, rounds=2).coef, expected)


def test_any_engine_can_be_handed_in(problem, ring):
    class Mirror:
        def run(self, setup, *, show=None):
            return setup.rounds, show

    assert tt.simulate(problem, ring, ADMM, rounds=2, engine=Mirror(), progress=False) == (2, False)


def test_nothing_but_its_own_folder_imports_ray():
    source = Path(tt.__file__).parent
    for path in source.rglob("*.py"):
        if source / "runtime" / "ray" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            assert not any(name.split(".")[0] == "ray" for name in names), path


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": tt.MADMM}, "`method` must be an object"),
        ({"threads": 0}, "`threads` must be at least 1; got 0"),
        ({"threads": -1}, "`threads` must be at least 1; got -1"),
        ({"threads": 1.5}, "`threads` must be a whole number"),
        ({"strict": "no"}, "`strict` must be True or False; got 'no'"),
        ({"history": "no"}, "`history` must be True or False; got 'no'"),
    ],
)
def test_parameters_are_checked_before_the_first_round(problem, ring, given, words):
    with pytest.raises(ParameterError, match=words):
        tt.simulate(problem, ring, **({"method": ADMM, "rounds": 2} | given))


def test_text_does_not_switch_off_the_output_noise_of_a_real_run(problem, ring):
    with pytest.raises(ParameterError, match="`idealised` must be True or False; got 'no'"):
        tt.train(problem, ring, tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0)), rounds=2, idealised="no")
