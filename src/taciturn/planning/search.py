"""Search: the best shape of every number of rounds, by the forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..privacy.facts import RunFacts
from ..types import Array
from .forecast import forecast
from .shapes import PlannedNetwork, RunShape

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
