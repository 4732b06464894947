"""How a fit is run: as the planner chose, as the user chose, or without privacy."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..admm.accounts import planned_certificate, run_facts
from ..admm.methods import MADMM, Method
from ..errors import ParameterError
from ..graph import Graph
from ..objective.losses import Loss
from ..objective.persons import persons_of
from ..planning.plan import plan
from ..planning.privacy_plan import PrivacyPlan
from ..privacy.accounting.shown import rounded_up
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import PLANNED
from .assignment import SiteAssignment

_ROUNDS, _TOL = 100, 1e-7
_WEAK = 0.1  # rho / N of a run without privacy, in units of C / rows: a tenth of scikit-learn's default
_PULL = 10.0  # 2 eta V in units of rho / N: fast where sites are alike, and still right where they are not


class Settings(Protocol):
    """What a fit needs to know: a `PrivacyPlan`, or `ChosenSettings`."""

    @property
    def method(self) -> Method: ...
    @property
    def rounds(self) -> int: ...
    @property
    def C(self) -> float: ...  # noqa: N802
    @property
    def regularization(self) -> float: ...
    @property
    def tol(self) -> float: ...
    @property
    def weights(self) -> tuple[float, ...]: ...


@dataclass(frozen=True, repr=False)
class ChosenSettings:
    """Settings that no planner made."""

    method: Method
    rounds: int
    C: float
    regularization: float
    tol: float
    weights: tuple[float, ...]

    def __repr__(self) -> str:
        kind = type(self.method).__name__
        return f"ChosenSettings({kind}, rounds={self.rounds}, C={self.C:g}, sites={len(self.weights)})"


@dataclass(frozen=True)
class Wishes:
    """What the user asked for, checked; None leaves the choice to the planner."""

    epsilon: float
    delta: float
    method: Method | None
    rounds: int | None
    max_rounds: int | None
    C: float | None
    regularization: float | None
    noise: Any
    effort: Any
    real: bool
    colluding: int | None = None


def for_persons(wishes: Wishes) -> Wishes:
    """The same wishes where a promise covers a person: with Gaussian noise that costs no more than a record.

    The planner does not know norm noise for persons; a method of one's own may have it.
    """
    if wishes.method is not None or wishes.colluding is not None or math.isinf(wishes.epsilon):
        return wishes
    if wishes.noise == "norm" or wishes.delta == 0:
        raise ParameterError(
            "`person` needs Gaussian noise: noise='best' or 'gaussian', and `delta` above 0."
        )
    return replace(wishes, noise="gaussian")


def for_budget(wishes: Wishes, accountant: str | None) -> Wishes:
    """The same wishes inside a budget that adds up squares of mu: by Gaussian noise, whose mu is known."""
    gaussian = wishes.delta > 0 and wishes.noise == "best" and accountant in (None, "gaussian")
    if gaussian and wishes.method is None and wishes.colluding is None:
        return replace(wishes, noise="gaussian")
    return wishes


def choose_settings(
    wishes: Wishes, places: SiteAssignment, *, loss: Loss, dimension: int, outputs: int
) -> Settings:
    """Every number of the run, within the budget, before anything is spent."""
    if wishes.epsilon == math.inf:
        return _without_privacy(wishes, places)
    if wishes.method is not None:
        return _check_own_method(wishes.method, wishes, places, loss, dimension, outputs)
    kind: Any = loss  # the losses of the estimators are frozen facts, and so have a hash
    return _plan_settings(wishes, tuple(places.samples), places.graph, kind, dimension, outputs)


@functools.lru_cache(maxsize=128)
def _plan_settings(
    wishes: Wishes, samples: tuple[int, ...], graph: Graph, loss: Loss, dimension: int, outputs: int
) -> PrivacyPlan:
    """The planner's choice; a function of public numbers alone, so that folds and grids share it."""
    found = plan(
        epsilon=wishes.epsilon,
        delta=wishes.delta,
        large_delta=True,  # the fit has looked at it
        samples=samples,
        graph=graph,
        dimension=dimension,
        C="auto" if wishes.C is None else wishes.C,
        regularization="auto" if wishes.regularization is None else wishes.regularization,
        loss=loss,
        noise=wishes.noise,
        rounds=wishes.rounds,
        max_rounds=wishes.max_rounds,
        effort=wishes.effort,
        outputs=outputs,
        real=wishes.real,
    )
    if not isinstance(found, PrivacyPlan):
        raise TypeError("masked descent has settings of its own")
    return found


def _without_privacy(wishes: Wishes, places: SiteAssignment) -> ChosenSettings:
    """M-ADMM whose mean is near the pooled optimum after a hundred rounds."""
    C, sites = wishes.C or 1.0, places.graph.n
    rho = wishes.regularization or _WEAK * C * sites / sum(places.samples)
    eta = max(_PULL * rho / sites, 1e-6 * C) / (2 * float(places.graph.degrees.mean()))
    return ChosenSettings(
        wishes.method or MADMM(eta, eta), wishes.rounds or _ROUNDS, C, rho, _TOL, _alike(sites)
    )


def _check_own_method(
    method: Method, wishes: Wishes, places: SiteAssignment, loss: Loss, dimension: int, outputs: int
) -> ChosenSettings:
    """The user's own method, if it stays within the budget."""
    if wishes.rounds is None:
        raise ParameterError("`rounds` must be given together with `method`; got None.")
    C, rounds = wishes.C or 1.0, wishes.rounds
    rho = wishes.regularization or 1e-6 * C
    chosen = ChosenSettings(method, rounds, C, rho, _TOL, _alike(places.graph.n))
    certificate = _forecast(chosen, places, wishes, loss, dimension, outputs)
    if certificate.run.noise == "none":
        raise ParameterError(
            f"`method` must add noise for epsilon = {wishes.epsilon:g}; got {type(method).__name__}, "
            "which adds none. Try taciturn.PenaltyPerturbation, or epsilon=float('inf')."
        )
    if certificate.run.idealised and wishes.real:
        raise ParameterError(
            "`method` must have `output_noise`, which covers the solver's error; got None. Try "
            "taciturn.GaussianNoise(1e-3), or a `random_state` for a simulation."
        )
    pure = wishes.delta == 0
    cost = certificate.pure_epsilon if pure else certificate.epsilon
    if not cost <= wishes.epsilon:
        raise ParameterError(
            f"`method` must stay within epsilon = {wishes.epsilon:g}; {rounds} rounds of it cost "
            f"{rounded_up(cost)} at delta = {wishes.delta:g}. Add noise, or run fewer rounds."
        )
    return chosen


def _forecast(
    chosen: ChosenSettings, places: SiteAssignment, wishes: Wishes, loss: Loss, dimension: int, outputs: int
) -> Certificate:
    """What the run will have cost: every schedule is fixed in advance."""
    tables = chosen.method.tables(places.graph.n, chosen.rounds)
    run = run_facts(
        tables,
        loss,
        dimension=dimension,
        C=chosen.C,
        regularization=chosen.regularization,
        tol=chosen.tol,
        simulated=not wishes.real,
        sites=places.graph.n,
        outputs=outputs,
        marks=(PLANNED,),
        persons=None if places.ids is None else persons_of(places.ids),
    )
    degrees, delta = places.graph.degrees, wishes.delta or 1e-5
    return planned_certificate(tables, run, samples=places.samples, degrees=degrees, delta=delta)


def _alike(sites: int) -> tuple[float, ...]:
    """Every site counts alike in the released average."""
    return (1 / sites,) * sites
