"""Facts -> costs: which bound applies to a run's releases, summed over rounds and classes.

The only place that chooses between the bounds of `accounting`. A round that was not charged costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Array
from .accounting import bounds, persons
from .accounting.gaussian import compose_mu
from .accounting.rounding import up
from .accounting.widening import penalty_mu
from .facts import Charge, Columns, LossFacts, RunFacts, SiteFacts

ACCOUNTANTS = ("pure", "gaussian", "renyi")
_ROUNDED = 1 + 4e-12  # a row passes as unit where its norm, as floats add it up, is at most 1 + 1e-12


@dataclass(frozen=True)
class Releases:
    """The charges of some sites as tables (sites, rounds); where `charged` is False the entries are all 1."""

    samples: Array
    eta: Array
    scale: Array
    output_scale: Array
    degree: Array
    charged: NDArray[np.bool_]

    @classmethod
    def of(cls, sites: Sequence[SiteFacts], columns: Sequence[Columns]) -> Releases:
        """Tables from the columns of a ledger, as wide as the last round charged."""
        rounds = max((int(c.t[-1]) for c in columns if c.t.size), default=1)
        shape = (len(sites), rounds)
        eta, scale, output, degree = (np.ones(shape) for _ in range(4))
        charged = np.zeros(shape, dtype=bool)
        for row, c in enumerate(columns):
            at = row, c.t - 1
            eta[at], scale[at], output[at], degree[at], charged[at] = (
                c.eta,
                c.scale,
                c.output_scale,
                c.degree,
                True,
            )
        samples = np.array([[facts.samples] for facts in sites], dtype=np.float64)
        return cls(samples, eta, scale, output, degree, charged)

    @classmethod
    def single(cls, site: SiteFacts, charge: Charge) -> Releases:
        """Tables of one entry."""
        return cls(
            samples=np.full((1, 1), float(site.samples)),
            eta=np.full((1, 1), charge.eta),
            scale=np.full((1, 1), charge.scale),
            output_scale=np.full((1, 1), charge.output_scale or 1.0),
            degree=np.full((1, 1), float(charge.degree or site.degree)),
            charged=np.ones((1, 1), dtype=bool),
        )


class SiteCost(NamedTuple):
    """What all charged rounds of one site cost; inf where there is no finite bound.

    `accountant` says how `epsilon` was found: "pure", "renyi" (at `order`) or "gaussian" (from mu, exactly);
    None where nothing is finite. `paper_condition` says whether the paper's theorem applies, and so
    `paper_epsilon`. `mu` is that of masked sums, against the colluders that the facts name.
    """

    paper_epsilon: float
    paper_condition: bool
    pure_epsilon: float
    epsilon: float
    order: float | None
    accountant: str | None = None
    mu: float | None = None


def paper_speaks(run: RunFacts) -> bool:
    """Whether Theorem 3 is about such a run: norm noise in the penalty, |L'| <= 1, ||x|| <= 1, one record."""
    inside = run.loss.slope_bound <= 1 and run.data_norm <= 1 and run.unit == "record"
    return run.noise == "norm" and run.mechanism in ("penalty", "dual") and inside


def paper_costs(run: RunFacts, releases: Releases) -> Array:
    """K C (1.4 c1 + alpha) / (eta V B), (sites, rounds); infinite where Theorem 3 says nothing of the run."""
    if not paper_speaks(run):
        return np.where(releases.charged, np.inf, 0.0)
    cost = bounds.paper_epsilon(
        run.C, releases.eta, releases.degree, releases.samples, run.loss.curvature_bound, releases.scale
    )
    return np.where(releases.charged, bounds.one_vs_rest(cost, run.outputs), 0.0)


def paper_holds(run: RunFacts, site: SiteFacts, columns: Columns) -> bool:
    """2 c1 < (B/C)(rho/N + 2 theta V) and theta <= eta in every charged round: what Theorem 3 needs."""
    if not paper_speaks(run):
        return False
    theta = np.array(site.dual_step)[np.minimum(columns.t, len(site.dual_step)) - 1]
    room = bounds.paper_condition(
        run.C, site.samples, columns.degree, run.strong, theta, run.loss.curvature_bound
    )
    return bool(np.all(room & (theta <= columns.eta)))


def pure_costs(run: RunFacts, releases: Releases) -> Array:
    """Pure epsilon of every release, (sites, rounds): infinite with Gaussian noise, or with none."""
    if run.noise != "norm" or run.output_noise == "gaussian":
        return np.where(releases.charged, np.inf, 0.0)
    cost = _pure_update(run, releases)
    if run.output_noise == "norm":
        cost = cost + bounds.output_pure(run.tol, releases.output_scale)
    return np.where(releases.charged, bounds.one_vs_rest(cost, run.outputs), 0.0)


def renyi_totals(run: RunFacts, releases: Releases, orders: Array) -> Array:
    """Renyi cost of all rounds, (sites, orders)."""
    if run.noise == "none" or run.masked:
        spent = np.any(releases.charged, axis=1, keepdims=True)
        return np.where(spent, np.inf, np.zeros(len(orders)))
    total = _renyi_update(run, releases, orders)
    on = releases.charged
    if run.output_noise is not None:
        moved = np.where(on, 2 * run.tol, 0.0)
        total = total + _renyi_shift(run.output_noise, moved, releases.output_scale, run.dimension, orders)
    return bounds.one_vs_rest(total, run.outputs)


