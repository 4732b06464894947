"""The privacy cost of a run, computed from its facts: the costs of the releases of all rounds and classes.

A charge records one release of one site; a round without a charge costs nothing. This module chooses the
bounds in `accounting` that apply to each release. The bound for masked sums is in `collusion`. In a round of
the paper's method [ZKL18], a site adds its main noise inside the problem that it solves, or to the solved
vector. Output noise is additional noise on the solved vector. Some runs first release moments: noisy means of
x x' over the rows x.
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
_BEYOND = 1e6  # a value of x (see `bounds.bend`) that makes the bound infinite at every Renyi order used
# below this epsilon, e^epsilon 1e-40 is negligible; 1e-40 is the chance of noise that `Slack` does not cover
_CERTAIN = 20.0
_SPREAD = 2.0**16  # in grid steps: integer noise with at least this std is treated as rounded normal noise
_ROUNDED = 1 + 4e-12  # a margin: a row passes the check ||x|| <= 1 if its computed norm is at most 1 + 1e-12


class Releases(NamedTuple):
    """The charges of some sites as tables of shape (sites, rounds); `samples` has shape (sites, 1).

    eta, scale, output_scale, degree : the numbers of `Charge`; 1 where `charged` is False.
    moments : mu of every release of moments of the rows; of shape (sites, 0) if the run releases no moments.
        `charged` is False in a round that releases moments, because the paper's bounds do not apply to it.
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
        """The tables for the columns of a ledger, with one entry per round up to the last charged round."""
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
        """The tables for one charge of one site, each of shape (1, 1)."""
        return cls.of(run, [site], [Columns.of(site, [charge])]).rounds(slice(charge.t - 1, None))

    def rounds(self, at: slice) -> Releases:
        return Releases._make([self.samples, *(table[:, at] for table in self[1:])])

    def by_round(self) -> Releases:
        """The tables of one site, with each round in a row of its own."""
        moments = self.moments.T if self.moments.size else np.zeros((self.eta.shape[1], 0))
        return Releases._make([self.samples, *(table.T for table in self[1:-1]), moments])

    @property
    def spent(self) -> NDArray[np.bool_]:
        """For each site, whether it released anything."""
        return np.asarray(np.any(self.charged, axis=1) | np.any(self.moments > 0, axis=1))


class SiteCost(NamedTuple):
    """The cost of some charged or planned rounds of one site. An epsilon is inf if no finite bound is known.

    `accountant` names the bound that gave `epsilon`: "pure", "renyi" (at `order`) or "gaussian" (exact, from
    mu); None if no bound is finite. `paper_condition` says whether the paper's theorem applies; only then is
    `paper_epsilon` a guarantee. `mu` is the mu of masked sums if `run.colluding` sites collude; None for any
    other method.
    """

    paper_epsilon: float
    paper_condition: bool
    pure_epsilon: float
    epsilon: float
    order: float | None
    accountant: str | None = None
    mu: float | None = None


def paper_speaks(run: RunFacts) -> bool:
    """Whether Theorem 3 of the paper covers this kind of run.

    The theorem needs norm noise inside a site's problem, |L'| <= 1, ||x|| <= 1, unit "record", and a run that
    does not release moments of the rows.
    """
    inside = not run.moments and run.loss.slope_bound <= 1 and run.data_norm <= 1 and run.unit == "record"
    return run.noise == "norm" and run.mechanism.inside and inside


def paper_costs(run: RunFacts, releases: Releases) -> Array:
    """K C (1.4 c1 + alpha) / (eta V B) of each site and round; infinite if Theorem 3 does not apply."""
    if not paper_speaks(run):
        return np.where(releases.charged, np.inf, 0.0)
    cost = bounds.paper_epsilon(
        run.C, releases.eta, releases.degree, releases.samples, run.loss.curvature_bound, releases.scale
    )
    return np.where(releases.charged, bounds.one_vs_rest(cost, run.outputs), 0.0)


