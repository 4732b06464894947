"""MaskedDescent: gradient descent on noisy sums over all sites. Masks hide what each site adds to a sum.

`descent.py` contains the descent in the rows' own coordinates. `whitened.py` contains the descent in whitened
coordinates, in which rows vary equally in every direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...core import checks
from ...core.errors import ParameterError
from ...objective.losses import SHIPPED, Logistic
from ...objective.persons import Persons
from ...objective.regularizers import L2
from ...objective.softmax import Softmax
from ...privacy.accounting.gaussian import gaussian_mu
from ...privacy.sums import CLIPPED, GRADIENT, MOMENTS, SQUARES, WHITENED, SumFacts, SumTerms
from ..base import UNSAID, Network, RunOptions, UnreadRowsError
from ..sums.pairs import PairGraph
from ..sums.prepared import PreparedSums
from ..sums.program import SumPlan, SumTables, fix_sums, pair_graph
from . import step_size
from .coordinates import Strength
from .descent import Descent
from .descent_losses import BoundedLogistic, TrainingLoss, loss_facts
from .whitened import GRADIENTS, Whitened

_FEWEST = 20  # the fewest rounds for which whitened coordinates are worth their cost
MANY_ROWS = 2**26  # the assumed bound on the rows of one site, if persons may have any number of rows


@dataclass(frozen=True)
class PublicFacts:
    """The public facts about a network's rows before the run.

    sites : N, the number of sites.   total : n, the number of records or persons of all sites together.
    largest : a bound on the number of rows of a site.
    places : the most sites at which one person may have rows.
    dimension, data_norm : d, and the bound on the norm ||x|| of a row.
    loss, regularization : the objective is the mean loss over all n plus regularization ||f||^2 / 2.
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
        """The number of models: one for each class of softmax, else 1."""
        return self.loss.classes if isinstance(self.loss, Softmax) else 1


