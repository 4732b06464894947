"""SumFacts: what an accountant must know of one masked sum, to which every site adds a share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import checks
from ..errors import ParameterError

LEAST_STD = 8.0  # grid units; from here on sums of discrete Gaussians are discrete Gaussians to 250 digits


@dataclass(frozen=True)
class SumFacts:
    """One masked sum, the message of round t.

    Parameters
    ----------
    t : the round, 1, 2, ...; there is one sum per round.
    part : what is summed, e.g. "gradient"; public words.
    length : how many whole numbers a message holds.
    sensitivity : S, how far one unit, record or person, replaced can move the sum, in the sum's own units.
    stray : gamma, by how much floats may move a site's share away from its exact value.
    grid : g, the step of the grid on which shares are rounded.
    std : s, in grid units: the spread of the discrete Gaussian noise that each site adds, the same at all.
    """

    t: int
    part: str
    length: int
    sensitivity: float
    stray: float
    grid: float
    std: float

    def __post_init__(self) -> None:
        if not isinstance(self.part, str):
            raise ParameterError(f"`part` must be a text; got {type(self.part).__name__}.")
        for name in ("t", "length"):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least=1))
        for name in ("sensitivity", "grid", "std"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))
        object.__setattr__(self, "stray", checks.nonnegative("stray", self.stray))
        if self.std < LEAST_STD:
            raise ParameterError(
                f"`std` must be at least {LEAST_STD:g} grid units; got {self.std:g}: choose a finer `grid`."
            )
        if not math.isfinite(self.reach) or self.reach >= 2.0**62:
            raise ParameterError(f"`grid` must not be so fine that one unit spans 2^62 steps: {self.grid:g}.")

    @property
    def reach(self) -> float:
        """S / g: how far one unit can move the sum, in grid units, before floats and rounding."""
        return self.sensitivity / self.grid


def check_sums(sums: Sequence[SumFacts], rounds: int) -> tuple[SumFacts, ...]:
    """One sum for each round, in order."""
    for entry in sums:
        if not isinstance(entry, SumFacts):
            raise ParameterError(f"`sums` must hold SumFacts; got {type(entry).__name__}.")
    if [entry.t for entry in sums] != list(range(1, rounds + 1)):
        raise ParameterError(f"`sums` must hold one sum for each round 1..{rounds}, in order.")
    return tuple(sums)
