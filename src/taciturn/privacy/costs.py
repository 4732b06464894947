"""Facts -> costs: which bound applies to a run's releases, summed over rounds and classes.

The only place that chooses between the bounds of `accounting`. A round that was not charged costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.formatting import format_cost
from ..core.types import Array
from .accounting import bounds, persons, totals
from .accounting.gaussian import compose_mu, gaussian_epsilon, gaussian_mu
from .accounting.masked_sums import Slack, discrete_slack, masked_epsilon
from .accounting.rounding import down, up
from .accounting.widening import penalty_mu
from .collusion import masked_slack, moments_mu
from .facts import Charge, Columns, RunFacts, SiteFacts
from .loss_facts import LossFacts

ACCOUNTANTS = ("pure", "gaussian", "renyi")
_BEYOND = 1e6  # a bend for which no order of the grid is finite
_CERTAIN = 20.0  # below this epsilon a chance of 1e-40 that noise is too long counts for nothing
_SPREAD = 2.0**16  # steps of the grid: wide enough to count whole numbers as rounded normals
_ROUNDED = 1 + 4e-12  # a row passes as unit where its norm, as floats add it up, is at most 1 + 1e-12


class Releases(NamedTuple):
    """The charges of some sites as tables (sites, rounds); where `charged` is False the entries are all 1.

    moments : mu of every release of moments of the rows, (sites, any number); such a round is not `charged`
        as one of the paper's.
    """

    samples: Array
    eta: Array
    scale: Array
    output_scale: Array
    degree: Array
    charged: NDArray[np.bool_]
    moments: Array

    @classmethod
    def of(cls, run: RunFacts, sites: Sequence[SiteFacts], columns: Sequence[Columns]) -> Releases:
        """Tables from the columns of a ledger, as wide as the last round charged."""
        rounds = max((int(c.t[-1]) for c in columns if c.t.size), default=1)
        shape = (len(sites), rounds)
        eta, scale, output, degree = (np.ones(shape) for _ in range(4))
        charged = np.zeros(shape, dtype=bool)
        moments = np.zeros((len(sites), rounds if run.moments else 0))
        for row, c in enumerate(columns):
            for t in c.t[c.t <= run.moments].tolist():
                moments[row, t - 1] = moments_mu(run, t)
            after = c.t > run.moments
            at = row, c.t[after] - 1
            eta[at], scale[at], output[at] = c.eta[after], c.scale[after], c.output_scale[after]
            degree[at], charged[at] = c.degree[after], True
        samples = np.array([[facts.samples] for facts in sites], dtype=np.float64)
        return cls(samples, eta, scale, output, degree, charged, moments)

    @classmethod
    def single(cls, run: RunFacts, site: SiteFacts, charge: Charge) -> Releases:
        """Tables of one entry."""
        return cls.of(run, [site], [Columns.of(site, [charge])]).rounds(slice(charge.t - 1, None))

    def rounds(self, at: slice) -> Releases:
        """The same for some of the rounds."""
        return Releases._make([self.samples, *(table[:, at] for table in self[1:])])

    def by_round(self) -> Releases:
        """Of one site: each round in a row of its own."""
        moments = self.moments.T if self.moments.size else np.zeros((self.eta.shape[1], 0))
        return Releases._make([self.samples, *(table.T for table in self[1:-1]), moments])

    @property
    def spent(self) -> NDArray[np.bool_]:
        """Whether a site released anything, (sites,)."""
        return np.asarray(np.any(self.charged, axis=1) | np.any(self.moments > 0, axis=1))


class SiteCost(NamedTuple):
    """The cost of all charged rounds of one site; inf if there is no finite bound.

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
    """Whether Theorem 3 is about such a run: norm noise in the penalty, |L'| <= 1, ||x|| <= 1, one record.

    It says nothing about moments of the rows.
    """
    inside = not run.moments and run.loss.slope_bound <= 1 and run.data_norm <= 1 and run.unit == "record"
    return run.noise == "norm" and run.method in ("penalty", "dual") and inside


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
    """Pure epsilon of every release, (sites, rounds): infinite with Gaussian noise, or with none.

    Moments of the rows have no pure epsilon, and so no run that releases them.
    """
    if np.any(releases.moments):
        return np.broadcast_to(np.where(releases.spent, np.inf, 0.0)[:, None], releases.charged.shape)
    if run.stated is not None:
        stated = np.inf if run.stated.pure is None else run.stated.pure
        return np.where(releases.charged, bounds.one_vs_rest(stated, run.outputs), 0.0)
    if run.noise != "norm" or run.output_noise == "gaussian":
        return np.where(releases.charged, np.inf, 0.0)
    cost = _pure_update(run, releases)
    if run.output_noise == "norm":
        cost = cost + bounds.primal_pure(_stray(run), releases.output_scale)
    return np.where(releases.charged, bounds.one_vs_rest(cost, run.outputs), 0.0)


