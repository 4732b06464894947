"""Compare ways to train a model, without privacy and with privacy.

Without privacy, all rows are pooled, or each site trains alone. With privacy, a site trusts no other site, or
it assumes that at most one other site is curious: this site tries to learn about the rows of others. For a
task with many rows, the last way is also tried with curves (an additive model). Every score is measured on
held-out rows. The model of a run is the average of the models that its sites released.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.formatting import format_given
from ...core.notebook import Picture, new_figure
from ...core.types import Array
from ...estimators import PrivateAdditiveClassifier
from ...objective.problem import Problem
from ...planning.plan import plan
from ...planning.planned_run import TOL
from ...planning.request import Plan
from ...privacy.certificate.certificate import Certificate
from ...runtime.simulate import simulate
from .tasks import SEED, Task

NO_PRIVACY, ALONE = "no privacy", "each site alone"
NOBODY, ONE_CURIOUS, CURVES = "trust no other site", "at most one curious site", "the same, with curves"


@dataclass(frozen=True, eq=False)
class Choice:
    """One way to train: its score on held-out rows, and its certificate and epsilon if it is private."""

    name: str
    test_loss: float
    test_accuracy: float
    certificate: Certificate | None = None
    epsilon: float | None = None


def count_choices(task: Task) -> int:
    """The number of choices that `compare` yields."""
    return 2 + (3 if task.curves else 2) * len(task.epsilons)


def compare(task: Task) -> Iterator[Choice]:
    """Train in every way, one after another. A private way is tried with every epsilon of the task."""
    pooled = np.vstack([X for X, _ in task.sites]), np.concatenate([y for _, y in task.sites])
    yield _choice(NO_PRIVACY, _margins(task, _converged(task, *pooled)))
    yield _choice(ALONE, _margins(task, *(_converged(task, X, y) for X, y in task.sites)))
    for epsilon in task.epsilons:
        yield _trusting_nobody(task, epsilon)
        yield _one_curious_site(task, epsilon)
        if task.curves:
            yield _with_curves(task, epsilon)


def _converged(task: Task, X: Array, y: Array) -> Array:
    """The coefficients that minimise the mean loss on these rows plus the task's regulariser."""
    from sklearn.linear_model import LogisticRegression

    weight = task.C * task.problem.n / (task.regularization * len(y))
    model = LogisticRegression(C=weight, fit_intercept=False, solver="newton-cholesky", tol=1e-8)
    return np.asarray(model.fit(X, y).coef_[0])


def _planned(task: Task, epsilon: float, **options: Any) -> Plan:
    """A plan from the public numbers of the task."""
    return plan(
        epsilon=epsilon,
        delta=task.delta,
        samples=task.problem.samples.tolist(),
        graph=task.graph,
        dimension=task.problem.dimension,
        **options,
    )


def _trusting_nobody(task: Task, epsilon: float) -> Choice:
    """Penalty perturbation in whitened coordinates; the planner chooses all settings from public numbers."""
    aim = {"C": task.C, "regularization": task.regularization}
    found = _planned(task, epsilon, **aim, baseline=False, whiten=True)
    run = simulate(task.problem, task.graph, found.method, rounds=found.rounds, seed=SEED, tol=TOL)
    margins = task.y_test * run.decide(task.X_test, found.weights)[0]
    return _choice(NOBODY, margins, run.certificate(task.delta), epsilon)


def _one_curious_site(task: Task, epsilon: float) -> Choice:
    """Masked descent: the noise of all honest sites together protects each record."""
    found = _planned(task, epsilon, colluding=1)
    joint = Problem(task.sites, C=found.C, regularization=found.regularization)
    run = simulate(joint, task.graph, found.method, rounds=found.rounds, seed=SEED)
    return _choice(ONE_CURIOUS, _margins(task, run.average()[0]), run.certificate(task.delta), epsilon)


def _with_curves(task: Task, epsilon: float) -> Choice:
    """An additive model, trained by masked sums: every numeric column has a curve over its public range."""
    rows = {name: values[~task.test] for name, values in task.columns.items()}
    model = PrivateAdditiveClassifier(
        schema=task.schema,
        classes=[-1.0, 1.0],
        epsilon=epsilon,
        delta=task.delta,
        sites=task.problem.n,
        graph=task.graph,
        colluding=1,
        random_state=SEED,
    ).fit(rows, task.y[~task.test])
    held = {name: values[task.test] for name, values in task.columns.items()}
    return _choice(CURVES, task.y_test * model.decision_function(held), model.certificate_, epsilon)


def _margins(task: Task, *models: Array) -> Array:
    """The margins y <f, x> of each model f on the held-out rows (x, y), (models, rows)."""
    return np.stack([task.y_test * (task.X_test @ f) for f in models])


def _choice(
    name: str, margins: Array, certificate: Certificate | None = None, epsilon: float | None = None
) -> Choice:
    """A choice, with the mean loss and accuracy that follow from the margins on held-out rows."""
    loss, right = float(np.logaddexp(0.0, -margins).mean()), float((margins > 0).mean())
    return Choice(name, loss, right, certificate, epsilon)


_COLOURS = {NOBODY: "#d55e00", ONE_CURIOUS: "#0072b2", CURVES: "#008a64"}
_WORDS = {
    NO_PRIVACY: "pooled linear model, no privacy",
    ALONE: "each site alone, without privacy",
    NOBODY: "trust no other site (the paper's method, whitened)",
    ONE_CURIOUS: "at most one curious site (masked sums)",
    CURVES: "the same, with a curve for every number",
}


def draw(task: Task, choices: Sequence[Choice]) -> Picture:
    """A line for every private choice, and a horizontal line for each choice without privacy."""
    figure = new_figure(7.2, 4.2)
    axes = figure.subplots()
    shown = {choice.name for choice in choices}
    for name, colour in ((name, colour) for name, colour in _COLOURS.items() if name in shown):
        losses = [choice.test_loss for choice in choices if choice.name == name]
        axes.plot(task.epsilons, losses, color=colour, marker="o", linewidth=2, label=_WORDS[name])
    for name, style in ((ALONE, "--"), (NO_PRIVACY, "-")):
        level = next(choice.test_loss for choice in choices if choice.name == name)
        axes.axhline(level, color="#59626c", linestyle=style, linewidth=1, label=_WORDS[name])
    axes.set_xscale("log")
    axes.set_xticks(task.epsilons, list(map(format_given, task.epsilons)))
    axes.minorticks_off()
    axes.set_xlabel(f"epsilon of the whole run, at delta = {task.delta:g} (smaller is safer)")
    axes.set_ylabel("loss on held-out rows (smaller is better)")
    axes.set_title(f"{task.name}: what privacy costs in quality", loc="left", fontsize=11)
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