@dataclass(frozen=True)
class MaskedDescent:
    """Gradient descent on masked sums over all sites.

    The noise of all honest sites together protects each record. So the model is about as accurate as that of
    a trusted centre with all rows, however the rows are distributed. The guarantee for a record holds if at
    most `colluding` of the sites that do not hold this record collude. The certificate also states epsilon
    for every larger number of colluding sites.

    Parameters
    ----------
    epsilon, delta : the privacy cost of the whole run for one record, if `colluding` sites collude.
    colluding : how many of the sites that do not hold the record may collude. None means all of them; then
        masks do not help.
    constant : the public value of the last column, if it is the same in every row (an intercept).
    full : release all second moments of the rows (True), or only means and squares (False). By default it is
        True for up to 256 columns.
    bounded : replace the logistic loss by `BoundedLogistic`, which gives the same model in the limit of many
        rows and needs half the noise. For several classes, weights on the records have the same effect.
    connectivity : the least number of partners with which each site shares a mask. By default every pair of
        sites shares a mask in a network of up to 128 sites; a larger network has a default of colluding + 1.
    share : the share of the squared budget mu^2 (mu-GDP) for the moments; by default a fixed rule sets it.
    whiten : learn whitened coordinates from the moments and descend in them (True), or descend in the
        rows' own coordinates (False). By default `whitens` chooses from public numbers.

    >>> facts = PublicFacts(5, total=40_000, largest=8_000, dimension=10, loss=Logistic(), regularization=0)
    >>> [(s.part, s.length) for s in MaskedDescent(epsilon=1.0).tables(facts, rounds=63).sums[1:4]]
    [('whitened moments', 55), ('whitened moments', 55), ('clipped gradient', 10)]
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    colluding: int | None = 1
    constant: float | None = None
    full: bool | None = None
    bounded: bool = True
    connectivity: int | None = None
    share: float | None = None
    whiten: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checks.positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", checks.probability("delta", self.delta))
        if self.share is not None:
            object.__setattr__(self, "share", checks.probability("share", self.share))
        if self.colluding is not None:
            object.__setattr__(self, "colluding", checks.whole("colluding", self.colluding))
        if self.constant is not None:
            object.__setattr__(self, "constant", checks.positive("constant", self.constant))
        for name in ("full", "bounded", "whiten"):
            if name == "bounded" or getattr(self, name) is not None:
                checks.flag(name, getattr(self, name))

    def training_loss(self, loss: TrainingLoss) -> TrainingLoss:
        """The loss that the descent minimises."""
        if isinstance(loss, Softmax):
            return replace(loss, bounded=self.bounded)
        if isinstance(loss, BoundedLogistic):
            return loss
        if type(loss) is Logistic:
            return BoundedLogistic() if self.bounded else loss
        if type(loss) not in SHIPPED.values():
            raise ParameterError(
                f"`loss` must be {', '.join(SHIPPED)} or softmax for MaskedDescent; got {loss.name!r}: "
                "the floating-point error of other losses is not bounded."
            )
        return loss

    def prepare(self, network: Network, rounds: int, options: RunOptions = UNSAID) -> PreparedSums:
        """Prepare a run of this method over a network. There is no solver, so solver options are refused."""
        options.refuse("tol", "strict", "idealised", of="MaskedDescent, which has no solver")
        if options.start not in (None, "zeros"):
            raise ParameterError(f"`start` must be 'zeros' for MaskedDescent; got {options.start!r}.")
        if type(network.regularizer) is not L2:
            got = type(network.regularizer).__name__
            raise ParameterError(f"`regularizer` must be L2 for MaskedDescent; got {got}.")
        if not network.samples:
            raise UnreadRowsError("MaskedDescent")  # `runtime/setup.py` then reads the rows
        loss, persons = network.loss, network.persons
        outputs = loss.classes if isinstance(loss, Softmax) else 1
        facts = PublicFacts(
            sites=network.total,
            total=sum(network.samples) if persons is None else persons.total,
            largest=most_rows(network.samples, persons),
            dimension=network.dimension // outputs,
            loss=loss,
            regularization=network.regularization / (network.C * network.total),
            places=1 if persons is None else persons.most_sites,
        )
        return PreparedSums(network, self.tables(facts, rounds))

    def strength(self, facts: PublicFacts) -> Strength:
        """The signal of a run compared with its noise."""
        pairs = self._pairs(facts)
        honest = pairs.honest(pairs.sites - 1 if self.colluding is None else self.colluding)
        return Strength(facts.total, float(gaussian_mu(self.epsilon, self.delta)), pairs.sites / honest)

    def whitens(self, facts: PublicFacts, rounds: int | None = None) -> bool:
        """Whether a run of this many rounds (None: the usual number) learns whitened coordinates first."""
        reason = self._plain_reason(facts)
        if self.whiten and reason:
            raise ParameterError(f"`whiten` must be None or False for this run; got True: {reason}.")
        if self.whiten is not None or reason:
            return bool(self.whiten)
        if rounds is not None and rounds < _FEWEST:
            return False
        return self.strength(facts).whitening_pays(facts.dimension)

    def _plain_reason(self, facts: PublicFacts) -> str:
        """The reason why whitened coordinates are not possible; "" if they are possible."""
        if type(facts.loss) is not Logistic:
            return f"whitened coordinates need the logistic loss, not {facts.loss.name}"
        if not self.bounded:
            return "`bounded` = False requires the exact slopes of the logistic loss"
        if self.full is False:
            return "`full` = False releases no second moments"
        if facts.data_norm != 1.0:
            return "rows must have norm at most 1"
        return ""

    def usual_rounds(self, facts: PublicFacts) -> int:
        """The number of sums of a run, unless the caller asks for another number."""
        if self.whitens(facts):
            return len(self.strength(facts).shares(facts.dimension)) + GRADIENTS
        return step_size.ROUNDS if facts.dimension <= step_size.FULL else step_size.ROUNDS_WIDE

    def tables(self, facts: PublicFacts, rounds: int) -> SumTables:
        """Every number of a run of this many rounds, checked before anything is spent."""
        whitened = self.whitens(facts, checks.whole("rounds", rounds))
        first = list(self.strength(facts).shares(facts.dimension)) if whitened else [step_size.SHARE]
        if self.share is not None:
            first = [self.share / sum(first) * share for share in first]
        moments, left = len(first), rounds - len(first)
        if rounds < moments + 2:
            raise ParameterError(
                f"`rounds` must be at least {moments + 2}: {moments} for moments of the rows, and two for "
                f"gradients; got {rounds}. {self.usual_rounds(facts)} rounds are usual."
            )
        if self.constant is not None and self.constant > facts.data_norm:
            raise ParameterError(
                f"`constant` must be at most {facts.data_norm:g}, the bound on the norm of a row; got "
                f"{self.constant:g}."
            )
        pairs = self._pairs(facts)
        full = facts.dimension <= step_size.FULL if self.full is None else self.full
        parts = [MOMENTS if whitened or full else SQUARES, *[WHITENED] * (moments - 1)]
        parts += [CLIPPED if whitened else GRADIENT] * left
        loss = loss_facts(facts.loss if whitened else self.training_loss(facts.loss))
        terms = SumTerms(loss, facts.total, facts.largest, facts.dimension, facts.data_norm, facts.sites)
        shares = [*first, *[(1 - sum(first)) / left] * left]
        fix = partial(
            fix_sums,
            epsilon=self.epsilon,
            delta=self.delta,
            pairs=pairs,
            colluding=self.colluding,
            places=facts.places,
        )
        sums = plan_sums(terms, parts, shares, fix, constant=self.constant is not None)
        noise = tuple(entry.grid * entry.std * math.sqrt(facts.sites) for entry in sums)
        given: dict[str, Any] = {"features": facts.dimension, "noise": noise, "constant": self.constant}
        given["regularization"] = facts.regularization
        program: Descent | Whitened
        if whitened:
            program = Whitened(moments=moments, strength=self.strength(facts), **given)
        else:
            trained = self.training_loss(facts.loss)
            program = Descent(training_loss=trained, outputs=facts.outputs, full=full, **given)
        return SumTables(sums, pairs, self.colluding, program, facts.total, facts.largest, facts.data_norm)

    def _pairs(self, facts: PublicFacts) -> PairGraph:
        return pair_graph(checks.whole("sites", facts.sites, least=1), self.colluding, self.connectivity)


def plan_sums(
    terms: SumTerms,
    parts: Sequence[str],
    shares: Sequence[float],
    fix: Callable[[Sequence[SumPlan]], tuple[SumFacts, ...]],
    *,
    constant: bool = False,
) -> tuple[SumFacts, ...]:
    """Each sum with its noise, which `fix` sets.

    The bounds on floating-point errors depend on the noise of earlier moments. `constant` : whether the last
    column is known and not released.
    """
    X = terms.data_norm
    largest = {
        MOMENTS: math.sqrt(2) * X**2,
        SQUARES: max(X, X**2),
        GRADIENT: terms.loss.slope_bound * X,
        WHITENED: math.sqrt(2),
        CLIPPED: 1.0,
    }
    plans: list[SumPlan] = []
    sums: tuple[SumFacts, ...] = ()
    for part, share in zip(parts, shares, strict=True):
        lengths, S, stray = terms.bounds(part, first=len(plans) == 1, before=sums)
        plans.append(SumPlan(part, lengths[-1 if constant else 0], S, stray, largest[part], share))
        if part in (MOMENTS, WHITENED):
            sums = fix(plans)
    return fix(plans)


def most_rows(samples: Sequence[int], persons: Persons | None) -> int:
    """A public bound on the rows at one site. It does not reveal how many rows each person has."""
    if persons is None:
        return max(samples)
    return MANY_ROWS if persons.most_rows is None else max(samples) * persons.most_rows
