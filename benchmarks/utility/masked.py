"""`python -m benchmarks.utility.masked`: masked descent beside a trusted centre; docs/masked_utility.md.

The rule was chosen first. `fair` and `insurance` are run here for the first time: nobody tuned on them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import taciturn as tt
from taciturn.masked.public import rule
from taciturn.objective import one_blas_thread

from .fresh import FRESH, load_fresh
from .rivals import Case, no_privacy, objective_perturbation
from .tasks import Array, Task, load

DELTA, SEEDS = 1e-5, 10
SIZES = (5, 20, 100)
SPLITS = ("even", "uneven", "by column")
KAPPAS = np.geomspace(3e-5, 1.0, 12)
_TUNING = (1001, 1002)


@dataclass(frozen=True)
class Line:
    """One contender on one case: test loss (mean and standard deviation over seeds) and accuracy."""

    data: str
    sites: int
    split: str
    epsilon: float
    contender: str
    loss: float
    loss_std: float
    accuracy: float
    excess: float
    ratio: float


def assign(task: Task, sites: int, split: str) -> Array:
    """Which site holds which row: evenly, by Dirichlet(0.3) with a smallest share, or by a column's value."""
    draw, rows = np.random.default_rng(7), len(task.y)
    if split == "even":
        return draw.permutation(rows) % sites
    if split == "uneven":
        shares = np.maximum(draw.dirichlet(np.full(sites, 0.3)), 0.05 / sites)
        site = draw.choice(sites, size=rows, p=shares / shares.sum())
        site[draw.permutation(rows)[:sites]] = np.arange(sites)  # nobody is left without a row
        return site
    order = np.argsort(task.X @ draw.standard_normal(task.X.shape[1]), kind="stable")
    site = np.empty(rows, dtype=np.int64)
    site[order] = np.arange(rows) * sites // rows
    return site


def masked(case: Case, colluding: int, split: str, seeds: int) -> tuple[Array, float]:
    """(models (seeds, d), certified epsilon): all seeds share each product of the rows."""
    task = case.task
    site = assign(task, case.sites, split)
    problem = tt.Problem(
        [(task.Z[site == i], task.y[site == i]) for i in range(case.sites)],
        C=1.0,
        regularization=1e-6 * case.sites,
    )
    method = tt.MaskedDescent(
        epsilon=case.epsilon, delta=case.delta, colluding=colluding, constant=task.ball.constant
    )
    rounds = rule.ROUNDS if task.dimension <= rule.FULL else rule.ROUNDS_WIDE
    run = tt.simulate(problem, "ring", method, rounds=rounds, repeats=seeds, seed=0, progress=False)
    return run.average(), run.certificate(case.delta).epsilon


def centre(case: Case, seeds: int) -> tuple[list[tuple[float, float]], float]:
    """Pooled objective perturbation with its regulariser tuned on the test rows, which flatters it."""
    task, best, least = case.task, float(KAPPAS[0]), np.inf
    for kappa in KAPPAS:
        fits = [objective_perturbation(case, task.Z, task.y, float(kappa), seed) for seed in _TUNING]
        losses = [task.score(f)[0] for f in fits if f is not None]
        if len(losses) == len(_TUNING) and np.mean(losses) < least:
            best, least = float(kappa), float(np.mean(losses))
    fits = [objective_perturbation(case, task.Z, task.y, best, seed) for seed in range(seeds)]
    return [task.score(f) for f in fits if f is not None], best


def measure(task: Task, epsilon: float, sizes: tuple[int, ...], splits: tuple[str, ...]) -> Iterator[Line]:
    """Every contender on one table at one budget."""
    case = Case(task, sizes[0], epsilon, DELTA)
    base = task.score(no_privacy(case, [], (0.01,), 0))[0]
    pooled, _ = centre(case, SEEDS)
    price = float(np.mean([loss for loss, _ in pooled])) - base

    def line(sites: int, split: str, name: str, scores: list[tuple[float, float]]) -> Line:
        loss, accuracy = np.mean(scores, axis=0)
        std = float(np.std([one for one, _ in scores]))
        excess = float(loss) - base
        return Line(
            task.name, sites, split, epsilon, name, float(loss), std, float(accuracy), excess, excess / price
        )

    yield line(1, "", "trusted centre, objective perturbation", pooled)
    f, _ = masked(Case(task, 2, epsilon, DELTA), 0, "even", SEEDS)
    yield line(1, "", "trusted centre, the same descent", [task.score(one) for one in f])
    for sites in sizes:
        for split in splits:
            for colluding in sorted({1, sites // 3}) if split == "even" else (1,):
                f, spent = masked(Case(task, sites, epsilon, DELTA), colluding, split, SEEDS)
                if spent > epsilon:
                    raise ArithmeticError(f"{spent} was spent of {epsilon}")
                scores = [task.score(one) for one in f]
                yield line(sites, split, f"masked descent, {colluding} colluding", scores)


def main() -> None:
    """Measure, keep every line, write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility.masked", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs")
    parser.add_argument("--quick", action="store_true", help="support, five sites; prints only")
    options = parser.parse_args()
    found: list[Line] = []
    with one_blas_thread():
        for lines in _cases(options.quick):
            for line in lines:
                print(json.dumps(asdict(line)), flush=True)
                found.append(line)
    if not options.quick:
        from .masked_page import write_page

        print(write_page(found, options.out))


def _cases(quick: bool) -> Iterator[Iterator[Line]]:
    if quick:
        yield measure(load("support"), 1.0, (5,), ("even",))
        return
    for name in ("adult", "credit", "support"):
        yield measure(load(name), 1.0, SIZES, SPLITS)
    for name in FRESH:
        yield measure(load_fresh(name), 1.0, SIZES, SPLITS)
    for epsilon in (0.1, 0.3, 3.0, 10.0):
        yield measure(load("adult"), epsilon, (20,), ("even",))


if __name__ == "__main__":
    main()
