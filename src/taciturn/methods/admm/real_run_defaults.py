"""The defaults of a real run: output noise, a grid, a clip, a tolerance.

All of it follows from public settings, and is certain to be enough before the first round (`float_limits`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import checks
from ...core.errors import ParameterError
from ...privacy.noise import GaussianNoise, NormNoise
from ..base import Network
from .float_limits import check_reach, least_tol, longest_noise
from .tables import Tables

_WIDE = 1e4  # output noise in units of tol: what it covers then costs q / 5e7, or 2e-4 pure, a round
_GRID = 2.0**-34  # so fine that rounding before the noise costs almost nothing
_LARGEST = 16  # clip = 2^16, unless the noise needs more room
_STEPS = 2.0**-50  # of the clip: whole numbers of steps are exact in floats
_TOLS = tuple(10.0**-k for k in range(9, 2, -1))


def cover(tables: Tables, network: Network, *, tol: float | None) -> tuple[dict[str, Any], float]:
    """The settings that a real run needs and the method does not have; and `tol`, chosen if it is None.

    A little noise after the solve, of the method's own kind: a solver that stops within `tol` of the
    minimiser is not the minimiser, and no guarantee survives that without it. A grid for what is released:
    the low bits of a float tell more than the real number that it stands for. A clip, and a `tol` that floats
    certify for every message within it.
    """
    if tol is not None:
        checks.positive("tol", tol)
    if not tables.private:
        return {}, _TOLS[0] if tol is None else tol
    clip, tol = _reach(network, tables, tol)
    needed: dict[str, Any] = {"clip": clip}
    if tables.output_noise is None and tables.method != "primal":
        gaussian = isinstance(tables.noise, GaussianNoise)
        needed["output_noise"] = GaussianNoise(_WIDE * tol) if gaussian else NormNoise(1 / (_WIDE * tol))
    if tables.grid is None:
        needed["grid"] = max(_GRID, clip * _STEPS)
    return needed, tol


def check_samplers(tables: Tables) -> None:
    """Raise unless the noise is drawn as it is charged: a subclass could sample anything."""
    for name, noise in (("noise", tables.noise), ("output_noise", tables.output_noise)):
        if noise is not None and type(noise) not in (NormNoise, GaussianNoise):
            raise ParameterError(
                f"`{name}` must be NormNoise or GaussianNoise itself in a real run; "
                f"got {type(noise).__name__}."
            )


def _reach(network: Network, tables: Tables, tol: float | None) -> tuple[float, float]:
    """(clip, tol): the method's own clip, or the largest that leaves `tol` within reach."""
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
    check_reach(wanted, least[smallest], clip=smallest, where="some site")
    return smallest, wanted


def _least(network: Network, tables: Tables, clip: float) -> float:
    """The smallest `tol` within reach at every site."""
    return max(least_tol(tables.site(row), network, row, clip) for row in range(len(network.sites)))


def _room(tables: Tables, d: int) -> int:
    """k, where 2^k leaves room for what noise does to one coordinate."""
    longest = max(float(np.max(longest_noise(tables.site(i), d))) for i in range(tables.sites))
    return max(6, math.ceil(math.log2(8 * longest / math.sqrt(d))))
