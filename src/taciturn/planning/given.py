"""Plans that need no search: for a method that the user gives, and for runs without privacy.

A run without privacy uses `MADMM`: the paper's ADMM with a penalty that may differ between sites and rounds.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import ParameterError
from ..core.formatting import format_cost, format_given
from ..methods.admm.perturbations import MADMM
from ..methods.base import Method
from ..methods.programs.masked_descent import MaskedDescent
from .masked import plan_masked
from .request import Plan, PlanRequest

_ROUNDS = 100  # the usual number of rounds of a run without privacy
_TOL = 1e-7  # the tolerance of the solver
_CHOSEN = "The user chose the method and the number of rounds."
_WEAK = 0.1  # without privacy, rho = _WEAK C N / rows for N sites: a tenth of scikit-learn's default
_PULL = 10.0  # without privacy, 2 eta V = _PULL rho / N: ADMM is fast for similar sites, slower for others


def plan_given(request: PlanRequest) -> Plan:
    """The plan for the user's own method; raises if the method exceeds the budget."""
    if request.rounds is None:
        raise ParameterError("`rounds` must be given together with `method`; got None.")
    found = _PLANNERS.get(type(request.method), _plan_any)(request)
    _hold_to_budget(found, request)
    return found


def plan_unprotected(request: PlanRequest) -> Plan:
    """A plan without privacy: by default M-ADMM with 100 rounds.

    After these rounds, the mean of the sites' models is near the optimum of all rows together.
    """
    C, sites = request.C or 1.0, request.graph.n
    rho = request.regularization or _WEAK * C * sites / sum(request.samples)
    eta = max(_PULL * rho / sites, 1e-6 * C) / (2 * float(request.graph.degrees.mean()))
    if type(request.method) in _PLANNERS:
        name = type(request.method).__name__
        raise ParameterError(f"`method` must be an ADMM method for epsilon = inf; {name} adds noise.")
    return _plan(request, _own(request) or MADMM(eta, eta), C, rho)


def _own(request: PlanRequest) -> Method | None:
    """The user's method; None if no method, or only the name of a method, was given."""
    return None if isinstance(request.method, str) else request.method


def _plan_any(request: PlanRequest) -> Plan:
    C = request.C or 1.0
    return _plan(request, _own(request) or MADMM(1.0, 1.0), C, request.regularization or 1e-6 * C)


_PLANNERS: dict[type, Callable[[PlanRequest], Plan]] = {MaskedDescent: plan_masked}
"""The methods that have a separate planner."""


def _plan(request: PlanRequest, method: Method, C: float, rho: float) -> Plan:
    rounds = request.rounds or min(_ROUNDS, request.max_rounds or _ROUNDS)
    sites = request.graph.n
    return Plan(
        method=method,
        rounds=rounds,
        C=C,
        regularization=rho,
        tol=_TOL,
        weights=(1 / sites,) * sites,
        loss=request.loss,
        graph=request.graph,
        budget=request.budget,
        certificate=request.forecast(method, rounds, request.loss, C, rho, _TOL),
        words=_CHOSEN if _own(request) else "The run adds no noise, so it protects no record.",
    )


def _hold_to_budget(found: Plan, request: PlanRequest) -> None:
    """Raise if the user's method adds no noise, ignores the solver's error, or costs too much."""
    certificate, epsilon, delta = found.certificate, min(request.budget.epsilon), request.budget.delta
    if certificate.run.noise == "none":
        raise ParameterError(
            f"`method` must add noise for epsilon = {format_given(epsilon)}; got "
            f"{type(found.method).__name__}, which adds no noise. Try taciturn.PenaltyPerturbation, or "
            "epsilon=float('inf')."
        )
    if certificate.run.idealised and request.real is not False:
        raise ParameterError(
            "`method` must have `output_noise`, which covers the solver's error; got None. Try "
            "output_noise=taciturn.GaussianNoise(1e-3), or give a `random_state` for a simulation."
        )
    cost = certificate.pure_epsilon if delta == 0 else certificate.epsilon
    if not cost <= epsilon:
        raise ParameterError(
            f"`method` must stay within epsilon = {format_given(epsilon)}; {found.rounds} rounds cost "
            f"{format_cost(cost)} at delta = {format_given(delta)}. Add noise, or run fewer rounds."
        )