def paper_holds(run: RunFacts, site: SiteFacts, columns: Columns) -> bool:
    """Whether the conditions of Theorem 3, 2 c1 < (B/C)(rho/N + 2 theta V) and theta <= eta, hold in every
    charged round."""
    if not paper_speaks(run):
        return False
    theta = np.array(site.dual_step)[np.minimum(columns.t, len(site.dual_step)) - 1]
    room = bounds.paper_condition(
        run.C, site.samples, columns.degree, run.strong, theta, run.loss.curvature_bound
    )
    return bool(np.all(room & (theta <= columns.eta)))


def pure_costs(run: RunFacts, releases: Releases) -> Array:
    """Pure epsilon of each site and round: infinite with Gaussian noise, or without noise.

    If a run releases moments of the rows, all entries of a site that released anything are infinite, because
    the noise on moments is Gaussian.
    """
    if np.any(releases.moments):
        return np.broadcast_to(np.where(releases.spent, np.inf, 0.0)[:, None], releases.charged.shape)
    if run.stated is not None:
        stated = np.inf if run.stated.pure is None else run.stated.pure
        return np.where(releases.charged, bounds.one_vs_rest(stated, run.outputs), 0.0)
    if run.noise != "norm" or run.output_noise == "gaussian":
        return np.where(releases.charged, np.inf, 0.0)
    costs = [_pure_update(run, releases)] if run.mechanism.inside else []
    costs += [bounds.primal_pure(moved, scale) for _, moved, scale in _output_noises(run, releases)]
    return np.where(releases.charged, bounds.one_vs_rest(sum(costs[1:], costs[0]), run.outputs), 0.0)


def renyi_totals(run: RunFacts, releases: Releases, orders: Array) -> Array:
    """Renyi cost of all charged rounds together, (sites, orders)."""
    if run.stated is not None:
        rounds = np.count_nonzero(releases.charged, axis=1)[:, None]
        each = np.where(rounds > 0, run.stated.renyi_at(orders), 0.0)
        return bounds.one_vs_rest(up(np.maximum(rounds, 1) * each), run.outputs)
    if run.noise not in ("norm", "gaussian"):
        return np.where(releases.spent[:, None], np.inf, np.zeros(len(orders)))
    costs = [_renyi_update(run, releases, orders)] if run.mechanism.inside else []
    for noise, moved, scale in _output_noises(run, releases):
        costs.append(_renyi_shift(run, noise, np.where(releases.charged, moved, 0.0), scale, orders))
    total = sum(costs[1:], costs[0])
    total = total + up(np.sum(releases.moments**2, axis=1) / 2)[:, None] * orders
    return bounds.one_vs_rest(total, run.outputs)


def _renyi_update(run: RunFacts, releases: Releases, orders: Array) -> Array:
    """Renyi cost of the noise inside the problem, for one class and all rounds; without output noise."""
    k, a = _weight(run, releases)
    on, loss = releases.charged, run.loss
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
    """How much more the change of the Jacobian costs for a person with several rows than for one row.

    The result has shape (sites, orders). The largest cost of any round is counted for every round, so the
    result is an upper bound.
    """
    if run.unit == "record":
        return np.zeros((len(x), len(orders)))
    rounds = np.count_nonzero(x, axis=1)[:, None]
    return np.asarray(rounds * persons.person_excess(orders[None, :], np.max(x, axis=1)[:, None]))


def _renyi_gaussian(D: Array, sigma: Array, x: Array, shape: str) -> tuple[Array, Array]:
    """D and x of each round, replaced in the rounds in which mu-GDP gives a smaller Renyi bound.

    A mu-GDP round costs q mu^2 / 2 at order q. A round with D = mu sigma and x = 0 has the same cost. This
    cost is at most the general Renyi bound, at every order, if mu^2 <= (D / sigma)^2 + 2 x^2 / (1 + x).
    """
    mu = penalty_mu(D, sigma, x, shape)
    better = mu**2 <= (D / sigma) ** 2 + 2 * x**2 / (1 + x)
    return np.where(better, up(mu * sigma), D), np.where(better, 0.0, x)