def renyi_totals(run: RunFacts, releases: Releases, orders: Array) -> Array:
    """Renyi cost of all rounds, (sites, orders)."""
    if run.noise == "none" or run.masked:
        return np.where(releases.spent[:, None], np.inf, np.zeros(len(orders)))
    if run.stated is not None:
        rounds = np.count_nonzero(releases.charged, axis=1)[:, None]
        each = np.where(rounds > 0, run.stated.renyi_at(orders), 0.0)
        return bounds.one_vs_rest(up(np.maximum(rounds, 1) * each), run.outputs)
    total = _renyi_update(run, releases, orders)
    on = releases.charged
    if run.output_noise is not None:
        moved = np.where(on, _stray(run), 0.0)
        total = total + _renyi_shift(run, run.output_noise, moved, releases.output_scale, orders)
    total = total + up(np.sum(releases.moments**2, axis=1) / 2)[:, None] * orders
    return bounds.one_vs_rest(total, run.outputs)


def _renyi_update(run: RunFacts, releases: Releases, orders: Array) -> Array:
    """Renyi cost of the perturbed update, one class, without the output noise."""
    k, a = _weight(run, releases)
    on, loss = releases.charged, run.loss
    if run.method == "primal":
        S = np.where(on, _primal_move(run, k, a), 0.0)
        return _renyi_shift(run, run.noise, S, releases.scale, orders)
    D = np.where(on, bounds.displacement(k, loss.slope_bound, _reach(run)), 0.0)
    x = np.where(on, bounds.bend(k, a, loss.curvature_bound, _reach(run)), 0.0)
    if run.noise == "gaussian":
        moved, bent = _renyi_gaussian(D, releases.scale, x, loss_shape(run.loss))
        total = totals.renyi_gaussian_total(orders, moved, releases.scale, bent)
        return np.asarray(total + _person_bend(run, bent, orders))
    pure = np.where(on, _pure_update(run, releases), 0.0)
    total = totals.renyi_norm_total(orders, D, releases.scale, run.dimension, x, pure)
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
    """mu of all rounds and classes, (sites,): infinite unless every noise of the run is Gaussian.

    Whole numbers count as rounded normals where they spread over 2^16 steps; `exact_epsilon` adds the rest.
    """
    if run.stated is not None and run.stated.mu is not None:
        return compose_mu(math.sqrt(run.outputs) * np.where(releases.charged, run.stated.mu, 0.0))
    if run.noise != "gaussian" or run.output_noise == "norm":
        return np.where(releases.spent, np.inf, 0.0)
    k, a = _weight(run, releases)
    loss, X, sigma = run.loss, _reach(run), releases.scale
    if run.method == "primal":
        mu = last = up(_primal_move(run, k, a) / sigma)
        spread = sigma
    else:
        D = bounds.displacement(k, loss.slope_bound, X)
        mu = penalty_mu(D, sigma, bounds.bend(k, a, loss.curvature_bound, X), loss_shape(run.loss))
    if run.output_noise == "gaussian":
        spread = releases.output_scale
        last = up(_stray(run) / spread)
        mu = np.concatenate([mu, last], axis=1)
    if run.integers:
        narrow = spread < _SPREAD * float(run.grid or 0.0)
        mu[:, -last.shape[1] :] = np.where(narrow, np.inf, last)
    on = np.tile(releases.charged, mu.shape[1] // releases.charged.shape[1])
    every = np.concatenate([np.where(on, mu, 0.0), releases.moments], axis=1)
    return compose_mu(np.sqrt(run.outputs) * every)


def exact_epsilon(run: RunFacts, mu: Array, delta: float) -> Array:
    """epsilon at delta of a run that is mu-GDP, what whole numbers and floats add included."""
    if not (run.integers or run.moments):
        return gaussian_epsilon(mu, delta)
    return masked_epsilon(mu, usable_delta(run, delta), exact_slack(run))


def exact_mu(run: RunFacts, epsilon: float, delta: float) -> float:
    """A mu that stays within (epsilon, delta), by hardly less than the largest."""
    if not (run.integers or run.moments):
        return float(gaussian_mu(epsilon, delta))
    slack = exact_slack(run)
    left = epsilon - 2 * slack.epsilon
    if not (left > 0 and left < _CERTAIN):
        return 0.0
    return float(down(gaussian_mu(left, usable_delta(run, delta) * math.exp(-slack.epsilon) * (1 - 1e-6))))


def exact_slack(run: RunFacts) -> Slack:
    """By how much all whole numbers of a run differ from rounded normals."""
    none = Slack(0.0, 0.0)
    sums = masked_slack(run, range(1, run.moments + 1), 1) if run.moments else none
    whole = discrete_slack(_SPREAD, run.dimension, run.rounds * run.outputs) if run.integers else none
    if not (run.integers and run.moments):
        return whole if run.integers else sums
    return Slack(float(up(whole.epsilon + sums.epsilon)), whole.failure + sums.failure)


def loss_shape(loss: LossFacts) -> str:
    """How slope and curvature of the loss go together: a key of `widening.NODES`."""
    if loss.name == "logistic" and (loss.slope_bound, loss.curvature_bound) == (1.0, 0.25):
        return "logistic"
    if loss.name == "log-cosh" and loss.slope_bound == 1.0:
        return "log-cosh"
    return "one-sided" if loss.name == "smooth-hinge" else "any"


def _renyi_shift(run: RunFacts, noise: str, moved: Array, scale: Array, orders: Array) -> Array:
    """Renyi cost of noise on a vector that one record moves by at most `moved`.

    Discrete Gaussian noise costs what continuous noise does, for moves by whole steps of the grid [CKS20];
    of discrete Laplace noise only the pure bound is used, as if the move bent beyond every order.
    """
    bend = np.full_like(moved, _BEYOND if run.integers and noise == "norm" else 0.0)
    if noise == "gaussian":
        return totals.renyi_gaussian_total(orders, moved, scale, bend)
    return totals.renyi_norm_total(
        orders, moved, scale, run.dimension, bend, bounds.primal_pure(moved, scale)
    )


def _stray(run: RunFacts) -> float:
    """2 gamma, and sqrt(d) steps of the grid where the release was rounded before its last noise."""
    return float(up(2 * run.tol + _rounding(run))) if run.integers else 2 * run.tol


def _primal_move(run: RunFacts, k: Array, a: Array) -> Array:
    """S, and the rounding before the noise."""
    S = bounds.primal_sensitivity(k, a, run.loss.slope_bound, run.tol, _reach(run))
    return up(S + _rounding(run)) if run.integers else S


def _rounding(run: RunFacts) -> float:
    """g sqrt(d): two vectors that are rounded to the grid move apart by no more."""
    return float(run.grid or 0.0) * math.sqrt(run.dimension)


def float_delta(run: RunFacts) -> float:
    """The chance, over a whole run of whole numbers, of what sampling in floats leaves: part of delta.

    Except with probability 1e-15, each number of the inner noise is the rounding of a real one. Except with
    probability 1e-18, each of its vectors is no longer than `tol` assumes.
    """
    if not run.integers:
        return 0.0
    return run.outputs * run.rounds * (1e-15 * run.dimension + 1e-18) * (1 + 1e-9)


def usable_delta(run: RunFacts, delta: float) -> float:
    """The part of `delta` that remains for the bounds after floating-point failures."""
    left = checks.probability("delta", delta) - float_delta(run)
    if left < delta / 2:
        raise ParameterError(
            f"`delta` must be above {format_cost(2.1 * float_delta(run))}: drawing noise in floats fails "
            f"with probability {format_cost(float_delta(run))}; got {delta:g}."
        )
    return left


def _pure_update(run: RunFacts, releases: Releases) -> Array:
    """Pure epsilon of the perturbed update with norm noise, one class, without the output noise."""
    k, a = _weight(run, releases)
    loss, alpha, X = run.loss, releases.scale, _reach(run)
    if run.method == "primal":
        return bounds.primal_pure(_primal_move(run, k, a), alpha)

    def cost(weight: Array) -> Array:
        if loss_shape(loss) == "logistic":
            return bounds.pure_logistic(weight, a, alpha, X)
        if loss_shape(loss) == "log-cosh":
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
