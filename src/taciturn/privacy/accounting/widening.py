"""By how much the bend of the noise map widens mu of penalty perturbation with Gaussian noise.

One round is mu-GDP with mu = (D / sigma) V(w), w = c1 sigma X / (s1 a) = 2 x sigma / D: how far the slope of
one sample can turn while the noise moves by one standard deviation. V depends on how slope and curvature of
the loss go together. With the slope p in units of s1 and the curvature in units of c1:

    logistic      0 <= p <= 1     curvature 4 p (1 - p)     V = 1 + 2e-8 up to w = 7/8, which is sigma = 3.5 a
    one-sided     0 <= p <= 1     at most 1                 a margin loss, whose slope has one sign
    log-cosh     -1 <= p <= 1     1 - p^2
    any          -1 <= p <= 1     at most 1

V = (V+ + V-) / 2, where V+ and V- are the least numbers with E(pZ - p' - t)+ <= E(VZ - t)+ for all t >= 0, Z
normal, and every p(z) that falls, or rises, by no more than w times the curvature. The nodes below are upper
bounds, proven cell by cell by tools/prove_widening.py. Between nodes: V grows with w, and V/w falls, since
more noise never costs more. Theorem and proof: docs/privacy.md, section 15.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from ...core import checks
from ...core.types import Array
from .rounding import floats, up

Nodes = tuple[tuple[float, float], ...]

NODES: dict[str, Nodes] = {
    "logistic": (
        (0.875, 1.00000002),
        (0.9375, 1.00044),
        (1, 1.0015),
        (1.0625, 1.00429),
        (1.125, 1.00849),
        (1.1875, 1.01371),
        (1.25, 1.01923),
        (1.375, 1.03209),
        (1.5, 1.04692),
        (1.625, 1.06316),
        (1.75, 1.08047),
        (2, 1.11734),
        (2.25, 1.15789),
        (2.5, 1.19813),
        (3, 1.2808),
        (3.5, 1.36505),
        (4, 1.4501),
        (5, 1.6203),
        (6, 1.78999),
    ),
    "one-sided": (
        (0.125, 1.00251),
        (0.25, 1.00501),
        (0.375, 1.00812),
        (0.5, 1.01409),
        (0.625, 1.02175),
        (0.75, 1.03118),
        (0.875, 1.04799),
        (1, 1.06759),
        (1.125, 1.08891),
        (1.25, 1.1115),
        (1.5, 1.15907),
        (1.75, 1.20857),
        (2, 1.25907),
        (2.5, 1.3613),
        (3, 1.46393),
        (4, 1.66818),
        (6, 2.06814),
    ),
    "log-cosh": (
        (0.125, 1.00101),
        (0.25, 1.00134),
        (0.375, 1.00493),
        (0.5, 1.00952),
        (0.625, 1.01552),
        (0.75, 1.02347),
        (0.875, 1.03515),
        (1, 1.0494),
        (1.125, 1.09),
        (1.25, 1.14439),
        (1.5, 1.24365),
        (1.75, 1.33507),
        (2, 1.41356),
        (2.5, 1.56436),
        (3, 1.70105),
        (4, 1.9468),
        (6, 2.38011),
    ),
    "any": (
        (0.125, 1.00871),
        (0.25, 1.02675),
        (0.5, 1.08136),
        (0.75, 1.1714),
        (1, 1.30929),
        (1.5, 1.63094),
        (2, 1.8204),
        (3, 2.12764),
        (4, 2.36833),
    ),
}
"""For each shape of loss (w, V(w))."""


def widening(shape: str, w: ArrayLike) -> Array:
    """V(w), never below 1: at w between two nodes the right one's V, or the left one's times w / its w."""
    at, flat, steepness = _lines(checks.choice("shape", shape, tuple(NODES)))
    rate = floats(w)
    right = np.searchsorted(at, rate)
    flat, steepness = flat[right], steepness[right]
    with np.errstate(invalid="ignore", over="ignore"):
        rising = np.where(right > 0, up(rate * steepness), np.inf)
    return np.asarray(np.minimum(flat, rising))


@cache
def _lines(shape: str) -> tuple[Array, Array, Array]:
    """The nodes' w; by how many of them lie to the left, the V of the next one and the least V/w so far."""
    w, V = np.array(NODES[shape]).T.copy()
    return w, np.append(V, np.inf), np.append(np.inf, np.minimum.accumulate(V / w))


def penalty_mu(D: ArrayLike, sigma: ArrayLike, x: ArrayLike, shape: str) -> Array:
    """(D / sigma) V(2 x sigma / D): one round of one class with noise N(0, sigma^2 I); 0 where D is."""
    move, spread = floats(D), floats(sigma)
    still = move == 0
    with np.errstate(over="ignore"):
        w = up(2 * floats(x) * spread / np.where(still, 1.0, move))
    return np.where(still, 0.0, up(move / spread * widening(shape, np.where(still, 0.0, w))))
