"""Compare a schedule of your own, which grows with the square root of the round, with the paper's schedule.

A schedule gives a positive number for every round, fixed before the run. It is a class with `__call__` and
`bounded`. Every method accepts it, and the ledger charges it round by round like any other schedule.
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import taciturn as tt


@dataclass(frozen=True)
class Root:
    """s(t) = start * sqrt(t)"""

    start: float

    def __call__(self, t: int) -> float:
        return float(self.start * np.sqrt(t))

    @property
    def bounded(self) -> bool:
        return False


def make_problem(rows: int) -> tt.Problem:
    """A problem with five sites and made-up rows, so that no real person loses privacy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 6))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ rng.normal(size=6) + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)
    return tt.Problem(tt.data.deal_evenly(X, y, 5, seed=0), loss=tt.Logistic(), C=100.0, regularization=0.01)


def main(folder: Path = Path("taciturn-gallery"), rows: int = 4000) -> dict[str, list[tuple[float, float]]]:
    """Run every combination; return (epsilon, mean loss) of each run, by the kind of schedule."""
    problem = make_problem(rows)
    schedules = {"geometric": lambda rate: tt.Geometric(rate, 1.05), "root": Root}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in schedules}
    for (name, make), rate, rounds in itertools.product(schedules.items(), (0.5, 1.0, 2.0, 4.0), (5, 20)):
        method = tt.PenaltyPerturbation(
            penalty=tt.Geometric(0.5, 1.05), dual_step=0.5, noise=tt.NormNoise(rate=make(rate))
        )
        run = tt.simulate(problem, "ring", method, rounds=rounds, repeats=5, seed=0)
        found[name].append((run.certificate(1e-5).epsilon, float(run.loss[:, -1].mean())))
    for name, points in found.items():
        best = min(points, key=lambda point: point[1])
        print(f"{name}: loss {best[1]:.3f} at epsilon {best[0]:.2f}")
    draw(found, folder)
    return found


def draw(found: dict[str, list[tuple[float, float]]], folder: Path) -> None:
    """Plot loss against epsilon, and the Pareto front: the points that no other point beats."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, points), marker in zip(found.items(), "os", strict=True):
        epsilon, loss = np.array(points).T
        drawn = axes.scatter(epsilon, loss, marker=marker, label=name)
        best = [k for k in range(len(loss)) if loss[k] <= loss[epsilon <= epsilon[k]].min()]
        best.sort(key=lambda k: epsilon[k])
        axes.step(epsilon[best], loss[best], where="post", color=drawn.get_facecolor()[0], linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("epsilon, at delta = 1e-5")
    axes.set_ylabel("mean loss after the last round")
    axes.legend(title="noise rate")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "own_method.png", dpi=120)


if __name__ == "__main__":
    main()
