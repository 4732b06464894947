"""Reach: how near floats can certify a site's minimiser, whatever it hears within the clip.

A failed solve is a release that no noise covers. So a real run begins only where floats certify `tol`
for every history of at most `history_limit`, and no round beyond that is drawn: that decision follows from
what was sent and heard, which the observer knows. All that is left is noise longer than `longest_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...core.errors import OutOfReach, ParameterError
from ...core.types import Array
from ...objective.rows import FARTHEST
from ...objective.solver import rounding
from ...rng import Streams
from ..base import Network
from .tables import Tables

_U = 2.0**-53
_HISTORY = 4.0  # one round's messages reach 1; the rest is for lam, which adds them up
TAIL = 1e-18
"""The chance that a vector of noise is longer than `longest_noise`."""


def history_limit(clip: float, d: int) -> float:
    """How large ||b|| / m may be, b the linear term without its noise."""
    return _HISTORY * clip * math.sqrt(d)


def longest_noise(tables: Tables, d: int) -> Array:
    """A length that the noise of each round passes with a chance below `TAIL`, (rounds,)."""
    if tables.noise is None or tables.scale is None:
        return np.zeros(tables.rounds)
    if tables.noise.kind == "gaussian":  # ||e|| / sigma is 1-Lipschitz in e, and its mean below sqrt(d)
        return np.asarray(tables.scale * (math.sqrt(d) + math.sqrt(-2 * math.log(TAIL))))
    return np.asarray(1.001 * special.gammainccinv(d, TAIL) / tables.scale)


def least_tol(tables: Tables, network: Network, row: int, clip: float) -> float:
    """The smallest `tol` that floats certify at one site in every round, half of it for rounding.

    Rounded are the noise when it is drawn, by at most (d + 16) u of its length, and the linear term when it
    is added there; either moves the minimiser by no more than itself, since df/de = -H^-1 and H >= I.
    tables : of that site alone; it is number `row` of those that the network describes.
    """
    loss, d, R = network.loss, network.dimension, network.regularizer
    rho, kappa = network.regularization / network.total, 2.0 * tables.eta * network.degrees[row]
    m, longest = rho * R.strong_convexity + kappa, longest_noise(tables, d)
    least = rounding.least_tol(
        loss,
        C=network.C,
        m=m,
        smooth=(rho * R.curvature_bound + kappa) / m,
        pull=history_limit(clip, d) + longest * (tables.method != "primal"),
        samples=np.array([network.samples[row]]),
        d=d,
        target=0.0 if loss.kind == "classification" else FARTHEST,
    )
    rounded = _U * (4 * history_limit(clip, d) + (d + 16) * longest)
    return 2.0 * float(np.max(np.maximum(least, rounded)))


def check_reach(tol: float, least: float, *, clip: float, where: str) -> None:
    """Raise where floats cannot certify `tol` for every message within the clip."""
    if not tol >= least:
        raise ParameterError(
            f"`tol` must be at least {_up(least)} for `clip` = {clip:g} at {where}; got {tol:g}. A message "
            "within the clip could make the solver fail, and a failure would reveal facts about the data. "
            "Raise `tol`, or lower `clip`."
        )


def check_history(b: Array, m: ArrayLike, *, clip: float, t: int) -> None:
    """Raise, before noise is drawn, if what was sent and received is beyond what floats can certify."""
    limit = history_limit(clip, b.shape[-1])
    if not np.all(np.linalg.norm(b, axis=-1).max(axis=-1) <= limit * np.asarray(m)):
        raise OutOfReach(
            f"round {t} was not started: the sum of what was sent and received exceeds {limit:g}, which is "
            "beyond the range that floats cover. No noise was drawn, and nothing of this round is charged."
        )


def try_solve(streams: Streams, solve: Callable[[], Array]) -> Array | None:
    """What `solve` returns; None where it failed in a real run.

    That it failed depends on the data, and how it failed even more: so nothing about it is revealed.
    """
    if streams.simulated:
        return solve()
    try:
        return solve()
    except Exception:
        return None


def _up(value: float) -> str:
    """Two digits, never below."""
    digits = 1 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits) / 10.0**digits:.2g}"