def _renyi_update(run: RunFacts, releases: Releases, orders: Array) -> Array:
    """Renyi cost of the perturbed update, one class, without the output noise."""
    k, a = _weight(run, releases)
    on, loss = releases.charged, run.loss
    if run.mechanism == "primal":
        S = bounds.primal_sensitivity(k, a, loss.slope_bound, run.tol, _reach(run))
        return _renyi_shift(run.noise, np.where(on, S, 0.0), releases.scale, run.dimension, orders)
    D = np.where(on, bounds.displacement(k, loss.slope_bound, _reach(run)), 0.0)
    x = np.where(on, bounds.bend(k, a, loss.curvature_bound, _reach(run)), 0.0)
    if run.noise == "gaussian":
        moved, bent = _renyi_gaussian(D, releases.scale, x, loss_shape(run.loss))
        total = bounds.renyi_gaussian_total(orders, moved, releases.scale, bent)
        return np.asarray(total + _person_bend(run, bent, orders))
    pure = np.where(on, _pure_update(run, releases), 0.0)
    total = bounds.renyi_norm_total(orders, D, releases.scale, run.dimension, x, pure)
    return np.asarray(total + _person_bend(run, x, orders))


def _person_bend(run: RunFacts, x: Array, orders: Array) -> Array:
    """What the bend of several rows adds to that of one, all rounds at the site's worst, (sites, orders)."""
    if run.unit == "record":
        return np.zeros((len(x), len(orders)))
    rounds = np.count_nonzero(x, axis=1)[:, None]
    return np.asarray(rounds * persons.person_excess(orders[None, :], np.max(x, axis=1)[:, None]))


def _renyi_gaussian(D: Array, sigma: Array, x: Array, shape: str) -> tuple[Array, Array]:
    """D and x of each round as Renyi divergence sees them: a mu-GDP round costs q mu^2 / 2 and bends nothing.

    That is the smaller cost at every order where mu^2 <= (D / sigma)^2 + 2 x^2 / (1 + x).
    """
    mu = penalty_mu(D, sigma, x, shape)
    better = mu**2 <= (D / sigma) ** 2 + 2 * x**2 / (1 + x)
    return np.where(better, up(mu * sigma), D), np.where(better, 0.0, x)


def gaussian_totals(run: RunFacts, releases: Releases) -> Array:
    """mu of all rounds and classes, (sites,): infinite unless every noise of the run is Gaussian."""
    if run.noise != "gaussian" or run.output_noise == "norm":
        return np.where(np.any(releases.charged, axis=1), np.inf, 0.0)
    k, a = _weight(run, releases)
    loss, X, sigma = run.loss, _reach(run), releases.scale
    if run.mechanism == "primal":
        mu = up(bounds.primal_sensitivity(k, a, loss.slope_bound, run.tol, X) / sigma)
    else:
        D = bounds.displacement(k, loss.slope_bound, X)
        mu = penalty_mu(D, sigma, bounds.bend(k, a, loss.curvature_bound, X), loss_shape(run.loss))
    if run.output_noise == "gaussian":
        mu = np.concatenate([mu, up(2 * run.tol / releases.output_scale)], axis=1)
    on = np.tile(releases.charged, mu.shape[1] // releases.charged.shape[1])
    return compose_mu(np.sqrt(run.outputs) * np.where(on, mu, 0.0))


def loss_shape(loss: LossFacts) -> str:
    """How slope and curvature of the loss go together: a key of `widening.NODES`."""
    if loss.name == "logistic" and (loss.slope_bound, loss.curvature_bound) == (1.0, 0.25):
        return "logistic"
    if loss.name == "log-cosh" and loss.slope_bound == 1.0:
        return "log-cosh"
    return "one-sided" if loss.name == "smooth-hinge" else "any"


def _renyi_shift(noise: str, moved: Array, scale: Array, d: int, orders: Array) -> Array:
    """Renyi cost of noise on a vector that one record moves by at most `moved`."""
    still = np.zeros_like(moved)
    if noise == "gaussian":
        return bounds.renyi_gaussian_total(orders, moved, scale, still)
    return bounds.renyi_norm_total(orders, moved, scale, d, still, bounds.primal_pure(moved, scale))


def _pure_update(run: RunFacts, releases: Releases) -> Array:
    """Pure epsilon of the perturbed update with norm noise, one class, without the output noise."""
    k, a = _weight(run, releases)
    loss, alpha, X = run.loss, releases.scale, _reach(run)
    if run.mechanism == "primal":
        return bounds.primal_pure(bounds.primal_sensitivity(k, a, loss.slope_bound, run.tol, X), alpha)

    def cost(weight: Array) -> Array:
        if loss.name == "logistic" and (loss.slope_bound, loss.curvature_bound) == (1.0, 0.25):
            return bounds.pure_logistic(weight, a, alpha, X)
        if loss.name == "log-cosh" and loss.slope_bound == 1.0:
            return bounds.pure_log_cosh(weight, a, alpha, loss.curvature_bound, X)
        return bounds.pure_norm(weight, a, alpha, loss.slope_bound, loss.curvature_bound, X)

    if run.unit == "person":
        return persons.person_pure(cost, k, persons.spread(run.rows_per_person, run.dimension))
    return cost(k)


def _weight(run: RunFacts, releases: Releases) -> tuple[Array, Array]:
    """k and a of every release."""
    k = bounds.sample_weight(run.C, releases.eta, releases.degree, releases.samples)
    return k, bounds.least_eigenvalue(run.strong, releases.eta, releases.degree)


def _reach(run: RunFacts) -> float:
    """X: no row is longer than this, those included that only rounding makes longer than the public bound."""
    return run.data_norm * _ROUNDED
