"""The attack of appendix E at every level of noise that a figure asks for, each kept once it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...auditing.attack import AttackResult, run_attack
from ...core.versions import versions
from ...graph import Graph
from ...methods.admm.perturbations import MADMM, Method, PenaltyPerturbation
from ...objective.problem import Problem
from ...privacy.noise import NormNoise
from ..results_store import Arrays, ResultStore, fingerprint
from . import spec
from .build import build_graph, build_problem, certify_run, load_rows

_ARRAYS = ("cosine", "label", "eta_ratio")
_NUMBERS = ("chance", "prior", "prior_label")


@dataclass(frozen=True, eq=False)
class AttackFigureResult:
    """A figure, and by level of noise what each observer found and what the run costs."""

    figure: spec.AttackFigure
    results: Mapping[str, AttackResult]
    epsilon: Mapping[str, float]

    def cosine(self, noise: str, observer: str) -> float:
        """The mean cosine after all rounds."""
        result = self.results[noise]
        return float(result.cosine[result.observers.index(observer), -1].mean())


def attack(
    figure: spec.AttackFigure, store: ResultStore, *, done: Callable[[], None] = lambda: None
) -> AttackFigureResult:
    """Attack at every level of noise that the store does not hold."""
    graph, problem = build_graph(figure), build_problem(figure)
    results, epsilon = {}, {}
    for noise in figure.noises:
        method = _method(figure, noise)
        results[noise.name] = _result(figure, noise, problem, graph, method, store)
        epsilon[noise.name] = certify_run(
            problem, graph, method, rounds=figure.run.rounds, delta=figure.run.delta, tol=figure.run.tol
        ).epsilon
        done()
    return AttackFigureResult(figure, results, epsilon)


def settings(figure: spec.AttackFigure, noise: spec.NoiseLevel) -> dict[str, Any]:
    """Everything that the numbers at one level depend on, as plain JSON."""
    facts = figure.data
    return {
        "attack": 1,
        "data": facts.identity(),
        "sha256": dict(load_rows(facts).sha256),
        "graph": figure.graph.model_dump(),
        "problem": figure.problem.model_dump(),
        "run": figure.run.model_dump(),
        "observers": [observer.name for observer in figure.observers],
        "rate": noise.rate,
        "versions": versions(),
    }


def _method(figure: spec.AttackFigure, noise: spec.NoiseLevel) -> Method:
    penalty = figure.run.penalty
    if noise.rate is None:
        return MADMM(penalty, figure.run.dual_step)
    return PenaltyPerturbation(penalty, figure.run.dual_step, NormNoise(noise.rate))


def _result(
    figure: spec.AttackFigure,
    noise: spec.NoiseLevel,
    problem: Problem,
    graph: Graph,
    method: Method,
    store: ResultStore,
) -> AttackResult:
    key, facts = fingerprint(settings(figure, noise)), figure.run
    kept = store.get(key)
    if kept is not None:
        return _restore(figure, kept)
    result = run_attack(
        problem,
        graph,
        method,
        rounds=facts.rounds,
        repeats=1 if noise.rate is None else facts.repeats,
        site=facts.site,
        records=facts.records,
        observers=[observer.name for observer in figure.observers],
        seed=facts.seed,
        tol=facts.tol,
    )
    arrays: Arrays = {name: np.asarray(getattr(result, name), dtype=np.float64) for name in _ARRAYS}
    numbers: Arrays = {name: np.asarray(getattr(result, name)) for name in _NUMBERS}
    store.put(key, arrays | numbers | {"rounds": np.asarray(result.rounds, dtype=np.float64)})
    return result


def _restore(figure: spec.AttackFigure, kept: Arrays) -> AttackResult:
    return AttackResult(
        observers=tuple(observer.name for observer in figure.observers),
        rounds=tuple(int(t) for t in kept["rounds"]),
        cosine=kept["cosine"],
        label=kept["label"] > 0,
        eta_ratio=kept["eta_ratio"],
        chance=float(kept["chance"]),
        prior=float(kept["prior"]),
        prior_label=float(kept["prior_label"]),
    )
