"""SumFacts: the facts about one masked sum, from which the privacy accountant computes the cost of this sum.

In a masked sum, each site adds random masks to its share, the vector that it contributes. The masks hide the
share and cancel in the sum over all sites. The sensitivity of a sum is how far the sum can move if one record
or person is replaced. `SumFacts` contains a stated sensitivity, which is not trusted: `SumTerms.bounds`
computes the smallest valid sensitivity from the loss, the number n of records or persons, the bound X on the
norm of a row, and the kind of sum. `SumTerms.check` refuses a smaller sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..core import checks
from ..core.errors import ParameterError
from .accounting import sensitivity as sens
from .loss_facts import PROGRAM, LossFacts

MOMENTS, SQUARES, GRADIENT, COUNTS = "second moments", "means and squares", "gradient", "counts"
WHITENED, CLIPPED = "whitened moments", "clipped gradient"
VECTORS, ALIGNED = "clipped vectors", "aligned vectors"
"""The kinds of sums. A unit is a record or a person. For clipped vectors, a user's program computes a vector
from the rows of each unit, and this vector is clipped to norm at most 1.

Aligned vectors are computed by taciturn itself. They have norm at most 1, and the inner product of two of
them is at least 0, so that |v - w|^2 <= |v|^2 + |w|^2 <= 2. One example is a unit's counts in the cells of k
tables, divided by sqrt k. Another example is the matrix q q' of a vector q with |q| <= 1.
"""
_PARTS = (MOMENTS, SQUARES, GRADIENT, COUNTS, VECTORS, ALIGNED, WHITENED, CLIPPED)

OF_ROWS = LossFacts("logistic", 1.0, 0.25)
"""A placeholder for the loss of sums that depend only on the rows. The bounds of these sums do not use it."""

LEAST_STD = 8.0  # grid units; if s is at least this, a sum of discrete Gaussians is nearly discrete Gaussian


@dataclass(frozen=True)
class SumFacts:
    """One masked sum: release number t of a run.

    Parameters
    ----------
    t : the number of the release, 1, 2, .... It is equal to the round, unless the run had several attempts
        (see `AttemptFacts`): several attempts may release the same round.
    part : the kind of sum, one of the kinds above. The kinds "whitened moments" and "clipped gradient" use
        coordinates that were computed from the moments of earlier rounds.
    length : the number of integers in a message.
    sensitivity : S, how far the sum can move if one unit (record or person) is replaced, in the sum's units.
    stray : gamma, a bound on the floating-point error of a site's share, in the sum's units.
    grid : g, the step of the grid to which shares are rounded.
    std : s, the standard deviation, in grid units, of the discrete Gaussian noise that each site adds. It is
        the same at all sites.
    """

    t: int
    part: str
    length: int
    sensitivity: float
    stray: float
    grid: float
    std: float

    def __post_init__(self) -> None:
        checks.choice("part", self.part, _PARTS)
        for name in ("t", "length"):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least=1))
        for name in ("sensitivity", "grid", "std"):
            object.__setattr__(self, name, checks.magnitude(name, getattr(self, name)))
        stray = checks.nonnegative("stray", self.stray)
        object.__setattr__(self, "stray", stray and checks.magnitude("stray", stray))
        if self.std < LEAST_STD:
            raise ParameterError(
                f"`std` must be at least {LEAST_STD:g} grid units; got {self.std:g}: choose a finer `grid`."
            )
        if self.reach >= 2.0**62:
            raise ParameterError(
                f"`grid` is too fine: one record or person may move a sum by 2^62 steps or more; got "
                f"{self.grid:g}. Use a grid above {self.sensitivity / 2.0**62:g}."
            )

    @property
    def reach(self) -> float:
        """S / g: how far one unit can move the sum, in grid units, not counting rounding errors."""
        return self.sensitivity / self.grid


@dataclass(frozen=True)
class AttemptFacts:
    """One attempt: a part of a run with a fixed list of sites. When a site leaves or joins, the attempt ends.

    id : the hash that identifies the attempt, as 64 hexadecimal digits. All members have signed it.
    members : the numbers of the sites whose noise is in these sums.
    first : the number of the first release of this attempt. The attempt ends where the next attempt begins.
    round : the round of the plan that this first release belongs to. A round that an earlier attempt did not
        complete is released again, with fresh masks and noise, and is charged again.
    """

    id: str
    members: tuple[int, ...]
    first: int
    round: int

    def __post_init__(self) -> None:
        members = tuple(checks.whole("members", member) for member in self.members)
        if not members or list(members) != sorted(set(members)):
            raise ParameterError(f"`members` must be different sites in increasing order; got {members}.")
        if not isinstance(self.id, str) or len(self.id) != 64 or set(self.id) - set("0123456789abcdef"):
            raise ParameterError("`id` of an attempt must be a hash of 64 hexadecimal digits.")
        object.__setattr__(self, "members", members)
        for name in ("first", "round"):
            object.__setattr__(self, name, checks.whole(name, getattr(self, name), least=1))


def check_attempts(attempts: Sequence[AttemptFacts], sites: int) -> tuple[AttemptFacts, ...]:
    """The attempts as a tuple. Raises unless they are in order, begin with release 1, and all members are
    sites of the run."""
    for entry in attempts:
        if not isinstance(entry, AttemptFacts):
            raise ParameterError(f"`attempts` must contain AttemptFacts; got {type(entry).__name__}.")
        if entry.members[-1] >= sites:
            last = entry.members[-1]
            raise ParameterError(f"`members` must be below the number of sites, {sites}; got {last}.")
    firsts = [entry.first for entry in attempts]
    if firsts and (firsts[0] != 1 or firsts != sorted(set(firsts))):
        raise ParameterError("`attempts` must be in order, and the first attempt must begin with release 1.")
    return tuple(attempts)


def check_sums(sums: Sequence[SumFacts], rounds: int) -> tuple[SumFacts, ...]:
    """The sums as a tuple. Raises unless there is one sum for each round, in order."""
    for entry in sums:
        if not isinstance(entry, SumFacts):
            raise ParameterError(f"`sums` must contain SumFacts; got {type(entry).__name__}.")
    if [entry.t for entry in sums] != list(range(1, rounds + 1)):
        raise ParameterError(f"`sums` must contain one sum for each round 1..{rounds}, in order.")
    return tuple(sums)


def planned_rounds(sums: Sequence[SumFacts], attempts: Sequence[AttemptFacts]) -> list[int]:
    """The round of the plan that each release belongs to. Attempts may repeat rounds of earlier attempts."""
    begins, found = {entry.first: entry.round for entry in attempts}, [0]
    for entry in sums:
        found.append(begins.get(entry.t, found[-1] + 1))
    return found[1:]


class SumBounds(NamedTuple):
    """The least allowed S and gamma, and the allowed lengths of a message: any length if `lengths` is ()."""

    lengths: tuple[int, ...]
    sensitivity: float
    stray: float


@dataclass(frozen=True)
class SumTerms:
    """The public facts that determine the bounds of a run's sums.

    units : n, the number of records (or persons) of all sites together.
    largest : the largest number of rows at one site; floating-point errors grow with it.
    features : d, the number of columns of a row; a gradient has d entries for every class. For counts,
        `features` is the number of tables. Each unit (record or person) counts once in each table.
    sites : how many sites add noise to a sum.
    """

    loss: LossFacts
    units: int
    largest: int
    features: int
    data_norm: float
    sites: int = 1

    def bounds(self, part: str, *, first: bool = False, before: Sequence[SumFacts] = ()) -> SumBounds:
        """The allowed lengths, S and gamma of a sum of this kind.

        first : whether the sum is a gradient at f = 0, where many losses have a smaller slope than elsewhere.
        before : the sums of earlier rounds. Their noise limits how much whitening can stretch a row.
        """
        loss, n, d, X = self.loss, self.units, self.features, self.data_norm
        of_program = part in (VECTORS, ALIGNED)
        if (part == COUNTS) != (loss.name == COUNTS) or of_program != (loss.name == PROGRAM):
            raise ParameterError(f"`part` must fit the loss, {loss.name}; got {part!r}.")
        if of_program:
            return SumBounds((), (2.0 if part == VECTORS else math.sqrt(2.0)) / n, 0.0)
        if part == COUNTS:
            return SumBounds((), sens.counts_sensitivity(d), 0.0)
        if part == MOMENTS:
            S, stray = sens.moments_sensitivity(X, n), sens.moments_stray(self.largest, X)
            return SumBounds((d * (d + 1) // 2,), S, stray)
        if part == SQUARES:
            S, stray = sens.squares_sensitivity(X, n), sens.moments_stray(self.largest, X)
            return SumBounds((2 * d, 2 * (d - 1)), S, stray)
        if part in (WHITENED, CLIPPED):
            return self._whitened(part, before)
        S = 2.0 * (loss.slope_at_zero if first else loss.slope_bound) * X / n
        stray = sens.gradient_stray(loss.slope_bound, self._slope_error(), self.largest, X)
        return SumBounds((d * loss.classes,), S, stray)

    def _whitened(self, part: str, before: Sequence[SumFacts]) -> SumBounds:
        """The bounds of a sum in whitened coordinates. They depend on the noise of the released moments."""
        d, released = self.features, [entry for entry in before if entry.part in (MOMENTS, WHITENED)]
        if self.loss.name != "logistic" or self.data_norm != 1.0 or self.loss.classes != 1:
            raise ParameterError(f"`part` {part!r} needs the logistic loss and rows of norm at most 1.")
        if part == CLIPPED:
            released = released[:-1]  # the last release of moments only rotates the coordinates
        if not released or released[0].part != MOMENTS:
            raise ParameterError(
                f"`part` {part!r} is a sum in whitened coordinates; the sums of moments that define these "
                "coordinates must come before it."
            )
        noises = [entry.grid * entry.std * math.sqrt(self.sites) for entry in released]
        longest = sens.stretch(d, noises)
        if part == CLIPPED:
            return SumBounds((d,), 2.0 / self.units, sens.clipped_gradient_stray(self.largest, d, longest))
        stray = sens.whitened_moments_stray(self.largest, d, longest)
        return SumBounds((d * (d + 1) // 2,), sens.moments_sensitivity(1.0, self.units), stray)

    def _slope_error(self) -> float:
        """A bound on the floating-point error of a slope."""
        loss, X = self.loss, self.data_norm
        margin = sens.margin_error(self.features, X)
        if loss.name == "softmax":
            return sens.softmax_error(loss.classes, margin, X, bounded=bool(loss.parameters["bounded"]))
        shift, residual = 1.0 + loss.parameters.get("h", -1.0), loss.kind == "regression"
        return sens.slope_error(loss.slope_bound, loss.curvature_bound, shift, margin, X, residual=residual)

    def check(self, sums: Sequence[SumFacts], attempts: Sequence[AttemptFacts] = ()) -> None:
        """Raise if a sum has a wrong length, or states a smaller S or gamma than these facts allow.

        Only the first gradient of the plan is computed at f = 0. Several attempts may release this gradient.
        A sum uses the results of earlier rounds: of each such round, the result of its last release.
        """
        at_zero, last = None, dict[int, SumFacts]()
        rounds = planned_rounds(sums, check_attempts(attempts, self.sites))
        for planned, entry in zip(rounds, sums, strict=True):
            if at_zero is None and entry.part == GRADIENT:
                at_zero = planned
            before = [last[k] for k in sorted(last) if k < planned]
            again = last.setdefault(planned, entry)
            if (again.part, again.length) != (entry.part, entry.length):
                raise ParameterError(
                    f"`sums` {again.t} and {entry.t} must agree in `part` and `length`, because both release "
                    f"round {planned} of the plan."
                )
            last[planned] = entry
            least = self.bounds(entry.part, first=planned == at_zero, before=before)
            if least.lengths and entry.length not in least.lengths:
                allowed = " or ".join(map(str, least.lengths))
                raise ParameterError(f"`length` of sum {entry.t} must be {allowed}; got {entry.length}.")
            for name in ("sensitivity", "stray"):
                stated, needed = getattr(entry, name), getattr(least, name)
                if stated < needed * (1 - 1e-12):
                    raise ParameterError(
                        f"`{name}` of sum {entry.t} must be at least {needed:g}, which follows from the "
                        f"loss, the number of records or persons and their norm; got {stated:g}."
                    )


def check_moments(
    sums: Sequence[SumFacts], rounds: int, units: int, largest: int, features: int, sites: int
) -> None:
    """Raise unless the sums are moments of the rows with large enough bounds, and further rounds follow."""
    parts = [entry.part for entry in sums]
    if parts != [MOMENTS, *[WHITENED] * (len(parts) - 1)] or not len(parts) < rounds:
        raise ParameterError(
            f"`sums` of method 'penalty' must be one sum of {MOMENTS}, followed only by sums of {WHITENED}. "
            f"The number of sums must be below the number of rounds, {rounds}; got {', '.join(parts)}."
        )
    SumTerms(OF_ROWS, units, largest, features, 1.0, sites).check(sums)
