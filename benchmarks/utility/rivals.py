"""What a user would pick instead.

Every rival has the same accounting, no output noise, and the best of a grid of settings, chosen on the test
rows at no cost: all of that flatters it. `taciturn` itself gets none of this.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.special import expit

import taciturn as tt
from taciturn.admm.averaging import gossip_weights
from taciturn.objective import LocalObjective, Logistic, SolverState, minimise
from taciturn.planning.calibration import Draft, EpsilonBudget, calibrate
from taciturn.privacy.accounting import bounds
from taciturn.privacy.facts import LossFacts, RunFacts

from .tasks import Array, Hands, Task

Setting = tuple[float, ...]
_RHO = 1e-7
_LOGISTIC = LossFacts("logistic", 1.0, 0.25)


@dataclass(frozen=True)
class Case:
    """One budget on one way to deal one data set."""

    task: Task
    sites: int
    epsilon: float
    delta: float

    @property
    def graph(self) -> tt.Graph:
        return tt.Graph.complete(self.sites)

    @property
    def least(self) -> int:
        """B of the smallest site."""
        return len(self.task.y) // self.sites


Fit = Callable[[Case, Hands, Setting, int], Array | None]


@dataclass(frozen=True)
class Rival:
    """A name, a grid, and a fit: one model (d,), or one for each site; None where no noise is enough."""

    name: str
    grid: tuple[Setting, ...]
    fit: Fit
    decentralised: bool = True
    blind: bool = False  # whether it is tuned on public rows as well


@functools.lru_cache(maxsize=4096)
def noise_std(case: Case, method: str, kappa: float, rounds: int, B: int, V: int, sites: int) -> float | None:
    """The least std of Gaussian noise, the same in every round, with 2 eta V = kappa."""
    run = RunFacts(
        method=method,
        noise="gaussian",
        loss=_LOGISTIC,
        sites=sites,
        rounds=rounds,
        dimension=case.task.dimension,
        C=1.0,
        regularization=_RHO,
    )
    shape = (1, rounds)
    draft = Draft(
        run, np.array([float(B)]), np.array([float(V)]), np.full(shape, kappa / (2 * V)), np.ones(shape)
    )
    scale = calibrate(draft, EpsilonBudget((case.epsilon,), case.delta))
    return None if scale is None else float(scale[0, 0])


def objective_perturbation(case: Case, X: Array, y: Array, kappa: float, seed: int) -> Array | None:
    """argmin mean loss + kappa ||f + e||^2 / 2, e ~ N(0, std^2): one release, of whoever holds these rows."""
    std = noise_std(case, "penalty", kappa, 1, len(y), 1, 1)
    if std is None:
        return None
    e = std * np.random.default_rng(seed).standard_normal((1, X.shape[1]))
    local = LocalObjective(X, y, loss=Logistic(), C=1.0, regularization=_RHO, sites=1)
    return np.asarray(
        minimise(local, curvature=kappa, linear=-kappa * e, start=0 * e, tol=1e-6, state=SolverState()).f[0]
    )


def no_privacy(case: Case, hands: Hands, setting: Setting, seed: int) -> Array:
    """The optimum of all rows together, hardly regularised."""
    task = case.task
    return tt.Problem([(task.Z, task.y)], C=1.0, regularization=setting[0] / len(task.y)).optimum(tol=1e-2)


def pooled(case: Case, hands: Hands, setting: Setting, seed: int) -> Array | None:
    """A trusted centre holds all rows."""
    return objective_perturbation(case, case.task.Z, case.task.y, setting[0], seed)


def alone(case: Case, hands: Hands, setting: Setting, seed: int) -> Array | None:
    """Every site keeps to itself; one model each."""
    models = [
        objective_perturbation(case, X, y, setting[0], 1000 * seed + i) for i, (X, y) in enumerate(hands)
    ]
    return None if any(f is None for f in models) else np.stack([f for f in models if f is not None])


def perturbed_admm(method: str) -> Fit:
    """DVP and PVP of zhang2017: one fixed penalty, which is also the dual step; the released average."""

    def fit(case: Case, hands: Hands, setting: Setting, seed: int) -> Array | None:
        rounds, kappa = int(setting[0]), setting[1]
        V = case.sites - 1
        std = noise_std(case, method, kappa, rounds, case.least, V, case.sites)
        if std is None:
            return None
        kind = tt.DualPerturbation if method == "dual" else tt.PrimalPerturbation
        problem = tt.Problem(hands, C=1.0, regularization=_RHO)
        perturbed = kind(kappa / (2 * V), tt.GaussianNoise(std))
        run = tt.simulate(problem, case.graph, perturbed, rounds=rounds, seed=seed, tol=1e-6, progress=False)
        return run.average()[0]

    return fit


def published_dvp(case: Case, hands: Hands, setting: Setting, seed: int) -> Array | None:
    """DVP as the papers have it: norm noise, C (1.4 c1 + alpha) / (eta V B) a round, added up."""
    rounds, kappa = int(setting[0]), setting[1]
    V, c1 = case.sites - 1, 0.25
    rate = case.epsilon * kappa * case.least / (2 * rounds) - 1.4 * c1
    if rate <= 0 or 2 * c1 >= case.least * kappa:
        return None
    problem = tt.Problem(hands, C=1.0, regularization=_RHO)
    method = tt.DualPerturbation(kappa / (2 * V), tt.NormNoise(rate))
    run = tt.simulate(problem, case.graph, method, rounds=rounds, seed=seed, tol=1e-6, progress=False)
    return run.average()[0]


def gradient_noise(case: Case, shape: Array) -> Array:
    """The least multiple of `shape` that is enough: a record moves a mean gradient by at most 2 / B."""
    q = bounds.ORDERS
    moved = np.sum((2 / case.least / shape) ** 2) / 2
    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = (low * high) ** 0.5
        spent = float(bounds.to_epsilon(q, q * moved / middle**2, case.delta)[0])
        low, high = (low, middle) if spent <= case.epsilon else (middle, high)
    return np.asarray(high * shape)


def descent(case: Case, hands: Hands, steps: Array, shape: Array, tail: int, seed: int) -> Array:
    """x_i <- sum_j W_ij u_j, u_j = x_j - step (gradient_j + noise_j): full batches, gossip over the u"""
    draw, W = np.random.default_rng(seed), gossip_weights(case.graph)
    sites = [(_lean(X), y) for X, y in hands]
    x = np.zeros((case.sites, case.task.dimension))
    seen = []
    for step, std in zip(steps, gradient_noise(case, shape), strict=True):
        slope = np.stack(
            [-X.T @ (y * expit(-y * (X @ f))) / len(y) for f, (X, y) in zip(x, sites, strict=True)]
        )
        u = x - step * (slope + std * draw.standard_normal(x.shape))
        x = W @ u
        seen.append(u.mean(axis=0))
    return np.mean(seen[-tail:], axis=0)


def _lean(X: Array) -> Array | sparse.csr_array:
    """The same rows, as a sparse matrix where most entries are zero: quicker, and nothing else."""
    return sparse.csr_array(X) if np.count_nonzero(X) < 0.3 * X.size else X


def sgd(case: Case, hands: Hands, setting: Setting, seed: int) -> Array:
    """Decentralised DP-SGD with gossip: one step size, one noise."""
    rounds, step, tail = int(setting[0]), setting[1], max(1, int(setting[0] * setting[2]))
    return descent(case, hands, np.full(rounds, step), np.ones(rounds), tail, seed)


def subgradient(case: Case, hands: Hands, setting: Setting, seed: int) -> Array:
    """huang2015: step c q^t and noise c p^t on what is sent, so (p/q)^t on the gradient; Gaussian here."""
    rounds, c, q, ratio = int(setting[0]), *setting[1:]
    t = np.arange(rounds)
    return descent(case, hands, c * q**t, ratio**t, 1, seed)


def diffprivlib(python: str) -> Fit:
    """diffprivlib's LogisticRegression on pooled rows, in an interpreter where it imports.

    Its own intercept escapes the regulariser, so the constant is given to it as a column, inside data_norm.
    """
    script = Path(__file__).with_name("diffprivlib_fit.py")

    def fit(case: Case, hands: Hands, setting: Setting, seed: int) -> Array:
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "rows.npz", X=case.task.Z, y=case.task.y)
            command = [python, str(script), folder, str(case.epsilon), str(setting[0]), str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        return np.array(json.loads(done.stdout))

    return fit


def rivals(python: str | None, *, quick: bool) -> Iterator[Rival]:
    """All of them; fewer settings in a quick run."""
    kappas = np.geomspace(3e-5, 1.0, 6 if quick else 12)
    one = tuple((float(kappa),) for kappa in kappas)
    rounds = (1, 4) if quick else (1, 3, 6, 15, 30)
    admm = tuple((float(T), float(kappa)) for T, kappa in product(rounds, kappas))
    yield Rival("no privacy, pooled", ((0.01,),), no_privacy, decentralised=False)
    yield Rival("objective perturbation, pooled", one, pooled, decentralised=False)
    if python is not None:
        Cs = (1e-2, 1.0) if quick else (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
        fit = diffprivlib(python)
        yield Rival("diffprivlib, pooled (pure epsilon)", tuple((C,) for C in Cs), fit, decentralised=False)
    yield Rival("each site alone", one, alone, blind=True)
    yield Rival("DVP, our accounting", admm, perturbed_admm("dual"), blind=True)
    yield Rival("DVP, the papers' accounting", admm, published_dvp)
    yield Rival("PVP, our accounting", admm, perturbed_admm("primal"))
    many = (10.0, 50.0) if quick else (50.0, 150.0, 400.0)
    sizes = (2.0, 8.0) if quick else (3.0, 8.0, 16.0, 32.0)
    yield Rival("DP-SGD with gossip", tuple(product(many, sizes, (0.0, 0.5))), sgd, blind=True)
    decays = (0.95,) if quick else (0.97, 0.99, 0.997)
    grid = tuple(product(many, sizes[1:], decays, (1.0, 1.01)))
    yield Rival("private subgradient (huang2015)", grid, subgradient, blind=True)
