"""The rivals: the alternatives that a user could choose instead of taciturn.

Every rival has exact accounting, no output noise, and the best of a grid of settings, chosen on the test rows
at no privacy cost. All of this favours the rivals; taciturn gets none of it.
"""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

import taciturn as tt
from taciturn.objective import LocalObjective, Logistic, SolverState, minimise
from taciturn.planning.calibration import Draft, EpsilonBudget, calibrate
from taciturn.privacy.facts import RunFacts
from taciturn.privacy.loss_facts import LossFacts

from .gossip import decor, sgd, subgradient
from .tasks import Array, Case, Fit, Models, Setting

_RHO = 1e-7
_LOGISTIC = LossFacts("logistic", 1.0, 0.25)

NO_PRIVACY, POOLED = "no privacy, pooled", "trusted centre, objective perturbation"


@dataclass(frozen=True)
class Rival:
    """A name, a grid, and a fit: for each setting one model per seed, or one model per seed and site.

    refined : the index of the setting's entry that is also tried half a grid step to both sides of the best.
    """

    name: str
    grid: tuple[Setting, ...]
    fit: Fit
    decentralised: bool = True
    refined: int | None = None


def each(fit: Callable[[Case, Setting, Sequence[int]], Models]) -> Fit:
    """A fit that runs one setting after another."""
    return lambda case, settings, seeds: [fit(case, setting, seeds) for setting in settings]


@functools.lru_cache(maxsize=4096)
def noise_std(case: Case, method: str, kappa: float, rounds: int, B: int, V: int, sites: int) -> float | None:
    """The smallest std of Gaussian noise, equal in all rounds, with 2 eta V = kappa; None if none exists."""
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


def objective_perturbation(case: Case, X: Array, y: Array, kappa: float, seeds: Sequence[int]) -> Models:
    """argmin mean loss + kappa ||f + e||^2 / 2, e ~ N(0, std^2): one release by the owner of these rows."""
    std = noise_std(case, "penalty", kappa, 1, len(y), 1, 1)
    if std is None:
        return None
    e = std * np.stack([np.random.default_rng(seed).standard_normal(X.shape[1]) for seed in seeds])
    local = LocalObjective(X, y, loss=Logistic(), C=1.0, regularization=_RHO, sites=1)
    state = SolverState()
    return minimise(local, curvature=kappa, linear=-kappa * e, start=0 * e, tol=1e-6, state=state).f


def no_privacy(case: Case, setting: Setting, seeds: Sequence[int]) -> Models:
    """The optimum of all rows together, with very weak regularisation."""
    task = case.task
    problem = tt.Problem([(task.Z, task.y)], C=1.0, regularization=setting[0] / len(task.y))
    return problem.optimum(tol=1e-2)[None]


def pooled(case: Case, setting: Setting, seeds: Sequence[int]) -> Models:
    """Objective perturbation at a trusted centre with all rows."""
    return objective_perturbation(case, case.task.Z, case.task.y, setting[0], seeds)


def alone(case: Case, setting: Setting, seeds: Sequence[int]) -> Models:
    """Every site trains alone; one model each, (seeds, sites, d)."""
    models = []
    for i, (X, y) in enumerate(case.task.hands(case.sites)):
        f = objective_perturbation(case, X, y, setting[0], [1000 * seed + i for seed in seeds])
        if f is None:
            return None
        models.append(f)
    return np.stack(models, axis=1)


def perturbed_admm(method: str) -> Fit:
    """DVP and PVP of zhang2017. The fixed penalty is also the dual step; returns the released average."""

    def fit(case: Case, setting: Setting, seeds: Sequence[int]) -> Models:
        rounds, kappa = int(setting[0]), setting[1]
        V = case.sites - 1
        std = noise_std(case, method, kappa, rounds, case.least, V, case.sites)
        if std is None:
            return None
        kind = tt.DualPerturbation if method == "dual" else tt.PrimalPerturbation
        return _admm(case, kind(kappa / (2 * V), tt.GaussianNoise(std)), rounds, seeds)

    return each(fit)