def gaussian_totals(run: RunFacts, releases: Releases) -> Array:
    """mu (see `accounting/gaussian.py`) of all rounds and classes together, (sites,).

    mu is infinite unless all noise of the run is Gaussian, or the author of the method states mu. Integer
    noise with a std of at least 2^16 grid steps counts as rounded normal noise; `exact_epsilon` adds the cost
    of the difference. Integer noise with a smaller std makes mu infinite.
    """
    if run.stated is not None and run.stated.mu is not None:
        return compose_mu(math.sqrt(run.outputs) * np.where(releases.charged, run.stated.mu, 0.0))
    if run.noise != "gaussian" or run.output_noise == "norm":
        return np.where(releases.spent, np.inf, 0.0)
    mus = []
    if run.mechanism.inside:
        (k, a), loss, X = _weight(run, releases), run.loss, _reach(run)
        D, x = bounds.displacement(k, loss.slope_bound, X), bounds.bend(k, a, loss.curvature_bound, X)
        mus.append(penalty_mu(D, releases.scale, x, loss_shape(loss)))
    for _, moved, scale in _output_noises(run, releases):
        narrow = run.integers and scale < _SPREAD * float(run.grid or 0.0)
        mus.append(np.where(narrow, np.inf, up(moved / scale)))
    every = np.concatenate([*(np.where(releases.charged, mu, 0.0) for mu in mus), releases.moments], axis=1)
    return compose_mu(np.sqrt(run.outputs) * every)


def _output_noises(run: RunFacts, releases: Releases) -> list[tuple[str, Array | float, Array]]:
    """For each noise that is added to a solved vector: (kind, sensitivity of the vector, scale)."""
    if not run.mechanism.inside:
        return [(run.noise, _primal_move(run, *_weight(run, releases)), releases.scale)]
    return [] if run.output_noise is None else [(run.output_noise, _stray(run), releases.output_scale)]


def exact_epsilon(run: RunFacts, mu: Array, delta: float) -> Array:
    """epsilon at delta of a run that is mu-GDP, including the cost of integer noise and of float errors."""
    if not (run.integers or run.moments):
        return gaussian_epsilon(mu, delta)
    return masked_epsilon(mu, usable_delta(run, delta), exact_slack(run))


def exact_mu(run: RunFacts, epsilon: float, delta: float) -> float:
    """A mu whose cost is at most (epsilon, delta): slightly below the largest such mu.

    With integer noise or moments, let e be epsilon minus twice the additional cost of integer noise. If e is
    not between 0 and 20, the result is 0, which is smaller than necessary but safe.
    """
    if not (run.integers or run.moments):
        return float(gaussian_mu(epsilon, delta))
    slack = exact_slack(run)
    left = epsilon - 2 * slack.epsilon
    if not (left > 0 and left < _CERTAIN):
        return 0.0
    return float(down(gaussian_mu(left, usable_delta(run, delta) * math.exp(-slack.epsilon) * (1 - 1e-6))))


def exact_slack(run: RunFacts) -> Slack:
    """What the integer noise of a whole run adds to the cost, compared with rounded normal noise."""
    none = Slack(0.0, 0.0)
    sums = masked_slack(run, range(1, run.moments + 1), 1) if run.moments else none
    whole = discrete_slack(_SPREAD, run.dimension, run.rounds * run.outputs) if run.integers else none
    if not (run.integers and run.moments):
        return whole if run.integers else sums
    return Slack(float(up(whole.epsilon + sums.epsilon)), whole.failure + sums.failure)


