"""The planner of masked descent, and the choice of a method for sites that trust no other site.

Masked descent is gradient descent with sums over all sites; only the noisy total of each sum becomes public.
The planner needs no search, because masked descent adapts its steps to the noisy sums during the run.
Whitened descent is masked descent in coordinates that the first rounds learn from noisy second moments of the
rows.

If no site trusts another site, the planner chooses between whitened descent and penalty perturbation (the
paper's method). It chooses the paper's method if the forecast excess loss of this method is clearly lower.
The excess loss is the loss minus the smallest possible loss.

The forecasts are only good enough for this comparison. They use the curvature at the solution. So if the
excess loss is a large part of the loss of a constant prediction, it can be several times the forecast. For
the paper's method on whitened rows, the forecast also ignores that long rows are shortened.

Both forecasts use proxy rows: public rows in place of the private rows. On the proxy rows, the planner
computes the eigenvalues h of the Hessian and the squared components f^2 of the solution along the
eigenvectors. Along an eigenvector, whitened descent has the excess loss

    h f^2 V / (h^2 f^2 + V) / 2,    V = (l + nu) v,   l = h / b,
    v = 1.8 (2 q / (n mu))^2 N / (1 - shares),   q^2 = kappa^2 K,   K = sum l / (l + nu)

where l is the variance of the rows along the eigenvector, b is `_BEND`, and nu is half of the largest
eigenvalue of the noise in the first release of moments. There are n units (records or persons) at N sites.
The whole run is mu-GDP (mu-Gaussian differentially private), and the moments spend the fraction `shares` of
mu^2. The norm of a whitened row is at most q; `Strength.kappa` sets kappa.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ..core.formatting import format_cost
from ..core.types import Array
from ..methods.programs.coordinates import Strength
from ..methods.programs.descent_losses import TrainingLoss
from ..methods.programs.masked_descent import MaskedDescent, PublicFacts
from ..methods.programs.moments import noise_edge
from ..objective.losses import Logistic
from ..objective.softmax import Softmax
from ..privacy.accounting.gaussian import gaussian_mu
from ..privacy.certificate.certificate import Certificate
from .penalty import forecast_penalty, plan_penalty, public_spectrum
from .request import Plan, PlanRequest

REGULARIZATION = 1e-6  # rho / (C N): descent stops early, so the model needs very little regularisation
_UNEVEN = 1.8  # T sum t^4 / (sum t^2)^2: the factor by which weights t^2 increase the variance of a mean
_BEND = 0.15  # the approximate mean of the derivative of the clipped slope of the loss
_CLEARLY = 0.4  # 'clearly lower' means less than _CLEARLY times: a forecast may be wrong by a factor of 2.5
_WHITENED = 1e-12  # rho / (C N) in whitened coordinates, where models may have a large norm


def plan_masked(request: PlanRequest, reason: str = "") -> Plan:
    """A plan of masked descent with one budget for all sites; bounds and noise are fixed before the run.

    reason : a sentence on why masked descent was chosen, if another method was possible.
    """
    given: Any = request.method  # a MaskedDescent if the user gave one; else None or a name
    method: MaskedDescent = _method(request) if given is None or isinstance(given, str) else given
    sites, loss, C = request.graph.n, _loss(request), request.C or 1.0
    facts = PublicFacts(sites, sum(request.samples), max(request.samples), request.dimension, loss, 0.0)
    usual = method.usual_rounds(facts)
    rounds = request.rounds or min(usual, request.max_rounds or usual)
    whitened = method.whitens(facts, rounds)
    least = (_WHITENED if whitened else REGULARIZATION) * sites * C
    rho = least if request.regularization is None else request.regularization
    certificate = request.forecast(method, rounds, loss, C, rho, tol=None)
    return Plan(
        method=method,
        rounds=rounds,
        C=C,
        regularization=rho,
        tol=None,
        weights=(1.0,) + (0.0,) * (sites - 1),  # all sites hold the same model
        loss=loss,
        graph=request.graph,
        budget=request.budget,
        certificate=certificate,
        together=True,
        words=_words(certificate, whitened, reason),
        for_estimator={"colluding": method.colluding},
        for_job={"epsilon": method.epsilon, "colluding": method.colluding},
        details={"epsilon_against": [certificate.epsilon_against(c) for c in range(sites)]},
        shown=_shown(certificate),
    )


def _method(request: PlanRequest) -> MaskedDescent:
    """Masked descent with the noise for the requested budget."""
    epsilon, sites, colluding = request.budget.epsilon, request.graph.n, request.colluding
    if colluding is not None and colluding > 0 and sites == 1:
        raise ParameterError(
            f"`colluding` = {colluding} needs {colluding + 2} or more sites, but all rows belong to one site."
        )
    if colluding is not None and colluding >= max(sites - 1, 1):
        raise ParameterError(
            f"`colluding` must be from 0 to {sites - 2}, or None; got {colluding}. A number assumes that at "
            f"least one of the {sites - 1} other sites is honest; None assumes that all of them collude."
        )
    if request.budget.delta == 0:
        raise ParameterError(
            "`delta` must be above 0 for masked sums: their noise never gives pure epsilon-DP; got 0."
        )
    if len(set(epsilon)) > 1:
        raise ParameterError("`epsilon` must be one number with `colluding`: all sites add the same noise.")
    delta, constant = request.budget.delta, request.constant
    return MaskedDescent(
        epsilon=epsilon[0], delta=delta, colluding=colluding, constant=constant, whiten=request.whiten
    )


def _loss(request: PlanRequest) -> TrainingLoss:
    """The loss to train: softmax for several classes, so that one release serves all classes."""
    if request.outputs == 1:
        return request.loss
    if not isinstance(request.loss, Logistic):
        raise ParameterError(
            f"`loss` must be logistic if there are several classes and `colluding` is given; got "
            f"{request.loss.name!r}. PrivateLogisticRegression trains all classes at once (softmax)."
        )
    return Softmax(request.outputs)


def _words(certificate: Certificate, whitened: bool, reason: str) -> str:
    sites, colluding = certificate.run.sites, certificate.run.colluding
    where = "in whitened coordinates" if whitened else "in the original coordinates"
    if colluding is None:
        return (
            f"Masked descent {where}. Each site's noise alone protects its records, even if all other sites "
            f"collude. {reason}"
        ).strip()
    wide = math.sqrt(sites / (sites - colluding))
    return (
        f"Masked descent {where}. The noise of the sums is {wide:.3g} times the noise that a trusted centre "
        f"would add; with separate noise at each site, it would be {math.sqrt(sites):.3g} times as large. "
        f"Epsilon holds if at most "
        f"{colluding} of the other {sites - 1} sites collude; if all of them collude, epsilon is "
        f"{format_cost(certificate.epsilon_against(None))}."
    )


def _shown(certificate: Certificate) -> dict[str, str]:
    sites, colluding = certificate.run.sites, certificate.run.colluding
    chosen = sorted({0, colluding or 0, sites // 3, sites - 1})
    return {f"epsilon if {c} sites collude": format_cost(certificate.epsilon_against(c)) for c in chosen}


def plan_nobody(request: PlanRequest) -> Plan:
    """The plan for sites that trust no other site: whitened descent, or else penalty perturbation."""
    reason = penalty_reason(request)
    if reason:
        return _told(plan_penalty(request), f"Penalty perturbation: {reason}.")
    spectrum = public_spectrum(request)
    paper, ours = forecast_penalty(request), forecast_whitened(request, spectrum)
    both = f"{ours:.2g} for whitened descent and {paper:.2g} for the paper's method (both are often too low)"
    if paper < _CLEARLY * ours:
        return _told(plan_penalty(request), f"Penalty perturbation: the forecast excess loss is {both}.")
    reason = f"The forecast excess loss is {both}. For the paper's method, set method='penalty'."
    return _told(plan_masked(request, reason), reason)


def _told(plan: Plan, reason: str) -> Plan:
    """The plan with a text on why its method was chosen."""
    details, shown = {**plan.details, "choice": reason}, {**plan.shown, "choice": reason}
    return replace(plan, details=details, shown=shown)


def penalty_reason(request: PlanRequest) -> str:
    """Why only penalty perturbation fits the request; empty if whitened descent is also possible."""
    budget = request.budget
    asked = ("noise", "effort", "proxy", "seed", "baseline", "output_noise", "data_norm")
    for name in asked:
        if getattr(request, name) not in (None, False):
            return f"`{name}` is a setting of penalty perturbation"
    if budget.delta == 0:
        return "a pure guarantee (delta = 0) was requested"
    if len(set(budget.epsilon)) > 1:
        return "the sites have separate budgets"
    if type(request.loss) is not Logistic or request.outputs > 1:
        return "whitened descent needs the logistic loss and two classes"
    if request.graph.n < 2:
        return "there is one site"
    if request.whiten is False:
        return "`whiten` is False"
    if not _strength(request).whitening_pays(request.dimension):
        return "there are too few rows to learn better coordinates"
    return ""


def forecast_whitened(request: PlanRequest, spectrum: tuple[Array, Array]) -> float:
    """The forecast excess loss of whitened descent if each site's own noise protects its records."""
    h, signal = spectrum
    strength, d = _strength(request), request.dimension
    shares = strength.shares(d)
    spread = math.sqrt(2.0 * strength.noises / shares[0]) / (strength.units * strength.mu)
    nu = 0.5 * noise_edge(d, spread)
    levels = h / _BEND
    K = max(1.0, float(np.sum(levels / (levels + nu))))
    q = strength.kappa(K) * math.sqrt(K)
    whole = 2.0 * q / (strength.units * strength.mu)
    variance = _UNEVEN * whole * whole * strength.noises / (1.0 - sum(shares))
    V = (levels + nu) * variance
    return float(0.5 * np.sum(h * signal * V / (h * h * signal + V)))


def _strength(request: PlanRequest) -> Strength:
    mu = float(gaussian_mu(request.budget.epsilon[0], request.budget.delta))
    return Strength(sum(request.samples), mu, float(request.graph.n))
