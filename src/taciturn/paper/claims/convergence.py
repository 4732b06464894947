"""The paper's claims about M-ADMM without noise: Figures 1a and 1b, Theorems 1 and 2.

M-ADMM is the paper's ADMM, in which the penalty may differ between sites and rounds. The contraction of a
round is the factor by which the squared distance to the limit shrinks; see `contractions`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ...core.errors import ParameterError
from ...core.types import Array
from ...methods.admm.theory import Rate, rate
from ..figures.runner import CurveResult, FigureResult
from .claim import Claim, Listed, claim
from .findings import quadratic_form_of_the_proof, unequal_dual_steps, weighted_optimum

STEPS = ("one step", "step by round", "step by site")
RATIOS = ("1", "1.02", "1.05", "1.1", "1.2")
NEAR = 0.03  # a run has converged if ||f - optimum|| / ||optimum|| is below this number
FLAT = 0.02  # a run is flat if its last fifth closes less than this share of the gap to the optimal loss
VISIBLE = 1e-6  # the error of the solver (at most 1e-7) hides smaller contractions


def claims_of_fig1a(drawn: FigureResult) -> list[Claim]:
    """The claims about runs with a different penalty at each site, and with three kinds of dual step."""
    form = quadratic_form_of_the_proof()
    proof = claim("theorem1-proof", [form >= 0], {"quadratic_form": form})
    return [_converges(drawn), _weakly_regularised(drawn), _unequal_steps(drawn), proof]


def claims_of_fig1b(drawn: FigureResult) -> list[Claim]:
    """The claims about runs with one growing penalty for all sites, and about the rate of Theorem 2."""
    rounds = [one for outcome in drawn.outcomes for one in _rounds(outcome)]
    return [_slower(drawn), _stalls(drawn), _contracts(rounds), _rate_falls(drawn), _printed(rounds)]


def _converges(drawn: FigureResult) -> Claim:
    outcomes = [drawn["strong", name] for name in STEPS]
    distances = Listed(_last_distance(outcome) for outcome in outcomes)
    excess = max(abs(outcome.final_loss / outcome.optimal_loss - 1) for outcome in outcomes)
    numbers = {"distance": dict(zip(STEPS, distances, strict=True))}
    near = (distance < NEAR for distance in distances)
    return claim("fig1a-converges", near, numbers, distances=distances, excess=excess)


def _weakly_regularised(drawn: FigureResult) -> Claim:
    outcomes, capped = [drawn["weak", name] for name in STEPS], drawn["weak", "capped"]
    distances = Listed(_last_distance(outcome) for outcome in outcomes)
    numbers = {
        "loss": Listed(outcome.final_loss for outcome in outcomes),
        "optimal_loss": capped.optimal_loss,
        "capped_loss": capped.final_loss,
    }
    return claim("fig1a-optimum", (distance < NEAR for distance in distances), numbers, distances=distances)


def _unequal_steps(drawn: FigureResult) -> Claim:
    outcome = drawn["strong", "step by site"]
    theta = outcome.method.tables(outcome.graph.n, 1).theta[:, 0]
    weighted = weighted_optimum(outcome.problem, [1 / step for step in theta])
    apart = float(np.linalg.norm(weighted - outcome.optimum) / np.linalg.norm(outcome.optimum))
    numbers = asdict(unequal_dual_steps())
    disagreement = numbers.pop("disagreement")
    arrived = abs(numbers["limit"] - numbers["optimum"]) < 1e-3
    return claim("fig1a-unequal-steps", [arrived], numbers | {"apart": apart}, disagreement=disagreement)


def _slower(drawn: FigureResult) -> Claim:
    losses = Listed(drawn[name].final_loss for name in RATIOS)
    distances = Listed(_last_distance(drawn[name]) for name in RATIOS)
    checks = [bool(np.all(np.diff(values) > 0)) for values in (losses, distances)]
    shown = {"rounds": drawn.figure.run.rounds, "optimal_loss": drawn["1"].optimal_loss}
    numbers = {"loss": losses, "distance": distances}
    return claim("fig1b-slower", checks, numbers, ratios=", ".join(RATIOS), **shown)


def _stalls(drawn: FigureResult) -> Claim:
    fast, capped = drawn["1.2"], drawn["1.2 capped"]
    taken, capped_taken = (max(_taken(one), 0.0) for one in (fast, capped))
    numbers = {"loss": fast.final_loss, "capped_loss": capped.final_loss, "optimal_loss": fast.optimal_loss}
    return claim("theorem1-bounded", [taken > FLAT], numbers, taken=taken, capped_taken=capped_taken)


@dataclass(frozen=True)
class Round:
    """Round t of one run: the measured contraction minus 1, and the bound that Theorem 2 gives for it."""

    name: str
    t: int
    measured: float
    bound: Rate


def _rounds(outcome: CurveResult) -> list[Round]:
    """Every fifth round of a run, without the rounds with a contraction too small to measure (`VISIBLE`)."""
    shrunk = contractions(outcome) - 1
    seen = [t for t in range(5, len(shrunk) + 2, 5) if shrunk[t - 2] > VISIBLE]
    bounds = [rate(outcome.problem, outcome.graph, outcome.method, t) for t in seen]
    rounds = zip(seen, bounds, strict=True)
    return [Round(outcome.curve.name, t, float(shrunk[t - 2]), bound) for t, bound in rounds]


def _contracts(rounds: list[Round]) -> Claim:
    loose = [one.measured / one.bound.delta for one in rounds]
    shown = {
        "slowest": min(one.measured for one in rounds),
        "promised": max(one.bound.delta for one in rounds),
    }
    numbers = {"rounds": len(rounds), "least": min(loose), "most": max(loose)}
    return claim("theorem2-rate", (ratio >= 1 for ratio in loose), numbers, **shown)


def _rate_falls(drawn: FigureResult) -> Claim:
    t = min(drawn.figure.run.rounds, 30)  # later, the run with the fastest growing penalty hardly changes
    rates = Listed(float(contractions(drawn[name])[t - 2]) - 1 for name in RATIOS)
    falls = bool(np.all(np.diff(rates) < 0))
    return claim("theorem2-slower", [falls], {"measured": rates, "round": t}, ratios=", ".join(RATIOS))


def _printed(rounds: list[Round]) -> Claim:
    grown = [one for one in rounds if one.bound.as_printed > one.bound.delta]
    broken = [one for one in grown if one.measured < one.bound.as_printed]
    shown = ""
    if broken:
        worst = max(broken, key=lambda one: one.bound.as_printed / one.measured)
        shown = (
            f", and {len(broken)} of these rounds contradict the closed form: with q1 = {worst.name}, "
            f"round {worst.t} contracts by 1 + {worst.measured:.1e}, less than the stated "
            f"1 + {worst.bound.as_printed:.1e}"
        )
    numbers = {"above_delta": len(grown), "broken_by_a_run": len(broken), "rounds": len(rounds)}
    return claim("theorem2-printed", [not grown, not broken], numbers, broken=shown)


def _last_distance(outcome: CurveResult) -> float:
    return float(outcome.distance[:, -1].max())


def _taken(outcome: CurveResult) -> float:
    """The share of the gap to the optimal loss that the run closes in the last fifth of its rounds."""
    loss = outcome.run.loss[0]
    before = float(loss[-1 - len(loss) // 5]) - outcome.optimal_loss
    return 1 - (float(loss[-1]) - outcome.optimal_loss) / before


def contractions(outcome: CurveResult) -> Array:
    """||Z(t-1) - Z*||^2_J(t) / ||Z(t) - Z*||^2_J(t): by Theorem 2 this ratio is at least 1 + delta(t).

    The result has one ratio for each of the rounds 2 .. T of the first repeat. All sites must have the same
    penalties, and the dual step must be the same at all sites and in all rounds.

    D and A are the degree and adjacency matrices, and Lambda stacks the dual variables of the sites. Z stacks
    Y and f, with 2 Lambda = sqrt(D - A) Y; ||Z||^2_J = ||Y||^2 / theta + <f, eta (D + A) f>.
    """
    graph, history = outcome.graph, outcome.run.history
    tables = outcome.method.tables(graph.n, outcome.run.loss.shape[1])
    alike = (tables.eta == tables.eta[0]).all() and (tables.theta == tables.theta[0, 0]).all()
    if history is None or not alike:
        raise ParameterError(
            "`outcome` must have a history, the same penalties at all sites, and one dual step."
        )
    eta, theta, f = tables.eta[0], float(tables.theta[0, 0]), history[:, 0]
    D, A = np.diag(graph.degrees.astype(float)), graph.adjacency
    root = _root(D - A)
    gradients = [outcome.problem.site(i).gradient(outcome.optimum[None])[0] for i in range(graph.n)]
    Y_star = -np.linalg.pinv(root) @ np.stack(gradients)
    Y = theta * np.cumsum(root @ f, axis=0)

    def squared_distance(t: int, s: int) -> float:
        """||Z(s) - Z*||^2 in the norm of round t; s and t count from 0."""
        gap = f[s] - outcome.optimum
        return float(np.sum((Y[s] - Y_star) ** 2) / theta + np.sum(gap * (eta[t] * (D + A) @ gap)))

    return np.array([squared_distance(t, t - 1) / squared_distance(t, t) for t in range(1, len(f))])


def _root(laplacian: Array) -> Array:
    """The symmetric square root of a graph Laplacian. Its smallest eigenvalue is set to exactly 0."""
    values, vectors = np.linalg.eigh(laplacian)
    values[0] = 0.0
    return np.asarray(vectors @ np.diag(np.sqrt(values)) @ vectors.T)
