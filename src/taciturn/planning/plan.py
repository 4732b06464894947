"""plan: from a budget to a method, its noise and its rounds, whose certificate stays within the budget."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, cast, overload

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..data.tables.schema import Schema
from ..graph import Graph, GraphLike
from ..objective import Logistic, Loss
from .calibration import EpsilonBudget
from .given import plan_given, plan_unprotected
from .masked import plan_masked, plan_nobody
from .penalty import plan_penalty
from .request import PENALTY, Plan, PlanRequest, unless_auto

P = ParamSpec("P")


class Planner(NamedTuple):
    """How a plan is found, where it applies, and which parameters would have no effect there, and why."""

    find: Callable[[PlanRequest], Plan]
    where: str
    refused: Mapping[str, str]


_SEARCH = ("noise", "effort", "proxy", "seed", "baseline", "output_noise")
_PENALTY = Planner(plan_penalty, "without `colluding`", {})
_MASKED = Planner(
    plan_masked,
    "with `colluding`",
    {
        "noise": "the noise of masked sums is discrete",
        "output_noise": "masked sums have no solver whose error must be covered",
        "data_norm": "rows of masked descent have norm at most 1",
        **dict.fromkeys(("effort", "proxy", "seed", "baseline"), "the plan follows from the budget alone"),
    },
)
_NOBODY = Planner(plan_nobody, "without `colluding`", {})
_GIVEN = Planner(
    plan_given,
    "with `method`",
    dict.fromkeys(("max_rounds", "whiten", *_SEARCH), "the method and `rounds` determine everything"),
)
_UNPROTECTED = Planner(plan_unprotected, "for epsilon = inf", {})  # which overrules all that is promised


def planner_for(request: PlanRequest) -> Planner:
    """The one place that chooses a planner for a request."""
    if math.isinf(max(request.budget.epsilon)):
        return _UNPROTECTED
    if request.method == PENALTY:
        if request.colluding is not None:
            raise ParameterError("`colluding` must be None for method 'penalty', which trusts no other site.")
        return _PENALTY
    if request.method is not None:
        if request.colluding is not None:
            raise ParameterError(
                "`method` and `colluding` exclude each other: a MaskedDescent has its own `colluding`."
            )
        return _GIVEN
    if request.colluding is not None or request.graph.n == 1:  # one site alone adds up sums
        return _MASKED
    return _NOBODY if request.choose else _PENALTY


def find_plan(request: PlanRequest, *, recall: bool = False) -> Plan:
    """The plan for a request. It follows from public numbers, so `recall` may take one found before."""
    request = request.checked()
    planner = planner_for(request)
    request.refuse(planner.refused, planner.where)
    if not recall:
        return planner.find(request)
    try:
        hash(request)
    except TypeError:  # a list of schedules
        return planner.find(request)
    return _recall(planner.find, request)


@functools.lru_cache(maxsize=128)
def _recall(find: Callable[[PlanRequest], Plan], request: PlanRequest) -> Plan:
    return find(request)


class _Plannable(Protocol):
    def plan(self, records: int) -> Any: ...


class _PlanCall(Protocol[P]):
    @overload
    def __call__(self, model: _Plannable, /, records: int, **expected: Any) -> Any: ...

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Plan: ...


def _or_of_a_model(function: Callable[P, Plan]) -> _PlanCall[P]:
    """Also takes a regression in place of numbers, and asks it."""

    @functools.wraps(function)
    def plan(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return function(**kwargs)  # type: ignore[call-arg]
        if len(args) > 1 or not hasattr(args[0], "plan"):
            raise ParameterError("`plan` must be given keywords, or one regression such as tt.PrivateGLM.")
        return args[0].plan(**kwargs)

    return cast("_PlanCall[P]", plan)


@_or_of_a_model
def plan(
    *,
    epsilon: float | Sequence[float],
    delta: float | None = 1e-5,
    samples: int | Sequence[int],
    graph: GraphLike,
    dimension: int,
    colluding: int | None = None,
    C: float | Literal["auto"] = "auto",
    regularization: float | Literal["auto"] = "auto",
    loss: Loss | None = None,
    noise: Literal["best", "gaussian", "norm"] = "best",
    rounds: int | None = None,
    max_rounds: int | None = None,
    effort: Literal["quick", "full"] | None = None,
    proxy: Schema | tuple[Any, Any] | None = None,
    outputs: int = 1,
    output_noise: bool | None = None,
    real: bool | None = None,
    data_norm: float | None = None,
    seed: int | None = None,
    large_delta: bool = False,
    baseline: bool | None = None,
    unit: Literal["record", "person"] = "record",
    whiten: bool | None = None,
) -> Plan:
    """Choose a method, its noise and its rounds for a budget.

    `plan(model, records=...)` with a `PrivateGLM` is `model.plan(records=...)`: how large the standard errors
    of a regression will be.

    A parameter that would have no effect is refused: those of the search have none with `colluding`.

    Parameters
    ----------
    epsilon, delta : what the whole run may cost any one record, or person; one epsilon for all sites, or one
        for each. delta = 0 asks for a pure guarantee, with norm noise; None takes a tenth of one over the
        number of records or persons, and at most 1e-5.
    samples : B_i, one number for all sites or one for each; persons where they are the `unit`.
    graph : the links between sites; the name of a family where `samples` has one entry per site.
    dimension : d, an intercept included.
    colluding : None trusts no other site: penalty perturbation, which holds whatever the other sites do. A
        number trusts all but so many of them: masked descent, about as good as a trusted centre.
    C, regularization : the weight of the loss and rho; only their ratio matters, to each other and to the
        penalty, so "auto" takes C = 1 and hardly any rho.
    noise : "gaussian", "norm", or whichever should do better.
    rounds, max_rounds : exactly so many, or at most so many; at most one of the two.
    effort : "quick" trusts a closed-form model; "full", the default, also runs the best shapes on the proxy.
    proxy : public rows to choose on: a `Schema` to generate them from, or (X, y); by default they are
        generated from `dimension`. Never the private data.
    outputs : models trained at once, K for one-vs-rest: releases per round. With `colluding`, the classes of
        softmax.
    output_noise : False leaves out the little noise that covers the solver's error; the certificate is then
        idealised.
    real : False makes the certificate that of `simulate`; by default it counts what a real run adds, whole
        numbers on a grid.
    data_norm : X, the public bound on the norm of every row; 1 by default.
    seed : of the proxy and its runs, 0 by default; the same seed gives the same plan.
    large_delta : allows a delta above one over the number of all records, or persons.
    unit : what one promise covers: a record, or a person with all rows that are theirs, in any number and at
        one site. That needs Gaussian noise or `colluding`.
    whiten : True learns better coordinates from noisy moments of the rows first, False does not. By default
        masked descent does where that should pay, and penalty perturbation does not.
    baseline : False leaves out the loss without privacy on the same public rows, which effort "full" adds.

    Returns
    -------
    Plan
        method, rounds, C, regularization, tol: ready for `simulate`; certificate, price, tried, to_dict().

    Examples
    --------
    >>> import taciturn
    >>> found = taciturn.plan(
    ...     epsilon=1.0, samples=9044, graph=taciturn.Graph.ring(5), dimension=105, effort="quick"
    ... )
    >>> 0.99 < found.certificate.epsilon <= 1.0
    True
    """
    graph = Graph.of(
        graph, len(samples) if isinstance(graph, str) and isinstance(samples, Sequence) else None
    )
    sizes = _sizes(samples, graph.n)
    delta = checks.usual_delta(delta, sum(sizes), insisted=large_delta)
    return find_plan(
        PlanRequest(
            budget=EpsilonBudget.of(epsilon, delta, sites=graph.n),
            samples=sizes,
            graph=graph,
            dimension=dimension,
            loss=Logistic() if loss is None else loss,
            outputs=outputs,
            unit=unit,
            colluding=colluding,
            C=unless_auto(C),
            regularization=unless_auto(regularization),
            noise=noise,
            rounds=rounds,
            max_rounds=max_rounds,
            effort=effort,
            proxy=proxy,
            output_noise=output_noise,
            real=real,
            data_norm=data_norm,
            seed=seed,
            baseline=baseline,
            whiten=whiten,
        )
    )


def _sizes(samples: int | Sequence[int], sites: int) -> tuple[int, ...]:
    each = [samples] * sites if isinstance(samples, int | np.integer) else list(samples)
    if len(each) != sites:
        raise ParameterError(f"`samples` must have one entry per site, {sites}; got {len(each)}.")
    return tuple(checks.whole("samples", entry, least=1) for entry in each)