def published_dvp(case: Case, setting: Setting, seeds: Sequence[int]) -> Models:
    """DVP as in the papers: norm noise, with a cost of C (1.4 c1 + alpha) / (eta V B) per round, added up."""
    rounds, kappa = int(setting[0]), setting[1]
    V, c1 = case.sites - 1, 0.25
    rate = case.epsilon * kappa * case.least / (2 * rounds) - 1.4 * c1
    if rate <= 0 or 2 * c1 >= case.least * kappa:
        return None
    return _admm(case, tt.DualPerturbation(kappa / (2 * V), tt.NormNoise(rate)), rounds, seeds)


def _admm(case: Case, method: tt.Method, rounds: int, seeds: Sequence[int]) -> Array:
    problem = tt.Problem(case.task.hands(case.sites), C=1.0, regularization=_RHO)
    run = tt.simulate(
        problem,
        case.graph,
        method,
        rounds=rounds,
        repeats=len(seeds),
        seed=seeds[0],
        tol=1e-6,
        progress=False,
    )
    return run.average()


def diffprivlib(python: str) -> Fit:
    """diffprivlib's LogisticRegression on pooled rows, in an interpreter that has diffprivlib.

    Its own intercept is not regularised, so the constant is a column of the rows, within data_norm.
    """
    script = Path(__file__).with_name("diffprivlib_fit.py")

    def fit(case: Case, setting: Setting, seeds: Sequence[int]) -> Models:
        with tempfile.TemporaryDirectory() as folder:
            np.savez(Path(folder) / "rows.npz", X=case.task.Z, y=case.task.y)
            command = [python, str(script), folder, str(case.epsilon), str(setting[0])]
            command += [str(seed) for seed in seeds]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        return np.array(json.loads(done.stdout))

    return each(fit)


def rivals(python: str | None, *, quick: bool) -> Iterator[Rival]:
    """All rivals; fewer settings in a quick run."""
    kappas = tuple(float(kappa) for kappa in np.geomspace(3e-5, 1.0, 5 if quick else 8))
    one = tuple((kappa,) for kappa in kappas)
    yield Rival(NO_PRIVACY, ((0.01,),), each(no_privacy), decentralised=False)
    wide = tuple((float(kappa),) for kappa in np.geomspace(1e-6, 1.0, 5 if quick else 13))
    yield Rival(POOLED, wide, each(pooled), decentralised=False, refined=0)
    if python is not None:
        Cs = (1e-2, 1.0) if quick else (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
        fit = diffprivlib(python)
        yield Rival("diffprivlib, pooled (pure epsilon)", tuple((C,) for C in Cs), fit, decentralised=False)
    many = (10.0, 50.0) if quick else (50.0, 150.0, 400.0)
    sizes = (4.0, 16.0) if quick else (4.0, 8.0, 16.0, 32.0, 64.0)
    plain = tuple(product(many, sizes, (0.5, 1.0), (0.0, 0.5)))
    yield Rival("DECOR, complete graph", plain, decor(100.0))
    yield Rival("DP-SGD with gossip", plain, sgd)
    decays = (0.95,) if quick else (0.97, 0.99, 0.997)
    falling = [s for s in product(many, sizes[1:], decays, (1.0, 1.01), (0.0,)) if s[0] * (1 - s[2]) < 5]
    yield Rival("private subgradient (huang2015)", tuple(falling), subgradient)
    rounds = (1.0, 4.0) if quick else (1.0, 3.0, 8.0, 25.0)
    dual = tuple(product(rounds, kappas))
    yield Rival("DVP (zhang2017)", dual, perturbed_admm("dual"), refined=1)
    few = tuple(product(rounds[:3], kappas[2:]))
    yield Rival("PVP (zhang2017)", few, perturbed_admm("primal"), refined=1)
    yield Rival("DVP, the papers' accounting", few, each(published_dvp), refined=1)
    yield Rival("each site alone", one, each(alone), refined=0)
