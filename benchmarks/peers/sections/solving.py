"""Section 4, solving: the distance from the optimum of all rows after 50 rounds of ADMM on a ring."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt

from .. import federations
from ..pins import Environment
from ..rows import DEAL, SITES, adult, scores
from ..running.sandbox import marks, per_round, run
from .work import fresh, kept, last_words, lines_written

ROUNDS = 50
REGULARIZATION = 1e-3  # relative to the mean loss; 50 rounds come near this optimum
PENALTIES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
EVERY = 4  # both packages use every fourth row: with all rows, a round of disropt takes seconds
THIN = 20  # the penalty of disropt is chosen on every twentieth row

Rows = list[tuple[np.ndarray, np.ndarray]]


@cache
def hands(step: int = EVERY) -> Rows:
    """Every `step`-th row of every site."""
    return [(X[::step], y[::step]) for X, y in adult().hands(SITES, DEAL)]


def problem(step: int = EVERY) -> tt.Problem:
    """The problem: the mean over the sites of the mean loss, with weak regularisation."""
    return tt.Problem(hands(step), C=1.0, regularization=REGULARIZATION * SITES)


@cache
def optimum(step: int = EVERY) -> np.ndarray:
    """The optimum of all rows together."""
    return np.asarray(problem(step).optimum(tol=1e-9)).reshape(-1)


def distance(models: np.ndarray, step: int = EVERY) -> float:
    """The largest distance of a site from the optimum, divided by the norm of the optimum."""
    best = optimum(step)
    return float(np.max(np.linalg.norm(np.atleast_2d(models) - best, axis=1)) / np.linalg.norm(best))


def measure_ours() -> dict[str, Any]:
    """`simulate` in one process with the best penalty; the runs that choose the penalty are not timed."""
    models = {penalty: _ours(penalty)[0] for penalty in PENALTIES}
    best = min(models, key=lambda penalty: distance(models[penalty]))
    found, seconds, cpu = _ours(best)
    facts = {"penalty": best, "rounds": ROUNDS, "distance": distance(found), "seconds": seconds, "cpu": cpu}
    return facts | {"round_seconds": seconds / ROUNDS, "round_cpu": cpu / ROUNDS} | scores(found.mean(axis=0))


def _ours(penalty: float) -> tuple[np.ndarray, float, float]:
    whole = problem()
    begun, used = time.perf_counter(), time.process_time()
    found = tt.simulate(whole, "ring", tt.ADMM(penalty), rounds=ROUNDS, tol=1e-8, seed=0, progress=False)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - used
    return np.asarray(found.coef[0]), seconds, cpu


def measure(env: Environment, base: Path) -> dict[str, Any]:
    """disropt: choose its penalty on few rows with its formulas, then run disropt on all rows."""
    tries = {penalty: distance(their_way(penalty), THIN) for penalty in PENALTIES}
    best = min(tries, key=lambda penalty: tries[penalty])
    models, measured = _theirs(env, best, base)
    facts = {"penalty": best, "distance": distance(models), "install": env.megabytes}
    return facts | {"lines": lines_written("disropt")} | scores(models.mean(axis=0)) | measured


def their_way(penalty: float) -> np.ndarray:
    """disropt's ADMM on every twentieth row, written in numpy, to choose the penalty quickly."""
    few, d = hands(THIN), adult().dimension
    around = [sorted({(i - 1) % SITES, i, (i + 1) % SITES}) for i in range(SITES)]
    x, z = np.zeros((SITES, d)), np.zeros((SITES, d))
    dual = np.zeros((SITES, SITES, d))
    for _ in range(ROUNDS):
        x = np.stack([_step(few[i], x[i], dual[i].sum(axis=0), z[around[i]], penalty) for i in range(SITES)])
        z = np.stack(
            [x[near].mean(axis=0) + dual[near, i].mean(axis=0) / penalty for i, near in enumerate(around)]
        )
        for i, near in enumerate(around):
            dual[i, near] += penalty * (x[i] - z[near])
    return x


def _step(
    rows: tuple[np.ndarray, np.ndarray], start: np.ndarray, dual: np.ndarray, z: np.ndarray, penalty: float
) -> np.ndarray:
    """Newton steps on the problem of one site."""
    X, y = rows
    f, stiff = start.copy(), REGULARIZATION / SITES + penalty * len(z)
    for _ in range(8):
        chance = 1 / (1 + np.exp(y * (X @ f)))
        slope = -X.T @ (y * chance) / (len(y) * SITES) + REGULARIZATION / SITES * f + dual
        slope += penalty * (len(z) * f - z.sum(axis=0))
        bend = X.T @ ((chance * (1 - chance))[:, None] * X) / (len(y) * SITES) + stiff * np.eye(len(f))
        f -= np.linalg.solve(bend, slope)
    return f


def _theirs(env: Environment, penalty: float, base: Path) -> tuple[np.ndarray, dict[str, Any]]:
    few, folder = fresh(base / "rows-few"), fresh(base / "solving-disropt")
    for i, (X, y) in enumerate(hands()):
        np.savez(few / f"site-{i}.npz", X=X, y=y)
    measured = run(federations.disropt(env, [few / "site-0.npz"], ROUNDS, penalty, REGULARIZATION), folder)
    if not measured["ended"]:
        raise RuntimeError(last_words(folder))
    models = np.array(json.loads((folder / "models.json").read_text(encoding="utf-8")))
    return models, per_round(marks(folder), SITES) | kept(measured)
