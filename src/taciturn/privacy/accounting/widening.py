"""The factor V by which the curvature of the loss increases mu of penalty perturbation with Gaussian noise.

One round is mu-GDP (`gaussian.py`), mu = (D / sigma) V(w). Here w = c1 sigma X / (s1 a) = 2 x sigma / D is
how far the slope of one sample can change while the noise moves by one standard deviation. V depends on how
the slope and the curvature of the loss are related. With slope p in units of s1 and curvature in units of c1:

    logistic      0 <= p <= 1     curvature 4 p (1 - p)     V = 1 + 2e-8 up to w = 7/8, which is sigma = 3.5 a
    one-sided     0 <= p <= 1     at most 1                 a margin loss, whose slope has one sign
    log-cosh     -1 <= p <= 1     1 - p^2
    any          -1 <= p <= 1     at most 1

V = (V+ + V-) / 2. V+ and V- are the least numbers with E(pZ - p' - t)+ <= E(VZ - t)+ for all t >= 0, Z
normal, and every p(z) that falls or rises, respectively, by no more than w times the curvature. widening.json
contains upper bounds on V at some values of w, the nodes; tools/prove_widening.py proves these bounds. The
bounds between nodes use two facts: V grows with w, and V/w falls, because more noise never costs more. The
theorem and its proof are in docs/privacy.md, section 15.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import ArrayLike

from ...core import checks
from ...core.types import Array
from .rounding import floats, up

Nodes = tuple[tuple[float, float], ...]

_FILE = resources.files(__package__).joinpath("widening.json")
NODES: dict[str, Nodes] = {
    shape: tuple((w, V) for w, V in nodes) for shape, nodes in json.loads(_FILE.read_text("utf-8")).items()
}
"""For each shape, which is a row of the table above: pairs of a node w and the bound on V at this node."""


def widening(shape: str, w: ArrayLike) -> Array:
    """An upper bound on V(w), never below 1. Between two nodes it is the smaller of V at the next larger node
    and w times the least V/w at the smaller nodes."""
    at, flat, steepness = _lines(checks.choice("shape", shape, tuple(NODES)))
    rate = floats(w)
    right = np.searchsorted(at, rate)
    flat, steepness = flat[right], steepness[right]
    with np.errstate(invalid="ignore", over="ignore"):
        rising = np.where(right > 0, up(rate * steepness), np.inf)
    return np.asarray(np.minimum(flat, rising))


@cache
def _lines(shape: str) -> tuple[Array, Array, Array]:
    """Three arrays. The first contains w at the nodes. For a point with k = 0, 1, ... nodes below it, entry k
    of the second is V at the next node above, and entry k of the third is the least V/w at a node below."""
    w, V = np.array(NODES[shape]).T.copy()
    return w, np.append(V, np.inf), np.append(np.inf, np.minimum.accumulate(V / w))


def penalty_mu(D: ArrayLike, sigma: ArrayLike, x: ArrayLike, shape: str) -> Array:
    """mu = (D / sigma) V(2 x sigma / D) of one round of one class with noise N(0, sigma^2 I); 0 if D is 0."""
    move, spread = floats(D), floats(sigma)
    still = move == 0
    with np.errstate(over="ignore"):
        w = up(2 * floats(x) * spread / np.where(still, 1.0, move))
    return np.where(still, 0.0, up(move / spread * widening(shape, np.where(still, 0.0, w))))
