"""The defaults of a real run for settings that the user did not give: output noise, grid, clip, tolerance.

The defaults follow from public settings alone. `float_limits` checks before the first round that no solve can
fail with these settings, except with negligible probability.
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

_WIDE = 1e4  # output noise / tol; a round's solver error costs q / 5e7 (Renyi DP, order q) or 2e-4 (pure DP)
_GRID = 2.0**-34  # so fine that rounding before the noise costs almost nothing
_LARGEST = 16  # the largest clip that is tried is 2^16, unless the noise needs a larger one
_STEPS = 2.0**-50  # the smallest grid / clip, so that floats represent every grid value up to clip exactly
_TOLS = tuple(10.0**-k for k in range(9, 2, -1))


def cover(tables: Tables, network: Network, *, tol: float | None) -> tuple[dict[str, Any], float]:
    """The settings that a real run needs and the method does not have, and `tol` (chosen if it is None).

    A real run needs output noise, of the same kind as the method's noise: the solver stops within `tol` of
    the minimiser, and only this noise covers the difference. The run needs a grid for released values,
    because the low bits of a float can reveal more than the real number that the float stands for. The run
    needs a clip, and a `tol` that floats certify for every message within the clip.
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
    """Raise if the class of a noise is a user's subclass, which could draw less noise than is charged."""
    for name, noise in (("noise", tables.noise), ("output_noise", tables.output_noise)):
        if noise is not None and type(noise) not in (NormNoise, GaussianNoise):
            raise ParameterError(
                f"`{name}` must be NormNoise or GaussianNoise itself in a real run; "
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
    check_reach(wanted, least[smallest], clip=smallest, where="some site")
    return smallest, wanted


def _least(network: Network, tables: Tables, clip: float) -> float:
    """The smallest `tol` that floats certify at every site."""
    return max(least_tol(tables.site(row), network, row, clip) for row in range(len(network.sites)))


def _room(tables: Tables, d: int) -> int:
    """k such that a clip of 2^k leaves room for the noise in one coordinate."""
    longest = max(float(np.max(longest_noise(tables.site(i), d))) for i in range(tables.sites))
    return max(6, math.ceil(math.log2(8 * longest / math.sqrt(d))))