def loss_shape(loss: LossFacts) -> str:
    """How the slope and the curvature of the loss are related: a key of `widening.NODES`."""
    if loss.name == "logistic" and (loss.slope_bound, loss.curvature_bound) == (1.0, 0.25):
        return "logistic"
    if loss.name == "log-cosh" and loss.slope_bound == 1.0:
        return "log-cosh"
    return "one-sided" if loss.name == "smooth-hinge" else "any"


def _renyi_shift(run: RunFacts, noise: str, moved: Array, scale: Array, orders: Array) -> Array:
    """Renyi cost, over all rounds, of noisy vectors if one record moves each vector by at most `moved`.

    If a vector moves by whole grid steps, discrete Gaussian noise costs no more than continuous Gaussian
    noise [CKS20]. For discrete Laplace noise only the pure bound is used: x (`bend`) is set so high that the
    Renyi bound of norm noise is infinite.
    """
    bend = np.full_like(moved, _BEYOND if run.integers and noise == "norm" else 0.0)
    if noise == "gaussian":
        return totals.renyi_gaussian_total(orders, moved, scale, bend)
    return totals.renyi_norm_total(
        orders, moved, scale, run.dimension, bend, bounds.primal_pure(moved, scale)
    )


def _stray(run: RunFacts) -> float:
    """How far apart solver errors can move two solved vectors: 2 `tol`. With integer noise, sqrt(d) grid
    steps are added, because vectors are rounded before this noise is added."""
    return float(up(2 * run.tol + _rounding(run))) if run.integers else 2 * run.tol


def _primal_move(run: RunFacts, k: Array, a: Array) -> Array:
    """The sensitivity S of the solved vector. With integer noise, this vector is rounded before the noise is
    added, and the effect of the rounding is included."""
    S = bounds.primal_sensitivity(k, a, run.loss.slope_bound, run.tol, _reach(run))
    return up(S + _rounding(run)) if run.integers else S


def _rounding(run: RunFacts) -> float:
    """g sqrt(d): rounding to the grid moves two vectors apart by at most this much."""
    return float(run.grid or 0.0) * math.sqrt(run.dimension)


def float_delta(run: RunFacts) -> float:
    """With integer noise, a bound on the probability that any noise drawn in floats is inexact; otherwise 0.

    The bounds of runs without integer noise treat floats as real numbers. In a run with integer noise, only
    the noise inside a site's problem is drawn in floats. Each number of this noise is a rounded real number,
    except with probability 1e-15. The length of each vector of this noise is at most the length for which
    `tol` was computed, except with probability 1e-18.
    """
    if not run.integers:
        return 0.0
    return run.outputs * run.rounds * (1e-15 * run.dimension + 1e-18) * (1 + 1e-9)


def usable_delta(run: RunFacts, delta: float) -> float:
    """The part of `delta` that `float_delta` leaves for the bounds. Raises if it is below `delta` / 2."""
    left = checks.probability("delta", delta) - float_delta(run)
    if left < delta / 2:
        raise ParameterError(
            f"`delta` must be above {format_cost(2.1 * float_delta(run))}; got {delta:g}. Noise that is "
            f"drawn in floating point is inexact with probability {format_cost(float_delta(run))} in this "
            "run, and this probability may be at most half of `delta`."
        )
    return left


def _pure_update(run: RunFacts, releases: Releases) -> Array:
    """Pure epsilon of each round with norm noise inside the problem, for one class, without output noise."""
    k, a = _weight(run, releases)
    loss, alpha, X = run.loss, releases.scale, _reach(run)

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
    """For every release, the weight k of one record and the least eigenvalue a of H (see `bounds`)."""
    k = bounds.sample_weight(run.C, releases.eta, releases.degree, releases.samples)
    return k, bounds.least_eigenvalue(run.strong, releases.eta, releases.degree)


def _reach(run: RunFacts) -> float:
    """X plus a margin for rounding: the exact norm of an accepted row is at most this number."""
    return run.data_norm * _ROUNDED
