"""Whitened coordinates for penalty perturbation: whether a plan may use them, and whitened proxy rows.

The first rounds of such a run release noisy second moments of the rows. From them, all sites compute
coordinates in which the columns of the rows are roughly uncorrelated. Proxy rows are public rows in place of
the private rows. On them, the planner compares shapes: plans without the size of their noise.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..core.errors import ParameterError
from ..methods.programs.coordinates import Strength
from ..methods.sums.program import SumTables
from ..methods.whitened_penalty import ROUNDS, SHARE, moments_of_rows
from ..objective import LocalObjective, Logistic
from ..privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from ..rng import SeededStreams
from .calibration import EpsilonBudget
from .proxy import Proxy
from .request import PlanRequest

_GRID = 2.0**-30  # moments are rounded to this grid, which is far finer than their noise


def whole_strength(request: PlanRequest) -> Strength:
    """The signal strength of the whole run, if the sites trust no other site."""
    mu = float(gaussian_mu(min(request.budget.epsilon), request.budget.delta))
    return Strength(sum(request.samples), mu, float(request.graph.n))


def raw_reason(request: PlanRequest) -> str:
    """Why penalty perturbation cannot use whitened coordinates for this request; empty if it can."""
    if request.budget.delta == 0:
        return "delta is 0, but releases of moments of the rows need a positive delta"
    if request.outputs > 1:
        return "every class would have to release separate moments"
    if request.data_norm not in (None, 1.0):
        return "rows must have norm at most 1"
    if request.additive:
        return "whitening shortens long rows, so the model would not be additive"
    if request.graph.n < 2:
        return "there is one site"
    if (request.rounds or request.max_rounds or ROUNDS + 1) <= ROUNDS:
        return f"{ROUNDS} rounds release moments of the rows, and no round is left for training"
    return ""


def may_whiten(request: PlanRequest) -> bool:
    """Whether the plan may use whitened coordinates; raises if they are requested but impossible.

    By default a plan may use them only if `choose` is True, the noise is not "norm", and trial runs compare
    the shapes (effort "full"): on whitened rows the closed-form forecast often prefers a poor shape.
    """
    reason = raw_reason(request)
    if request.whiten and reason:
        raise ParameterError(f"`whiten` must be None or False for this run; got True: {reason}.")
    if request.whiten is not None or reason or not request.choose:
        return bool(request.whiten)
    usual = request.noise != "norm" and request.effort != "quick"
    return usual and whole_strength(request).whitening_pays(request.dimension)


def planned_moments(request: PlanRequest) -> tuple[float, SumTables]:
    """(mu, tables): the privacy cost mu of releasing moments of the rows, and the sums that release them."""
    mu = math.sqrt(SHARE) * whole_strength(request).mu
    return mu, moments_of_rows(request.network(request.loss, request.C or 1.0, 1.0), mu)


def left_budget(budget: EpsilonBudget, mu: float) -> EpsilonBudget:
    """An estimate, used only to choose a shape, of the budget that is left after moments with the cost mu."""
    whole = gaussian_mu(budget.epsilon, budget.delta)
    left = gaussian_epsilon(np.sqrt(np.maximum(whole**2 - mu**2, 0.0)), budget.delta)
    return EpsilonBudget(tuple(np.maximum(left, 1e-12).tolist()), budget.delta)


def whitened_proxy(proxy: Proxy, tables: SumTables, seed: int) -> Proxy:
    """The proxy rows in whitened coordinates.

    The coordinates are learnt from moments of these rows, with as much noise as in the run. The moments are
    rounded first: their last bits depend on the BLAS library, and could change the
    coordinates a lot.
    """
    program = tables.program
    rows = LocalObjective(
        proxy.X, np.sign(proxy.y) + (proxy.y == 0), loss=Logistic(), C=1.0, regularization=1.0, sites=1
    )
    share, state = program.private_half(rows, len(proxy.y)), program.start(1)
    generator = SeededStreams(seed).generator(repeat=0, site=0, purpose="proxy", t=3)
    for noise in program.noise:
        moments = np.rint(share.moments(state.coordinates[0]) / _GRID) * _GRID
        state = program.advance(state, (moments + noise * generator.standard_normal(len(moments)))[None])
    at = state.coordinates[0]
    V = at.W / at.q
    X = proxy.X @ V
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0) * (1 + 1e-12)
    return replace(proxy, X=X, truth=np.linalg.solve(V, proxy.truth))
