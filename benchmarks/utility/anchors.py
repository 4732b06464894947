"""Anchors to compare a private model with: trusted centres, rivals with curves, models without privacy.

Every anchor uses the best settings of a grid, chosen on the test rows at no privacy cost. This favours
the anchors.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from taciturn.data import Category, Number
from taciturn.estimators.personal import OwnRows, own_model, own_objective
from taciturn.objective import Logistic
from taciturn.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu

from .rivals import objective_perturbation
from .tasks import Array, Case, Setting, Task

WHITE_CENTRE = "trusted centre, whitened, objective perturbation"
EBM = "trusted centre, DP-EBM"
BOOSTING = "no privacy, boosting, pooled"
ALONE_FREE = "each site alone, no privacy"
_SHARE = 0.1  # the share of the squared budget for the centre's moments
_FEW = 5  # with fewer records of a class, a site alone can only learn how common the class is
_SITES = 10  # how many of the sites are measured if each has its own model

Score = tuple[float, float]
Fit = Callable[[Case, Setting, int], Score]


@dataclass(frozen=True)
class Anchor:
    """A name, a grid of settings, and a fit, which returns loss and accuracy of one setting with one seed."""

    name: str
    grid: tuple[Setting, ...]
    fit: Fit

    def best(self, case: Case) -> Setting:
        """The setting with the smallest loss on the test rows, for a seed that no result uses."""
        if len(self.grid) == 1:
            return self.grid[0]
        return min(self.grid, key=lambda setting: self.fit(case, setting, 1001)[0])

    def scores(self, case: Case, seeds: int) -> tuple[Setting, list[Score]]:
        """The best setting, and its scores."""
        best = self.best(case)
        return best, [self.fit(case, best, seed) for seed in range(seeds)]


def log_scores(task: Task, chance: Array) -> Score:
    """Mean loss and accuracy on the test rows, from predicted probabilities of +1."""
    chance = np.clip(chance, 1e-9, 1 - 1e-9)
    right = np.where(task.y_test > 0, chance, 1 - chance)
    return float(-np.log(right).mean()), float(np.mean(right > 0.5))


def whitened_centre(case: Case, setting: Setting, seed: int) -> Score:
    """Two noisy moments of all rows, then objective perturbation in the coordinates from these moments.

    A setting is the pair (clip of a whitened row, in units of sqrt(K); penalty). Predictions clip rows if
    that is better. The budget left after the moments is computed as for Gaussian noise.
    """
    factor, kappa = setting
    task, draw = case.task, np.random.default_rng(seed)
    mu = float(gaussian_mu(case.epsilon, case.delta))
    W, K = _coordinates(task.Z, mu * math.sqrt(_SHARE / 2), draw)
    q = factor * math.sqrt(K)
    left = float(gaussian_epsilon(mu * math.sqrt(1 - _SHARE), case.delta))
    u = objective_perturbation(replace(case, epsilon=left), _clip(task.Z @ W, q), task.y, kappa, [seed])
    if u is None:
        return math.inf, 0.0
    rows = task.Z_test @ W
    margins = [_clip(rows, q) @ u[0], rows @ u[0] / q]
    return min(log_scores(task, 1 / (1 + np.exp(-np.clip(each, -30, 30)))) for each in margins)


def _clip(rows: Array, q: float) -> Array:
    lengths = np.linalg.norm(rows, axis=1)
    return np.asarray(rows / np.maximum(lengths, q)[:, None])


def _coordinates(Z: Array, mu: float, draw: np.random.Generator) -> tuple[Array, float]:
    """W and the effective dimension, from two noisy second moments (cost mu each); the second is whitened."""
    n, d = Z.shape
    W, rows, cap, K = np.eye(d), Z, 1.0, 1.0
    for _ in range(2):
        std = math.sqrt(2) / (n * mu) * cap
        noise = draw.standard_normal((d, d)) * std
        upper = np.triu(noise, 1) / math.sqrt(2)
        omega = np.minimum(1.0, cap / np.maximum(np.einsum("ij,ij->i", rows, rows), 1e-300))
        M = (rows * omega[:, None]).T @ rows / n + upper + upper.T + np.diag(np.diagonal(noise))
        kept, vectors = _cleaned(M, std)
        edge = math.sqrt(2 * d) * std
        K = max(1.0, float(np.sum(kept / (kept + edge / 2))))
        W = W @ vectors * (kept + edge / 2) ** -0.5
        rows, cap = Z @ W, 2 * K
    return W, K


def _cleaned(M: Array, std: float) -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors) of an estimate of M without its noise.

    The estimate is the diagonal of M, shrunk towards its mean, plus the part of the rest above the noise.
    """
    d, diagonal = len(M), np.diagonal(M)
    mean = max(float(diagonal.mean()), 1e-9)
    keep = max(0.0, 1 - d * std * std / max(float(np.sum((diagonal - mean) ** 2)), 1e-300))
    shrunk = np.diag(np.maximum(mean + keep * (diagonal - mean), 0.0))
    levels, vectors = np.linalg.eigh(M - shrunk)
    edge = math.sqrt(2 * d) * std
    size = 0.5 * (np.abs(levels) + np.sqrt(np.maximum(levels**2 - edge**2, 0.0)))
    signal = np.where(np.abs(levels) > edge, np.sign(levels) * size, 0.0)
    levels, vectors = np.linalg.eigh(shrunk + (vectors * signal) @ vectors.T)
    return np.maximum(levels, 0.0), vectors


