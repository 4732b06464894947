"""Run the attack of the paper's appendix E at every noise level of a figure, and store each result.

The attacker tries to reconstruct one record of a site. An observer is an attacker with a certain knowledge of
the penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...auditing.attack import AttackResult, run_attack
from ...methods.admm.perturbations import MADMM, PenaltyPerturbation
from ...privacy.noise import NormNoise
from ..results_store import Arrays, ResultStore, fingerprint
from . import spec
from .build import build_graph, build_problem, certify_run
from .runner import DrawnFigure, FigureResult, figure_settings, finite

_KEPT = ("rounds", "cosine", "label", "eta_ratio", "chance", "prior", "prior_label")


@dataclass(frozen=True, eq=False)
class AttackFigureResult(DrawnFigure):
    """The result of an attack figure: for each noise level, the guesses of all observers, and the epsilon."""

    figure: spec.AttackFigure
    results: Mapping[str, AttackResult]
    epsilon: Mapping[str, float]

    columns: ClassVar = (
        *("figure", "noise", "observer", "rounds", "repeat", "record"),
        *("cosine", "label_found", "eta_ratio"),
    )

    def cosine(self, noise: str, observer: str) -> float:
        """The mean cosine between the guess of an observer and the record, after all rounds."""
        result = self.results[noise]
        return float(result.cosine[result.observers.index(observer), -1].mean())

    def records(self) -> Iterator[tuple[Any, ...]]:
        """One CSV row per noise level, observer, number of rounds, repeat and attacked record."""
        for noise, result in self.results.items():
            for at in np.ndindex(*result.cosine.shape):
                observer, t, repeat, record = at
                names = self.figure.name, noise, result.observers[observer], result.rounds[t], repeat
                found = result.cosine[at], int(result.label[at]), result.eta_ratio[at]
                yield *names, self.figure.run.records[record], *found

    def summaries(self) -> list[dict[str, Any]]:
        """The results of all observers at each noise level, as JSON values."""
        return [
            {
                "noise": noise,
                "epsilon": finite(self.epsilon[noise]),
                "chance": result.chance,
                "prior": result.prior,
                "prior_label": result.prior_label,
                "table": result.table(),
            }
            for noise, result in self.results.items()
        ]


Drawn = FigureResult | AttackFigureResult


def attack(
    figure: spec.AttackFigure, store: ResultStore, *, done: Callable[[], None] = lambda: None
) -> AttackFigureResult:
    """Run the attack at each noise level, or take its result from `store`. Call `done` after each level."""
    graph, problem, facts = build_graph(figure), build_problem(figure), figure.run
    observers: list[str] = [observer.name for observer in figure.observers]
    options = facts.model_dump(include={"rounds", "site", "records", "seed", "tol"})
    options["observers"] = observers
    results, epsilon = {}, {}
    for noise in figure.noises:
        eta, theta, rate = facts.penalty, facts.dual_step, noise.rate
        method = MADMM(eta, theta) if rate is None else PenaltyPerturbation(eta, theta, NormNoise(rate))
        repeats = 1 if rate is None else facts.repeats
        key = fingerprint(figure_settings(figure) | {"attack": 2, "observers": observers, "rate": rate})
        run = partial(_attacked, problem, graph, method, repeats=repeats, **options)
        results[noise.name] = _restore(observers, store.kept(key, run))
        same: Any = {"rounds": facts.rounds, "delta": facts.delta, "tol": facts.tol}
        epsilon[noise.name] = certify_run(problem, graph, method, **same).epsilon
        done()
    return AttackFigureResult(figure, results, epsilon)


def _attacked(*given: Any, **options: Any) -> Arrays:
    """The result of an attack, as arrays of floats."""
    found = run_attack(*given, **options)
    return {name: np.asarray(getattr(found, name), dtype=np.float64) for name in _KEPT}


def _restore(observers: list[str], kept: Arrays) -> AttackResult:
    """The result of an attack, from arrays of floats."""
    numbers: dict[str, Any] = {name: array if array.ndim else float(array) for name, array in kept.items()}
    numbers |= {"rounds": tuple(map(int, kept["rounds"])), "label": kept["label"] > 0}
    return AttackResult(observers=tuple(observers), **numbers)
