"""plan: choose a method, its noise and its rounds, so that the certificate is within a given budget.

Each kind of method has a planner. A planner takes a `PlanRequest` and returns a `Plan`; it reads no private
row.
"""

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
from ..objective import Logistic, Loss, one_blas_thread
from .calibration import EpsilonBudget
from .given import plan_given, plan_unprotected
from .masked import plan_masked, plan_nobody
from .penalty import plan_penalty
from .request import PENALTY, Plan, PlanRequest, unless_auto

P = ParamSpec("P")


class Planner(NamedTuple):
    """A planner for one kind of method.

    find : the function that makes the plan.
    where : when this planner is used, as a text for errors.
    refused : parameters that would have no effect and are therefore refused, each with the reason.
    """

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
_UNPROTECTED = Planner(plan_unprotected, "for epsilon = inf", {})  # without privacy no parameter is refused


def planner_for(request: PlanRequest) -> Planner:
    """The planner for a request. No other function makes this choice."""
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
    if request.graph.n == 1:
        return _MASKED._replace(where="with one site")
    if request.colluding is not None:
        return _MASKED
    return _NOBODY if request.choose else _PENALTY


def find_plan(request: PlanRequest, *, recall: bool = False) -> Plan:
    """The plan for a request, computed from public numbers only.

    With `recall`, a request that equals an earlier request returns the earlier plan. The search uses one BLAS
    thread, because the last bits of a matrix product depend on the number of threads.
    """
    request = request.checked()
    planner = planner_for(request)
    request.refuse(planner.refused, planner.where)
    with one_blas_thread():
        if not recall:
            return planner.find(request)
        try:
            hash(request)
        except TypeError:  # a list of schedules cannot be hashed
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
    """Let `plan` also accept a regression model as its first argument; it then calls the model's `plan`."""

    @functools.wraps(function)
    def plan(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return function(**kwargs)  # type: ignore[call-arg]
        if len(args) > 1 or not hasattr(args[0], "plan"):
            raise ParameterError(
                "`plan` must be given keyword arguments, or one regression model (taciturn.PrivateGLM)."
            )
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

    If `model` is a `PrivateGLM`, `plan(model, records=...)` calls `model.plan(records=...)`, which forecasts
    the standard errors of a regression.

    A parameter that would have no effect is refused; for example `effort` together with `colluding`.

    Parameters
    ----------
    epsilon, delta : the privacy budget of the whole run, for any one record or person. `epsilon` is one
        number for all sites, or one for each site. delta = 0 asks for a pure guarantee, with norm noise;
        delta = None means 1 / (10 * number of records or persons), but at most 1e-5.
    samples : B_i, the number of records of each site: one number for all sites, or one for each site. With
        unit "person", the number of persons.
    graph : the links between sites; or the name of a graph family, if `samples` has one entry per site.
    dimension : d, the number of features, including an intercept.
    colluding : with None, no other site is trusted: the plan is penalty perturbation, whose guarantee holds
        whatever the other sites do. With a number c, at most c of the other sites are assumed to collude: the
        plan is masked descent, which is about as accurate as if one trusted party held all rows. The plan for
        a single site is masked descent too.
    C, regularization : the weight of the loss, and the weight rho of the regulariser. Only the ratios of C,
        rho and the penalty matter, so "auto" means C = 1 and a very small rho.
    loss : the loss of the model; `Logistic()` by default.
    noise : "gaussian"; "norm", with density ~ exp(-rate ||e||); or "best", the kind with the better forecast.
    rounds, max_rounds : the exact number of rounds, or the largest allowed number; give at most one of them.
    effort : "quick" uses a closed-form forecast; "full", the default, also simulates the best plans on the
        proxy rows.
    proxy : the proxy rows, public rows on which plans are compared: (X, y), or a `Schema` from which rows are
        generated. By default rows are generated from `dimension`. Never pass the private data.
    outputs : the number of models trained at once (K for one-vs-rest), each with one release per round. With
        `colluding`, the number of classes of softmax.
    output_noise : False leaves out the small noise that covers the solver's error. The certificate is then
        idealised: it assumes an exact solver.
    real : False gives the certificate of a run with `simulate`. By default the certificate also covers the
        discrete noise on a grid that a real run adds.
    data_norm : the public bound on the norm of every row; 1 by default.
    seed : the seed for the proxy rows and the runs on them, 0 by default; the same seed gives the same plan.
    large_delta : True allows a delta above 1 / (number of all records or persons).
    unit : what the guarantee protects: one record; or one person with all rows of that person. A person may
        have many rows, but only at one site. The unit "person" needs Gaussian noise or `colluding`.
    whiten : True first learns better (whitened) coordinates from noisy moments of the rows; False does not.
        By default masked descent learns them if they are expected to help; penalty perturbation does not.
    baseline : by default, effort "full" also computes the loss without privacy on the public rows. False
        skips this.

    Returns
    -------
    Plan
        `method`, `rounds`, `C`, `regularization` and `tol` are arguments for `simulate` and `Problem`;
        `certificate`, `price`, `tried` and `to_dict()` describe the plan.

    Examples
    --------
    >>> import taciturn
    >>> found = taciturn.plan(
    ...     epsilon=1.0, samples=9044, graph=taciturn.Graph.ring(5), dimension=105, effort="quick"
    ... )
    >>> 0.99 < found.certificate.epsilon <= 1.0
    True
    """
    if isinstance(graph, str) and not isinstance(samples, Sequence | np.ndarray):
        raise ParameterError(
            f"`samples` must have one entry per site for `graph` = {graph!r}; got {samples!r}."
        )
    graph = Graph.of(graph, len(samples) if isinstance(graph, str) else None)  # type: ignore[arg-type]
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