def dp_ebm(case: Case, setting: Setting, seed: int) -> Score:
    """DP-EBM of interpret at a trusted centre; a setting is (rounds, learning rate, bins)."""
    from interpret.privacy import DPExplainableBoostingClassifier

    task, (rounds, rate, bins) = case.task, setting
    X, X_test, kinds, bounds = _raw(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPExplainableBoostingClassifier(
            epsilon=case.epsilon,
            delta=case.delta,
            feature_types=kinds,
            privacy_bounds=bounds,
            max_rounds=int(rounds),
            learning_rate=rate,
            max_bins=int(bins),
            random_state=seed,
            n_jobs=1,
        ).fit(X, (task.y > 0).astype(int))
        return log_scores(task, model.predict_proba(X_test)[:, 1])


def _raw(task: Task) -> tuple[Array, Array, list[str], dict[int, tuple[float, float]]]:
    """The table as numbers and codes, with its public facts."""
    if task.schema is None or task.cells is None or task.cells_test is None:
        raise ValueError(f"{task.name} has no table")
    tables = [
        np.column_stack([np.nan_to_num(cells[field.name].astype(float)) for field in task.schema])
        for cells in (task.cells, task.cells_test)
    ]
    kinds = ["nominal" if isinstance(field, Category) else "continuous" for field in task.schema]
    ends = [
        (field.low, field.high) if isinstance(field, Number) else (-2.0, float(len(field.feature_names)))
        for field in task.schema
    ]
    return tables[0], tables[1], kinds, dict(enumerate(ends))


def boosting(case: Case, setting: Setting, seed: int) -> Score:
    """Gradient boosting on all rows, without privacy."""
    return log_scores(case.task, _boosted(case.task.X, case.task.y, seed)(case.task.X_test))


def _boosted(X: Array, y: Array, seed: int) -> Callable[[Array], Array]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model: Any = HistGradientBoostingClassifier(early_stopping=True, learning_rate=0.05, random_state=seed)
    model.fit(X, y > 0)
    return lambda rows: np.asarray(model.predict_proba(rows)[:, 1])


def alone_free(case: Case, setting: Setting, seed: int) -> Score:
    """Some sites with only their own rows, without privacy: ridge with cross-validation, or boosting."""
    task, site = case.task, case.task.assign(case.sites, "even")
    found = []
    for i in range(min(case.sites, _SITES)):
        rows = np.flatnonzero(site == i)
        y = task.y[rows]
        if min(np.sum(y > 0), np.sum(y < 0)) < _FEW:
            found.append(log_scores(task, np.full(len(task.y_test), (np.sum(y > 0) + 1) / (len(y) + 2))))
        elif setting[0] == 1:
            found.append(log_scores(task, _boosted(task.X[rows], y, seed)(task.X_test)))
        else:
            own = OwnRows(task.Z[rows], y[None], np.ones(len(y)))
            start = np.zeros((1, task.dimension))
            f, _ = own_model(own_objective(Logistic(), together=False), own, start)
            found.append(task.score(f))
    loss, accuracy = np.mean(found, axis=0)
    return float(loss), float(accuracy)


def anchors(*, quick: bool) -> Sequence[Anchor]:
    """All anchors; fewer settings in a quick run."""
    kappas = (1e-3, 1e-1) if quick else (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    trees = ((50.0, 0.3, 16.0),)
    if not quick:
        trees += ((50.0, 0.1, 32.0), (25.0, 0.2, 16.0), (100.0, 0.1, 16.0))
    return (
        Anchor(WHITE_CENTRE, tuple(product((0.7, 1.4), kappas)), whitened_centre),
        Anchor(BOOSTING, ((),), boosting),
        Anchor(EBM, trees, dp_ebm),
        Anchor(ALONE_FREE, ((0.0,), (1.0,)), alone_free),
    )
