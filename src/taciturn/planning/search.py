"""Search for the shape with the smallest forecast excess loss, for every number of rounds.

A shape (`RunShape`) is a plan without the size of its noise: the number of rounds, the pull (kappa in round
1, see below), the growth of the penalty, and the tilt of the noise over the rounds. The forecast is a closed
form for the excess loss of the released average. Take an eigenvector of the Hessian with eigenvalue h, divide
all quantities by C, and let kappa = 2 eta V, where eta is the penalty and V the number of neighbours. Assume
that each site receives mean(t), the mean of all models. Then f(t), the component of the site's model along
the eigenvector, satisfies

    (h + rho/N + kappa) f(t) = h f* + kappa (f(t-1) + mean(t-1)) / 2 - noise(t)

where f* is the component of the optimum. The dual variables are left out: they cancel in the sum over the
network. This equation is linear, so the bias and variance of the average follow from the eigenvalues. If all
sites are alike, mean(t) follows a noisy proximal point method, for which few rounds are enough. If h is
small, T rounds at T kappa have the same bias and variance as one round at kappa. But the T rounds have a
smaller privacy cost, because the cost of the Jacobian (see `calibration`) decreases as kappa grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..core.types import Array
from ..privacy.accounting import bounds
from ..privacy.facts import RunFacts
from ..privacy.noise import NOISES
from .calibration import quick_factors
from .shapes import Groups, PlannedNetwork, RunShape

Ranked = list[tuple[float, RunShape]]

ROUNDS = (1, 2, 3, 4, 5, 6, 8, 12)  # the numbers of rounds that are tried
_GROWTHS = (1.0, 1.3)  # the growths in the grid
_TILTS = (0.7, 0.85, 1.0)  # the tilts in the grid
_PULLS = 16  # the number of pulls in the grid


def search(
    network: PlannedNetwork,
    run: RunFacts,
    spectrum: tuple[Array, Array],
    *,
    noises: Sequence[str],
    rounds: Sequence[int] = ROUNDS,
    balanced: Sequence[bool] = (False,),
) -> Ranked:
    """(forecast, best shape) for each number of rounds, kind of noise and `balanced`, best forecast first."""
    found = []
    for T in rounds:
        for noise in noises:
            for even in balanced:
                shapes = _grid(network, run, RunShape(T, 1.0, 1.0, 1.0, noise, even))
                scores = forecast(network, run, shapes, spectrum)
                if np.isfinite(np.min(scores)):
                    found.append(_refine(network, run, spectrum, shapes[_best(scores)]))
    return sorted(found, key=lambda entry: stable_digits(entry[0]))


def stable_digits(score: float) -> float:
    """The score to nine digits. Further digits can differ between processors and must not decide a plan."""
    return float(f"{score:.9g}")


def _best(scores: Array) -> int:
    """The index of the smallest score; the first index if several scores are equally small."""
    return int(np.argmin([stable_digits(score) for score in scores.tolist()]))


def fewest_rounds(ranked: Ranked, slack: float) -> list[RunShape]:
    """The shapes in the order in which to try them.

    The first has the fewest rounds of all shapes with a forecast of at most `slack` times the best. The
    others follow, best forecast first.
    """
    if not ranked:
        return []
    good = [shape for score, shape in ranked if score <= slack * ranked[0][0]]
    first = min(good, key=lambda shape: shape.rounds)
    return [first, *(shape for _, shape in ranked if shape != first)]


def _grid(network: PlannedNetwork, run: RunFacts, shape: RunShape) -> list[RunShape]:
    """A coarse grid of shapes with the rounds and noise of `shape`.

    The smallest pull is such that the effect of a sample on the Jacobian (`bounds.bend`) is about 2.
    """
    lightest = float(np.min(network.pulls(shape) * network.samples))
    low = max(run.loss.curvature_bound, 1e-3) / lightest / 2
    return [
        replace(shape, pull=float(pull), growth=growth, tilt=tilt)
        for pull in np.geomspace(low, max(4.0, 40 * low), _PULLS)
        for growth in (_GROWTHS if shape.rounds > 1 else (1.0,))
        for tilt in (_TILTS if shape.rounds > 1 else (1.0,))
    ]


def _refine(
    network: PlannedNetwork, run: RunFacts, spectrum: tuple[Array, Array], shape: RunShape
) -> tuple[float, RunShape]:
    """Improve a shape by small changes of one parameter at a time; return (forecast, shape)."""
    step, score = 1.25, float(forecast(network, run, [shape], spectrum)[0])
    for _ in range(6):
        near = _neighbours(shape, step)
        scores = forecast(network, run, near, spectrum)
        best = _best(scores)
        if stable_digits(scores[best]) < stable_digits(score):
            shape, score = near[best], float(scores[best])
        else:
            step = step**0.5
    return score, shape


def _neighbours(shape: RunShape, step: float) -> list[RunShape]:
    """Shapes that differ from this shape in one parameter, by a factor of about `step`."""
    steps = [replace(shape, pull=shape.pull * factor) for factor in (step, 1 / step)]
    if shape.rounds > 1:
        for factor in (step**0.5, step**-0.5):
            steps.append(replace(shape, growth=max(1.0, shape.growth * factor)))
            steps.append(replace(shape, tilt=shape.tilt * factor))
    return steps


def forecast(
    network: PlannedNetwork, run: RunFacts, shapes: Sequence[RunShape], spectrum: tuple[Array, Array]
) -> Array:
    """The forecast excess loss of each shape (all with equal rounds and noise); inf if no noise is enough."""
    groups = network.groups
    growth = np.stack([shape.growth ** np.arange(shape.rounds) for shape in shapes])[:, None, :]
    start = np.stack([network.pulls(shape)[groups.site] for shape in shapes])
    kappa = start[..., None] * growth  # (shapes, groups, rounds)
    strong = np.array([network.regularization(shape) for shape in shapes])[:, None, None] / network.n
    std = kappa * _noise(network, run, shapes, kappa, strong)
    return _excess(spectrum, kappa, std**2, strong / network.C, groups)


def _noise(
    network: PlannedNetwork, run: RunFacts, shapes: Sequence[RunShape], kappa: Array, strong: Array
) -> Array:
    """The approximate standard deviation of the noise per coordinate, (shapes, groups, rounds)."""
    at = network.groups.site
    eta = network.C * kappa / 2  # for V = 1, because only the product eta V matters
    k = bounds.sample_weight(network.C, eta, 1, network.samples[at][:, None])
    x = bounds.bend(k, bounds.least_eigenvalue(strong, eta, 1), run.loss.curvature_bound, run.data_norm)
    D = bounds.displacement(k, run.loss.slope_bound, run.data_norm)
    relative = np.broadcast_to(np.stack([shape.relative() for shape in shapes])[:, None, :], D.shape)
    epsilon = np.array(network.budget.epsilon)[at]
    kind = shapes[0].noise
    factor = quick_factors(run, kind, D, x, relative, epsilon, network.budget.delta)
    spread = NOISES[kind].coordinate_std(1.0, run.dimension)
    return np.asarray(factor[..., None] * spread * relative)


def _excess(
    spectrum: tuple[Array, Array], kappa: Array, variance: Array, strong: Array, groups: Groups
) -> Array:
    """The sum of h (bias^2 signal + var) / 2 over all eigenvectors, for the average after the last round."""
    h, signal = spectrum
    possible = np.all(np.isfinite(variance), axis=(1, 2))
    variance = np.where(possible[:, None, None], variance, 0.0) / groups.size[:, None]
    count = len(groups.size)
    one = np.eye(count)
    mixing = (one + groups.size / groups.size.sum()) / 2
    reached = np.zeros((len(kappa), len(h), count))
    spread = np.zeros((*reached.shape, count))
    for t in range(kappa.shape[2]):
        pull = kappa[:, None, :, t]
        whole = h[:, None] + strong + pull
        step = (pull / whole)[..., None] * mixing
        reached = h[:, None] / whole + np.einsum("smgk,smk->smg", step, reached)
        spread = step @ spread @ np.swapaxes(step, -1, -2)
        spread += (variance[:, None, :, t] / whole**2)[..., None] * one
    w = groups.weight
    bias, var = 1 - reached @ w, np.einsum("smgk,g,k->sm", spread, w, w)
    return np.where(possible, 0.5 * np.sum(h * (bias**2 * signal + var), axis=1), np.inf)
