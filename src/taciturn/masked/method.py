"""MaskedDescent: what a run of it comes to, number by number, before anything is sent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from .. import checks
from ..errors import ParameterError
from ..objective.losses import SHIPPED, Logistic
from ..objective.softmax import Softmax
from ..privacy.accounting.gaussian import gaussian_mu
from ..privacy.sums import GRADIENT, MOMENTS, SQUARES, SumFacts, SumTerms
from .discrete import checked_std
from .masks import Message
from .pairs import PairGraph
from .public import rule
from .public.descent import Descent, DescentState
from .public.losses import BoundedLogistic, TrainingLoss, loss_facts
from .sums import check_room, grid_for, open_sum

MANY_ROWS = 2**26  # at one site, where persons may have any number of them
_ROOM = 1e-7  # of epsilon and delta: for the slack of discrete noise and for rounding up


@dataclass(frozen=True)
class PublicFacts:
    """What everybody knows of a network's rows before the run.

    sites, total, largest : N; n, the records or persons of all sites together; the most rows at one site.
    places : at how many sites one person may have rows.
    dimension, data_norm : d, and the bound on ||x||.
    loss, regularization : of the mean over all n of the loss, plus regularization ||f||^2 / 2.
    """

    sites: int
    total: int
    largest: int
    dimension: int
    loss: TrainingLoss
    regularization: float
    data_norm: float = 1.0
    places: int = 1

    @property
    def outputs(self) -> int:
        """Models at once: the classes of softmax."""
        return self.loss.classes if isinstance(self.loss, Softmax) else 1


@dataclass(frozen=True)
class MaskedTables:
    """A run's numbers, fixed before it starts: each sum and its noise, who shares masks, the public maths."""

    sums: tuple[SumFacts, ...]
    pairs: PairGraph
    colluding: int | None
    descent: Descent

    @property
    def rounds(self) -> int:
        return len(self.sums)

    def after(self, state: DescentState, total: Message) -> DescentState:
        """The state after a round in which all messages added up to `total`: public, and alike everywhere."""
        return self.descent.advance(state, open_sum(total, self.sums[state.t].grid))


@dataclass(frozen=True)
class MaskedDescent:
    """Gradient descent on sums that all sites add up and nobody sees a part of.

    The noise of all honest sites protects each record together, so that N sites do about as well as a trusted
    centre with all the rows, however the rows are dealt. In return at most `colluding` of the other sites may
    work together against one; the certificate says what is left if more do.

    Parameters
    ----------
    epsilon, delta : what the whole run may cost any one record, against `colluding` of the other sites.
    colluding : how many of the others may work together; None: all of them, and masks do not help.
    constant : the public value of the last column, where every row has the same (an intercept).
    full : release all second moments of the rows (True), or only means and squares (False); by default all
        for up to 256 columns.
    bounded : descend on `BoundedLogistic` where the loss is the logistic one: the same model in the limit,
        half the noise. For several classes records are weighted to the same end.
    connectivity : how many masks tie each site to the others at least; by default every two sites share one
        for up to 128 sites, and colluding + 1 beyond.
    share : of the squared budget, for the first release.

    >>> facts = PublicFacts(5, total=40_000, largest=8_000, dimension=10, loss=Logistic(), regularization=0)
    >>> [(s.part, s.length) for s in MaskedDescent(epsilon=1.0).tables(facts, rounds=3).sums]
    [('second moments', 55), ('gradient', 10), ('gradient', 10)]
    """

    masked: ClassVar[Literal[True]] = True  # how the engines know it without loading what it is compiled from

    epsilon: float = 1.0
    delta: float = 1e-5
    colluding: int | None = 1
    constant: float | None = None
    full: bool | None = None
    bounded: bool = True
    connectivity: int | None = None
    share: float = rule.SHARE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.probability("delta", self.delta))
        object.__setattr__(self, "share", checks.probability("share", self.share))
        if self.colluding is not None:
            object.__setattr__(self, "colluding", checks.whole("colluding", self.colluding))
        if self.constant is not None:
            object.__setattr__(self, "constant", checks.positive("constant", self.constant))

    def training_loss(self, loss: TrainingLoss) -> TrainingLoss:
        """What the descent is on."""
        if isinstance(loss, Softmax):
            return replace(loss, bounded=self.bounded)
        if isinstance(loss, BoundedLogistic):
            return loss
        if type(loss) is Logistic:
            return BoundedLogistic() if self.bounded else loss
        if type(loss) not in SHIPPED.values():
            raise ParameterError(
                f"`loss` must be {', '.join(SHIPPED)} or softmax for MaskedDescent; got {loss.name!r}: "
                "nobody has bounded how floats stray in another."
            )
        return loss

    def tables(self, facts: PublicFacts, rounds: int) -> MaskedTables:
        """Every number of a run of so many rounds, checked, before anything is spent."""
        if checks.whole("rounds", rounds) < 3:
            raise ParameterError(
                f"`rounds` must be at least 3, one for the moments of the rows and two gradients; "
                f"got {rounds}. {rule.ROUNDS} are usual."
            )
        pairs = self._pairs(checks.whole("sites", facts.sites, least=2))
        against = facts.sites - 1 if self.colluding is None else self.colluding
        honest = pairs.honest(against)
        full = facts.dimension <= rule.FULL if self.full is None else self.full
        loss = self.training_loss(facts.loss)
        mu = float(gaussian_mu(self.epsilon * (1 - _ROOM), self.delta * (1 - _ROOM)))
        each = [math.sqrt(self.share), *[math.sqrt((1 - self.share) / (rounds - 1))] * (rounds - 1)]
        sums = tuple(
            self._sum(t, facts, loss, full, mu * part * math.sqrt(honest))
            for t, part in enumerate(each, start=1)
        )
        descent = Descent(
            loss=loss,
            dimension=facts.dimension,
            outputs=facts.outputs,
            full=full,
            noise=tuple(entry.grid * entry.std * math.sqrt(facts.sites) for entry in sums),
            regularization=facts.regularization,
            constant=self.constant,
        )
        return MaskedTables(sums, pairs, self.colluding, descent)

    def _pairs(self, sites: int) -> PairGraph:
        if self.connectivity is None:
            return PairGraph.against(sites - 1 if self.colluding is None else self.colluding, sites)
        return PairGraph(sites, self.connectivity)

    def _sum(self, t: int, facts: PublicFacts, loss: TrainingLoss, full: bool, size: float) -> SumFacts:
        """The sum of round t, with noise such that Delta / s = `size`."""
        X, constant = facts.data_norm, self.constant
        if constant is not None and constant > X:
            raise ParameterError(f"`constant` must be at most the data's norm, {X:g}; got {constant:g}.")
        part = GRADIENT if t > 1 else MOMENTS if full else SQUARES
        terms = SumTerms(loss_facts(loss), facts.total, facts.largest, facts.dimension, X)
        lengths, S, stray = terms.bounds(part, first=t == 2)
        length = lengths[0] if constant is None else lengths[-1]  # of a constant nothing need be released
        grid = grid_for(S, length)
        again = facts.places * (2 * stray / grid + math.sqrt(length))  # each of a person's sites rounds anew
        std = checked_std((S / grid + again) / size * (1 + 1e-10))
        largest = {MOMENTS: math.sqrt(2) * X**2, SQUARES: max(X, X**2), GRADIENT: loss.slope_bound * X}
        check_room(largest[part], grid=grid, sites=facts.sites, std=std)
        return SumFacts(t, part, length, S, stray, grid, std)
