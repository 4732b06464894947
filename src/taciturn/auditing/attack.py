"""run_attack: the attack in appendix E of the paper, which reconstructs one record from all broadcasts.

The paper is [ZKL18]. In round t of ADMM, each site sends its model f(t), a vector of length d, to its
neighbours; these vectors are the broadcasts. The observer knows every broadcast, the dual step theta, and all
records of one site except one. This site has V neighbours, the penalty eta, the dual variable lam, the noise
e(t), and the objective O, in which each record has the weight w. With u = 1/(2 eta V), the optimality
condition of round t is

    e(t) - u w p(t) v = u A(t) + B(t),     v = y x and p = |L'| of the unknown record
    A = -2 lam - grad O(f) over the known records,     B = (V f(t-1) + heard(t-1)) / (2 V) - f(t)

where heard(t) is the sum of the neighbours' broadcasts in round t. The observer can compute the right side if
it knows u; but eta, and thus u, may be secret. In the mean over many rounds the noise nearly cancels, and a
multiple of v remains. Four observers use different values of eta:

    known       the true eta_i(t), as if it were public
    constant    the dual step of round 1, as a guess of eta in every round
    estimated   the most likely eta of each round, from the d equations of that round
    geometric   the same estimates, smoothed so that eta changes by the same factor in every round

If the method adds no noise, each of the last two observers alternates between two estimates: its estimate of
the record gives a better eta, and the better eta gives a better estimate of the record. With noise, a
repetition would only fit the noise, so these observers estimate each only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from ..graph import Graph, GraphLike
from ..methods.admm.perturbations import Method
from ..methods.admm.tables import Tables
from ..methods.admm.updates import dual_update
from ..objective import LocalObjective, Problem
from ..runtime.simulate import simulate

# `estimate_u` searches over 8 powers of ten with 41 points, and then zooms in on the best point four times.
# `_ZOOMS` counts all five searches.
_DECADES, _POINTS, _ZOOMS = 8.0, 41, 5


def residual(u: ArrayLike, A: Array, B: Array) -> Array:
    """u A + B. A contains vectors along its last axis; each entry of u multiplies one of them."""
    return np.asarray(np.asarray(u)[..., None] * A + B)


def direction(residuals: Array, weights: Array) -> Array:
    """The unit vector in the direction of -(sum over rounds of weight times residual).

    `residuals` has the shape (rounds, ..., d). The best weights are u / var(e), where e is the noise.
    """
    total = -np.sum(weights[..., None] * residuals, axis=0)
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    return np.asarray(total / np.where(length > 0, length, 1.0))


def cosine(a: Array, b: Array) -> Array:
    """cos of the angle between vectors along the last axis; 0 for a zero vector."""
    size = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.asarray(np.sum(a * b, axis=-1) / np.where(size > 0, size, 1.0))


def estimate_u(
    A: Array, B: Array, curvature: Array, *, noise: str, scale: ArrayLike, centre: ArrayLike
) -> Array:
    """The most likely u = 1/(2 eta V) of each round, computed from d equations.

    The estimate maximises ln p_noise(u A + B) + sum ln(1 + u m). The sum is over the eigenvalues m of O'' at
    the broadcast; `curvature`, of shape (..., d), contains them. The sum accounts for the Jacobian of the map
    from the broadcast to the noise; without it the estimate would be too small. `scale` is the standard
    deviation of Gaussian noise, or the rate of noise with density ~ exp(-rate ||e||). The search covers 8
    powers of ten around `centre`. If `noise` is "none", the estimate is the u with the smallest residual,
    computed from A and B alone.
    """
    AA, AB, BB = (np.sum(x * y, axis=-1) for x, y in ((A, A), (A, B), (B, B)))
    if noise == "none":
        return np.asarray(np.maximum(-AB / np.where(AA > 0, AA, 1.0), 1e-300))
    scale = np.asarray(scale, dtype=np.float64)

    def log_likelihood(u: Array) -> Array:
        square = np.maximum(u**2 * AA + 2 * u * AB + BB, 0.0)
        fit = -square / (2 * scale**2) if noise == "gaussian" else -scale * np.sqrt(square)
        return np.asarray(fit + np.sum(np.log1p(u[..., None] * curvature), axis=-1))

    best = np.log(np.broadcast_to(np.asarray(centre, dtype=np.float64), AA.shape)).copy()
    width = _DECADES / 2 * np.log(10.0)
    for _ in range(_ZOOMS):
        steps = np.linspace(-width, width, _POINTS)
        values = np.stack([log_likelihood(np.exp(best + step)) for step in steps])
        best = best + steps[np.argmax(values, axis=0)]
        width = 2 * width / (_POINTS - 1)
    return np.exp(best)


def geometric_fit(u: Array) -> Array:
    """The schedule u(1) ratio^(t-1) that fits u best: least squares on ln u over the rounds (first axis)."""
    T = u.shape[0]
    y = np.log(u).reshape(T, -1)
    t = np.arange(T) - (T - 1) / 2
    slope = t @ y / max(float(t @ t), 1.0)
    return np.asarray(np.exp(y.mean(axis=0) + np.outer(t, slope)).reshape(u.shape))


def chance_cosine(d: int) -> float:
    """The mean |cosine| between a fixed and a uniformly random direction in R^d: ~ sqrt(2 / (pi d)).

    >>> round(chance_cosine(1), 6), round(chance_cosine(2) * np.pi, 6)
    (1.0, 2.0)
    """
    return float(np.exp(special.gammaln(d / 2) - special.gammaln((d + 1) / 2)) / np.sqrt(np.pi))


OBSERVERS = ("known", "constant", "estimated", "geometric")
_TURNS = 3  # without noise, the number of times that eta and the record are estimated in turns


@dataclass(frozen=True, eq=False)
class AttackResult:
    """The results of the observers; arrays have the shape (observers, rounds, repeats, records).

    A repeat is one of several independent runs of the method.

    observers : the names of the observers.
    rounds : the rounds after which the observers estimate the records.
    cosine : the cosine between the estimate and y x of the record.
    label : whether the record's label was recovered.
    eta_ratio : the observer's eta divided by the true eta, in the last round that the estimate uses.
    chance : the mean |cosine| between a record and a random direction.
    prior, prior_label : what a guess without an attack achieves: the mean cosine between a record and the
        mean y x of the known records; and the share of attacked records that have the site's most frequent
        label.
    """

    observers: tuple[str, ...]
    rounds: tuple[int, ...]
    cosine: Array
    label: NDArray[np.bool_]
    eta_ratio: Array
    chance: float
    prior: float
    prior_label: float

    def table(self) -> list[dict[str, Any]]:
        """One row for each observer and entry of `rounds`: the mean results of the attacks."""
        rows: list[dict[str, Any]] = []
        for i, name in enumerate(self.observers):
            for j, t in enumerate(self.rounds):
                low, middle, high = np.quantile(self.cosine[i, j], [0.1, 0.5, 0.9])
                rows.append(
                    {
                        "observer": name,
                        "rounds": t,
                        "cosine": float(self.cosine[i, j].mean()),
                        "cosine_median": float(middle),
                        "cosine_low": float(low),
                        "cosine_high": float(high),
                        "label": float(self.label[i, j].mean()),
                        "eta_ratio": float(np.median(self.eta_ratio[i, j])),
                    }
                )
        return rows


def run_attack(
    problem: Problem,
    graph: GraphLike,
    method: Method,
    *,
    rounds: int,
    repeats: int = 4,
    site: int = 0,
    records: Sequence[int] = (0, 1, 2, 3, 4),
    labels: ArrayLike | None = None,
    at: Sequence[int] | None = None,
    observers: Sequence[str] = OBSERVERS,
    seed: int = 0,
    tol: float = 1e-8,
) -> AttackResult:
    """Run `method`, then reconstruct each record from all broadcasts and the other records of its site.

    Parameters
    ----------
    method : `PenaltyPerturbation` or `DualPerturbation`; or `MADMM` or `ADMM`, which add no noise.
    site, records : the attacked site, and which of its records are attacked, one at a time.
    labels : the site's y. `labels` may be left out if no feature is negative: the signs of y x then give y.
    at : the numbers of rounds after which to estimate; by default 1, 2, 5, 10, 20, 50, ... and `rounds`.
    observers : which observers attack. "known" knows eta, "constant" uses the dual step of round 1 as eta,
        "estimated" estimates eta in every round, and "geometric" smooths these estimates.
    """
    graph = Graph.of(graph, problem.n)
    tables = method.tables(problem.n, rounds)
    if tables.on_output:
        raise ParameterError(
            "`method` must send each site's solution without added noise. Leave out `output_noise`, and do "
            "not use PrimalPerturbation, which adds noise to the solution."
        )
    most = problem.site(checks.among_sites("site", site, problem.n)).rows - 1
    if any(checks.whole("records", k) > most for k in records):
        raise ParameterError(f"`records` must be at most {most} at site {site}; got {max(records)}.")
    names = tuple(checks.choice("observers", name, OBSERVERS) for name in observers)
    looks = _looks(rounds, at)
    run = simulate(
        problem,
        graph,
        method,
        rounds=rounds,
        repeats=repeats,
        seed=seed,
        tol=tol,
        strict=False,
        history=True,
        progress=False,
    )
    history = run.history if run.history is not None else np.zeros((0, 0, 0, 0))
    seen = _Observation(problem.site(site), graph, tables.site(site), site, history, list(records), labels)
    return _estimate_records(seen, names, looks)


def _looks(rounds: int, at: Sequence[int] | None) -> tuple[int, ...]:
    """The rounds after which the observers estimate: `at`, or 1, 2, 5, 10, 20, 50, ... and the last round."""
    if at is not None:
        looks = tuple(checks.whole("at", t, least=1) for t in at)
        if max(looks) > rounds:
            raise ParameterError(f"`at` must be at most the number of rounds, {rounds}; got {max(looks)}.")
        return looks
    steps = [scale * 10**power for power in range(6) for scale in (1, 2, 5)]
    return (*(t for t in steps if t < rounds), rounds)


class _Observation:
    """The arrays A and B of the attack, and the estimates that are computed from them.

    A and B do not depend on eta, so every observer can compute them. Only "known" uses `true_u`.
    """

    def __init__(
        self,
        objective: LocalObjective,
        graph: Graph,
        tables: Tables,
        site: int,
        history: Array,
        records: list[int],
        labels: ArrayLike | None,
    ) -> None:
        self.objective, self.tables, self.V = objective, tables, int(graph.degrees[site])
        part = objective.parts[0]
        Z = part.rows.matrix
        self.Z = Z.toarray() if sparse.issparse(Z) else np.asarray(Z)
        self.y = np.sign(self.Z.sum(axis=1)) if labels is None else np.asarray(labels, dtype=np.float64)
        self.records = records
        f = history[:, :, site]  # (rounds, repeats, d)
        heard = history[:, :, list(graph.neighbors(site))].sum(axis=2)
        self.f, self.v = f, self.Z[records]
        slope = objective.loss.slope(f @ self.v.T)[..., None]  # (rounds, repeats, records, 1)
        gradient = objective.gradient(f.reshape(-1, f.shape[2])).reshape(f.shape)
        known = gradient[:, :, None] - part.weight * slope * self.v
        self.A = -2 * self._duals(f, heard)[:, :, None] - known
        B = (self.V * _before(f) + _before(heard)) / (2 * self.V) - f
        self.B = np.broadcast_to(B[:, :, None], self.A.shape)

    def _duals(self, f: Array, heard: Array) -> Array:
        """lam(t-1) for every round t, computed from theta and the broadcasts."""
        lam = np.zeros_like(f)
        for t in range(1, len(f)):
            theta = float(self.tables.theta[t - 1])
            lam[t] = dual_update(lam[t - 1], f[t - 1], heard[t - 1], theta=theta, V=self.V)
        return lam

    @property
    def spread(self) -> Array:
        """The standard deviation (or 1/rate) of the noise of each round, (rounds, 1, 1); 1 without noise."""
        tables = self.tables
        if tables.noise is None or tables.scale is None:
            return np.ones((len(self.f), 1, 1))
        return np.asarray(tables.noise.size(tables.scale[:, None, None]))

    def true_u(self) -> Array:
        """1 / (2 eta V) of every round, (rounds, 1, 1)."""
        return np.asarray(1 / (2 * self.tables.eta * self.V))[:, None, None]

    def guessed_u(self) -> Array:
        """1 / (2 eta V) of every round if eta were the dual step of round 1."""
        return np.full_like(self.true_u(), 1 / (2 * self.tables.theta[0] * self.V))

    def estimated_u(self, t: int, record: Array | None = None) -> Array:
        """The most likely u in rounds 1..t, (t, repeats, records); `record` is an estimate of the record."""
        noise, A, B = self.tables.noise, self.A[:t], self.B[:t]
        if record is not None:  # drop the part along the record: it contains the unknown p
            A, B = (x - np.sum(x * record, axis=-1, keepdims=True) * record for x in (A, B))
        return estimate_u(
            A,
            B,
            self.curvature[:t, :, None],
            noise="none" if noise is None else noise.kind,
            scale=(self.spread if noise is None else noise.scale_of(self.spread))[:t],
            centre=self.guessed_u()[:t],
        )

    def record(self, u: Array) -> Array:
        """The estimate of each record, as a unit vector, for the given values of u; (repeats, records, d)."""
        t = len(u)
        return direction(residual(u, self.A[:t], self.B[:t]), u / self.spread[:t] ** 2)

    @cached_property
    def curvature(self) -> Array:
        """The eigenvalues of O'' at each broadcast, (rounds, repeats, d).

        They are zeros if the method adds no noise, because `estimate_u` then does not use them. O'' includes
        the unknown record, whose effect is negligible.
        """
        if self.tables.noise is None:
            return np.zeros(self.f.shape)
        flat = self.f.reshape(-1, self.f.shape[2])
        values = [np.linalg.eigvalsh(self.objective.hessian(f)) for f in flat]
        return np.maximum(np.stack(values), 0.0).reshape(self.f.shape)


def _before(values: Array) -> Array:
    """The values of the previous round; zeros in the first round, because f(0) is 0."""
    return np.concatenate([np.zeros_like(values[:1]), values[:-1]])


def _estimate_records(seen: _Observation, names: tuple[str, ...], looks: tuple[int, ...]) -> AttackResult:
    """The estimates of every observer after each of the rounds in `looks`."""
    shape = seen.A.shape[1:-1]
    mean_row = (seen.y[:, None] * seen.Z).mean(axis=0)
    found = np.empty((3, len(names), len(looks), *shape))
    for i, name in enumerate(names):
        for j, t in enumerate(looks):
            u = _guess(seen, name, t)
            v = seen.record(u)
            found[0, i, j] = cosine(v, seen.v)
            found[1, i, j] = np.where(v @ mean_row > 0, 1.0, -1.0) == seen.y[seen.records]
            found[2, i, j] = seen.true_u()[t - 1] / u[-1]
    return AttackResult(
        observers=names,
        rounds=looks,
        cosine=found[0],
        label=found[1] > 0,
        eta_ratio=found[2],
        chance=chance_cosine(seen.f.shape[2]),
        prior=float(cosine(seen.Z.sum(axis=0) - seen.v, seen.v).mean()),  # v against the sum of the others
        prior_label=float(np.mean(seen.y[seen.records] == (1.0 if seen.y.sum() >= 0 else -1.0))),
    )


def _guess(seen: _Observation, name: str, t: int) -> Array:
    """The observer's value of 1 / (2 eta V) in rounds 1..t."""
    if name in ("known", "constant"):
        u = seen.true_u() if name == "known" else seen.guessed_u()
        return np.broadcast_to(u[:t], (t, *seen.A.shape[1:-1]))
    record: Array | None = None
    for _ in range(_TURNS if seen.tables.noise is None else 1):
        u = seen.estimated_u(t, record)
        u = geometric_fit(u) if name == "geometric" else u
        record = seen.record(u)
    return u
