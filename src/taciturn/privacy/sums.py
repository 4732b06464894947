"""SumFacts: what an accountant must know of one masked sum, to which every site adds a share.

How far a unit moves a sum is not believed but derived: `sum_bounds`, from the loss, n, X and the kind of sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .. import checks
from ..errors import ParameterError
from .accounting import sensitivity as sens
from .loss_facts import LossFacts

MOMENTS, SQUARES, GRADIENT, COUNTS = "second moments", "means and squares", "gradient", "counts"
"""What may be summed."""

LEAST_STD = 8.0  # grid units; from here on sums of discrete Gaussians are discrete Gaussians to 250 digits


@dataclass(frozen=True)
class SumFacts:
    """One masked sum, the message of round t.

    Parameters
    ----------
    t : the round, 1, 2, ...; there is one sum per round.
    part : what is summed: "second moments", "means and squares", "gradient"; or "counts", and nothing else.
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
        checks.choice("part", self.part, (MOMENTS, SQUARES, GRADIENT, COUNTS))
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


class SumBounds(NamedTuple):
    """What follows from public facts: how long a message may be (any, if nothing is said), S and gamma."""

    lengths: tuple[int, ...]
    sensitivity: float
    stray: float


@dataclass(frozen=True)
class SumTerms:
    """The public facts that the bounds of a run's sums rest on.

    units : n, the records of all sites together, or the persons.
    largest : the most rows at one site; floats stray with their number.
    features : d; a gradient has as many entries for every class. Of counts: in how many tables each unit is
        counted, once in each, so that one that is replaced moves two counts of a table by at most 1.
    """

    loss: LossFacts
    units: int
    largest: int
    features: int
    data_norm: float

    def bounds(self, part: str, *, first: bool = False) -> SumBounds:
        """S and gamma of such a sum; `first`: a gradient at f = 0, where many losses are less steep."""
        loss, n, d, X = self.loss, self.units, self.features, self.data_norm
        if (part == COUNTS) != (loss.name == COUNTS):
            raise ParameterError(f"`part` must fit the loss, {loss.name}; got {part!r}.")
        if part == COUNTS:
            return SumBounds((), sens.counts_sensitivity(d), 0.0)
        if part == MOMENTS:
            S, stray = sens.moments_sensitivity(X, n), sens.moments_stray(self.largest, X)
            return SumBounds((d * (d + 1) // 2,), S, stray)
        if part == SQUARES:
            S, stray = sens.squares_sensitivity(X, n), sens.moments_stray(self.largest, X)
            return SumBounds((2 * d, 2 * (d - 1)), S, stray)
        S = sens.gradient_sensitivity(loss.slope_at_zero if first else loss.slope_bound, X, n)
        stray = sens.gradient_stray(loss.slope_bound, self._slope_error(), self.largest, X)
        return SumBounds((d * loss.classes,), S, stray)

    def _slope_error(self) -> float:
        """By how much floats may miss a slope."""
        loss, X = self.loss, self.data_norm
        margin = sens.margin_error(self.features, X)
        if loss.name == "softmax":
            return sens.softmax_error(loss.classes, margin, X, bounded=bool(loss.parameters["bounded"]))
        shift, residual = 1.0 + loss.parameters.get("h", -1.0), loss.kind == "regression"
        return sens.slope_error(loss.slope_bound, loss.curvature_bound, shift, margin, X, residual=residual)

    def check(self, sums: Sequence[SumFacts]) -> None:
        """Raise where a sum claims less than follows from these facts."""
        seen = False
        for entry in sums:
            least = self.bounds(entry.part, first=not seen)
            seen = seen or entry.part == GRADIENT
            if least.lengths and entry.length not in least.lengths:
                raise ParameterError(
                    f"`length` of sum {entry.t} must be {least.lengths[0]}; got {entry.length}."
                )
            for name in ("sensitivity", "stray"):
                stated, needed = getattr(entry, name), getattr(least, name)
                if stated < needed * (1 - 1e-12):
                    raise ParameterError(
                        f"`{name}` of sum {entry.t} must be at least {needed:g}, which follows from the "
                        f"loss, the number of records or persons and their norm; got {stated:g}."
                    )
