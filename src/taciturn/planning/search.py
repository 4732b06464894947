"""Search: the best shape of every number of rounds, by the forecast.

Forecast: how good the released average of a shape should be, in closed form.

Along an eigenvector of the curvature with eigenvalue h, and divided by C, a site that hears the mean of
the network does in each round, with kappa = 2 eta V,

    (h + rho/N + kappa) f(t) = h f* + kappa (f(t-1) + mean(t-1)) / 2 - noise(t)

where the dual variables, which cancel over the network, are left out. That is linear, so bias and variance
of the average follow from the spectrum. Where all sites are alike, their mean is a noisy proximal point. Few
rounds are enough for it: T rounds at T kappa treat the weak directions as one round at kappa does, with the
same noise, and pay less for the Jacobian, which sees kappa.
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

ROUNDS = (1, 2, 3, 4, 5, 6, 8, 12)
_GROWTHS = (1.0, 1.3)
_TILTS = (0.7, 0.85, 1.0)
_PULLS = 16


def search(
    network: PlannedNetwork,
    run: RunFacts,
    spectrum: tuple[Array, Array],
    *,
    noises: Sequence[str],
    rounds: Sequence[int] = ROUNDS,
    balanced: Sequence[bool] = (False,),
) -> Ranked:
    """The best shape of every number of rounds, kind of noise and balance, best first, with its forecast."""
    found = []
    for T in rounds:
        for noise in noises:
            for even in balanced:
                shapes = _grid(network, run, RunShape(T, 1.0, 1.0, 1.0, noise, even))
                scores = forecast(network, run, shapes, spectrum)
                if np.isfinite(np.min(scores)):
                    found.append(_refine(network, run, spectrum, shapes[int(np.argmin(scores))]))
    return sorted(found, key=lambda entry: entry[0])


def fewest_rounds(ranked: Ranked, slack: float) -> list[RunShape]:
    """Best first; but first of all the one with the fewest rounds among those nearly as good."""
    if not ranked:
        return []
    good = [shape for score, shape in ranked if score <= slack * ranked[0][0]]
    first = min(good, key=lambda shape: shape.rounds)
    return [first, *(shape for _, shape in ranked if shape != first)]


def _grid(network: PlannedNetwork, run: RunFacts, shape: RunShape) -> list[RunShape]:
    """Coarse steps: pulls from where one sample bends the noise map by about 2, up to a stiff one."""
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
    """Small steps from a shape, as long as they help."""
    step, score = 1.25, float(forecast(network, run, [shape], spectrum)[0])
    for _ in range(6):
        near = _neighbours(shape, step)
        scores = forecast(network, run, near, spectrum)
        best = int(np.argmin(scores))
        if scores[best] < score:
            shape, score = near[best], float(scores[best])
        else:
            step = step**0.5
    return score, shape


def _neighbours(shape: RunShape, step: float) -> list[RunShape]:
    """One choice changed at a time."""
    steps = [replace(shape, pull=shape.pull * factor) for factor in (step, 1 / step)]
    if shape.rounds > 1:
        for factor in (step**0.5, step**-0.5):
            steps.append(replace(shape, growth=max(1.0, shape.growth * factor)))
            steps.append(replace(shape, tilt=shape.tilt * factor))
    return steps


def forecast(
    network: PlannedNetwork, run: RunFacts, shapes: Sequence[RunShape], spectrum: tuple[Array, Array]
) -> Array:
    """Excess loss of the released average under shapes of equal rounds; inf where no noise is enough."""
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
    """About the standard deviation of a coordinate of the noise e, (shapes, groups, rounds)."""
    at = network.groups.site
    eta = network.C * kappa / 2  # as if V = 1: only their product matters
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
    """sum over modes of h (bias^2 signal + var) / 2 of the weighted average after the last round."""
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
