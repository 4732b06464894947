"""Limits and default settings for real runs (runs with secret noise), so that practically no solve fails.

A failed solve would reveal facts about the rows, and no noise would hide them. The history of a round is a
part of the problem that a site solves: the linear term that follows from all vectors sent and received so
far. Floats certify a tolerance `tol` if a solve in floating-point arithmetic surely reaches `tol` for every
history up to `history_limit` and every noise vector up to `longest_noise`. A real run begins only if floats
certify its `tol`. A round with a larger history is not started. This reveals nothing new, because an observer
knows the vectors. So a solve can fail only if the noise of its round is longer than `longest_noise`.

`cover` sets output noise, grid, clip and tolerance from public settings alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ...core import checks
from ...core.errors import OutOfReach, ParameterError
from ...core.types import Array
from ...objective.rows import FARTHEST
from ...objective.solver import rounding
from ...privacy.noise import GaussianNoise, NormNoise
from ...rng import Streams
from ..base import Network
from .tables import Tables

# (size of output noise) / tol; the solver's error in a round costs q / 5e7 (Renyi, order q) or 2e-4 (pure)
_WIDE = 1e4
_GRID = 2.0**-34  # this grid is so fine that rounding before the noise costs almost no privacy
_LARGEST = 16  # `_reach` tries clips up to 2^16, or larger clips if the noise needs them
_STEPS = 2.0**-50  # the smallest grid / clip: floats then represent all grid values up to clip exactly
_TOLS = tuple(10.0**-k for k in range(9, 2, -1))
_U = 2.0**-53
_HISTORY = 4.0  # `history_limit` / (clip sqrt(d)): 1 for the messages of a round, 3 for the dual variable lam
TAIL = 1e-18
"""A bound on the probability that a noise vector is longer than `longest_noise`."""


def history_limit(clip: float, d: int) -> float:
    """The largest allowed ||b|| / m, where b is the linear term without noise, and m the strong convexity."""
    return _HISTORY * clip * math.sqrt(d)


def longest_noise(tables: Tables, d: int) -> Array:
    """(rounds,): a length that the noise vector of a round exceeds with a probability below `TAIL`."""
    if tables.noise is None or tables.scale is None:
        return np.zeros(tables.rounds)
    if tables.noise.kind == "gaussian":  # ||e|| is 1-Lipschitz in e, and its mean is below sigma sqrt(d)
        return np.asarray(tables.scale * (math.sqrt(d) + math.sqrt(-2 * math.log(TAIL))))
    return np.asarray(1.001 * special.gammainccinv(d, TAIL) / tables.scale)


def least_tol(tables: Tables, network: Network, row: int, clip: float) -> float:
    """The smallest `tol` that floats certify at one site in every round.

    The solver gets half of `tol`; the other half covers the rounding of the noise. The noise is rounded when
    it is drawn, by at most (d + 16) u times its length, where u = 2^-53, and again when it is added to the
    linear term. Each error moves the minimiser by at most its own size: df/de = -kappa H^-1, where
    H >= kappa I and kappa = 2 eta V.

    tables : the tables of this site alone.   row : the position of the site in `network.sites`.
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
    """Raise if floats cannot certify `tol` for every message within the clip. `where` names the site."""
    if not tol >= least:
        raise ParameterError(
            f"`tol` must be at least {_up(least)} for `clip` = {clip:g} at {where}; got {tol:g}. A message "
            "within the clip could make the solver fail, and a failure would reveal facts about the data. "
            "Raise `tol`, or lower `clip`."
        )


def check_history(b: Array, m: ArrayLike, *, clip: float, t: int) -> None:
    """Raise, before noise is drawn, if the linear term b is too large for floats to certify `tol`."""
    limit = history_limit(clip, b.shape[-1])
    if not np.all(np.linalg.norm(b, axis=-1).max(axis=-1) <= limit * np.asarray(m)):
        raise OutOfReach(
            f"round {t} was not started: the sum of the vectors sent and received so far exceeds {limit:g}. "
            "Above this limit the solver could fail. No noise was drawn, and this round is not charged."
        )


def try_solve(streams: Streams, solve: Callable[[], Array]) -> Array | None:
    """The result of `solve`; None if it failed in a real run.

    The error depends on the data, so a real run does not reveal it.
    """
    try:
        return solve()
    except Exception:
        if streams.simulated:
            raise
        return None


def _up(value: float) -> str:
    """The value with two significant digits, rounded up."""
    digits = 1 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits) / 10.0**digits:.2g}"


def cover(tables: Tables, network: Network, *, tol: float | None) -> tuple[dict[str, Any], float]:
    """(settings, tol): the settings that a real run needs and the method lacks, and the tolerance of the run.

    A real run needs output noise, of the same kind as the method's noise, because the solver stops within
    `tol` of the minimiser, and only output noise hides the difference. A real run needs a grid for released
    values, because the low bits of a float can reveal facts that the noise should hide. It also needs a clip,
    and a `tol` that floats certify for every message within the clip.
    """
    if tol is not None:
        checks.positive("tol", tol)
    if not tables.private:
        return {}, _TOLS[0] if tol is None else tol
    clip, tol = _reach(network, tables, tol)
    needed: dict[str, Any] = {"clip": clip}
    if not tables.on_output:
        gaussian = isinstance(tables.noise, GaussianNoise)
        needed["output_noise"] = GaussianNoise(_WIDE * tol) if gaussian else NormNoise(1 / (_WIDE * tol))
    if tables.grid is None:
        needed["grid"] = max(_GRID, clip * _STEPS)
    return needed, tol


def check_samplers(tables: Tables) -> None:
    """Raise if a noise is of a user's own subclass, whose code could draw too little noise."""
    for name, noise in (("noise", tables.noise), ("output_noise", tables.output_noise)):
        if noise is not None and type(noise) not in (NormNoise, GaussianNoise):
            raise ParameterError(
                f"`{name}` must be NormNoise or GaussianNoise, and not a subclass, in a real run; "
                f"got {type(noise).__name__}."
            )


def _reach(network: Network, tables: Tables, tol: float | None) -> tuple[float, float]:
    """(clip, tol): the method's own clip, or the largest clip for which floats certify `tol`."""
    least = {} if tables.clip is None else {tables.clip: _least(network, tables, tables.clip)}
    if tables.clip is None:
        room = _room(tables, network.dimension)
        least = {2.0**k: _least(network, tables, 2.0**k) for k in range(max(_LARGEST, room), room - 1, -1)}
    for wanted in _TOLS if tol is None else (tol,):
        for clip, needed in least.items():
            if needed <= wanted:
                return clip, wanted
    smallest = min(least)
    wanted = _TOLS[-1] if tol is None else tol
    check_reach(wanted, least[smallest], clip=smallest, where="one of the sites")
    return smallest, wanted


def _least(network: Network, tables: Tables, clip: float) -> float:
    """The smallest `tol` that floats certify at every site."""
    return max(least_tol(tables.site(row), network, row, clip) for row in range(len(network.sites)))


def _room(tables: Tables, d: int) -> int:
    """k such that a clip of 2^k leaves room for the noise in one coordinate."""
    longest = max(float(np.max(longest_noise(tables.site(i), d))) for i in range(tables.sites))
    return max(6, math.ceil(math.log2(8 * longest / math.sqrt(d))))
