"""The claims about noise: Figures 2 to 4, Theorem 3, all methods at the same budget, and the attack.

The paper compares its method, penalty perturbation (PP), with dual variable perturbation (DVP) and primal
variable perturbation (PVP). In texts, L is the loss, and P is the paper's bound on the privacy cost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...auditing.audit import audit
from ...auditing.cases import bend_case, norm_case
from ...auditing.observer import Case
from ...core.formatting import format_at_least, format_cost
from ...privacy.accounting import bounds
from ..figures.attack_runner import AttackFigureResult
from ..figures.runner import CurveResult, FigureResult
from .claim import Claim, Listed, claim
from .findings import constant_of_theorem_3

RUNS, QUICK_RUNS = 50_000, 10_000
_PURE = 1e-9  # a delta so small that our epsilon equals the epsilon of pure differential privacy
FOUND = 0.9  # an attack has found the record if the cosine between its guess and the record is above this


class Pair(NamedTuple):
    """A curve of PP and a curve of DVP that the paper compares.

    In the paper's figures, the red curve is compared with the magenta one, and the blue with the black one.
    """

    panel: str
    pp: CurveResult
    dvp: CurveResult

    @property
    def name(self) -> str:
        """The names of both curves, and of their panel."""
        panel = f", {self.panel}" if self.panel else ""
        return f"{self.pp.curve.name} / {self.dvp.curve.name}{panel}"

    @property
    def losses(self) -> list[float]:
        return [self.pp.final_loss, self.dvp.final_loss]

    def costs(self, accounting: str) -> list[float]:
        """The privacy costs of PP and DVP, computed in the way "paper", "pure" or "epsilon"."""
        return [float(getattr(outcome, accounting)[-1]) for outcome in (self.pp, self.dvp)]

    def better(self, *accountings: str) -> bool:
        """Whether PP has a smaller loss than DVP, and a smaller cost in each of these ways of accounting."""
        return all(pp < dvp for pp, dvp in (self.losses, *map(self.costs, accountings)))

    def ranges(self) -> list[float]:
        """For PP and DVP: L_range(t) = max - min over the repeats, averaged over the last half of the run."""
        losses = [one.run.loss[:, one.run.loss.shape[1] // 2 :] for one in (self.pp, self.dvp)]
        return [float(np.ptp(loss, axis=0).mean()) for loss in losses]


def pairs(drawn: FigureResult) -> list[Pair]:
    """The pairs of each panel: the k-th cheapest curve of PP with the k-th cheapest curve of DVP."""
    return [
        Pair(row.name, *pair)
        for row in drawn.figure.rows
        for pair in zip(*(_by_cost(drawn, row.name, kind) for kind in ("penalty", "dual")), strict=True)
    ]


def _by_cost(drawn: FigureResult, panel: str, method: str) -> list[CurveResult]:
    """The curves of a method in a panel, in the order of their privacy cost."""
    found = [outcome for outcome in drawn.panel(panel) if outcome.curve.method == method]
    return sorted(found, key=lambda outcome: float(outcome.paper[-1]))


def claims_of_fig2(drawn: FigureResult) -> list[Claim]:
    """The claims about the network of five sites."""
    return [_both(drawn, "fig2"), _dearer(drawn), _spread(drawn, "fig2"), _tight(drawn), _pvp(drawn)]


def claims_of_large(even: FigureResult | None, uneven: FigureResult | None) -> list[Claim]:
    """The claims about the networks of a hundred sites, with rows distributed evenly and unevenly."""
    named = {"fig3": even, "fig4": uneven}
    found = [make(one, name) for name, one in named.items() if one is not None for make in (_both, _spread)]
    return found if even is None or uneven is None else [*found, _uneven(even, uneven)]


def _both(drawn: FigureResult, name: str) -> Claim:
    """The claim that PP has both a smaller loss and a smaller privacy cost than DVP."""
    found = pairs(drawn)
    numbers = {pair.name: {"loss": pair.losses, "paper_epsilon": pair.costs("paper")} for pair in found}
    shown = "; ".join(
        "{}: L = {:.3f} against {:.3f}, P = {:.1f} against {:.1f}".format(
            pair.name, *pair.losses, *pair.costs("paper")
        )
        for pair in found
    )
    return claim(f"{name}-both", (pair.better("paper") for pair in found), numbers, shown=shown)


def _spread(drawn: FigureResult, name: str) -> Claim:
    """The claim that repeated runs of PP differ less from one another than repeated runs of DVP."""
    ranges = {pair.name: pair.ranges() for pair in pairs(drawn)}
    shown = "; ".join(f"{two}: {a:.4f} against {b:.4f}" for two, (a, b) in ranges.items())
    smaller = (a < b for a, b in ranges.values())
    return claim(f"{name}-range", smaller, {"range": ranges}, repeats=drawn.figure.run.repeats, shown=shown)


def _dearer(drawn: FigureResult) -> Claim:
    checks, shown = [], []
    for row in drawn.figure.rows:
        for method, name in (("dual", "DVP"), ("penalty", "PP")):
            cheap, dear = _by_cost(drawn, row.name, method)
            checks.append(dear.final_loss < cheap.final_loss)
            shown.append(
                f"{name}, {row.name}: P from {format_cost(cheap.paper[-1])} to "
                f"{format_cost(dear.paper[-1])}, L from {cheap.final_loss:.3f} to {dear.final_loss:.3f}"
            )
    return claim("fig2-tradeoff", checks, shown="; ".join(shown))


def _tight(drawn: FigureResult) -> Claim:
    found = pairs(drawn)
    shown = "; ".join(
        "{}: {} against {} (pure {} against {})".format(
            pair.name, *map(format_cost, (*pair.costs("epsilon"), *pair.costs("pure")))
        )
        for pair in found
    )
    below = [a / b for pair in found for a, b in zip(pair.costs("paper"), pair.costs("epsilon"), strict=True)]
    better = (pair.better("pure", "epsilon") for pair in found)
    numbers = {"least": min(below), "most": max(below)}
    return claim("fig2-tight", better, numbers, delta=drawn.figure.run.delta, shown=shown)


def _pvp(drawn: FigureResult) -> Claim:
    checks, shown = [], []
    for row in drawn.figure.rows:
        pvp, *others = (drawn[row.name, name] for name in ("PVP 1", "DVP 1 1", "PP 1.04 1.03"))
        checks.append(pvp.final_loss > max(other.final_loss for other in others))
        each = ", ".join(
            f"{one.curve.name.split()[0]} L = {one.final_loss:.3f} at ε = {format_cost(one.epsilon[-1])}"
            for one in (pvp, *others)
        )
        shown.append(f"{row.name}: {each}")
    return claim("fig2-pvp", checks, shown="; ".join(shown))


def _uneven(even: FigureResult, uneven: FigureResult) -> Claim:
    names = [curve.name for curve in even.figure.curves if np.isfinite(even[curve.name].paper[-1])]
    paper = Listed(float(uneven[name].paper[-1] / even[name].paper[-1]) for name in names)
    ours = Listed(float(uneven[name].epsilon[-1] / even[name].epsilon[-1]) for name in names)
    numbers = {
        "paper": paper,
        "ours": ours,
        "fewest": int(uneven[names[0]].problem.samples.min()),
        "even": int(even[names[0]].problem.samples.min()),
    }
    return claim("uneven-costs-more", (ratio > 1 for ratio in (*paper, *ours)), numbers)


def claims_of_budget(drawn: FigureResult) -> list[Claim]:
    """The claims about all methods at the same budget (epsilon, delta)."""
    start, grown = drawn["DVP 2"], drawn["PP 2 growing"]
    tuned, best = (
        min((o for o in drawn.outcomes if o.curve.method == method), key=lambda o: o.final_loss)
        for method in ("dual", "penalty")
    )
    spent = max(float(outcome.epsilon[-1]) for outcome in drawn.outcomes)
    budget = f"ε = {format_cost(spent)}, δ = {drawn.figure.run.delta:g}"
    gained = {"tuned": start.final_loss - tuned.final_loss, "all": start.final_loss - best.final_loss}
    return [
        claim(
            key,
            [pp.final_loss < dvp.final_loss],
            numbers,
            budget=budget,
            first=_result(dvp),
            second=_result(pp),
        )
        for key, dvp, pp, numbers in (
            ("budget-same-start", start, grown, {"dvp": start.final_loss, "pp": grown.final_loss}),
            ("budget-tuned", tuned, best, gained),
        )
    ]


def _result(outcome: CurveResult) -> str:
    return f"L = {outcome.final_loss:.3f}, accuracy {float(outcome.run.accuracy[:, -1].mean()):.1%}"


def claims_of_attack(attacked: AttackFigureResult) -> list[Claim]:
    """The claims about the attack: one for an attacker who knows the penalty, one for a secret penalty."""
    clean, noisy = (attacked.cosine(noise, "known") for noise in ("none", "paper"))
    cost = attacked.epsilon["paper"]
    shown = {"rounds": attacked.figure.run.rounds, "chance": attacked.results["paper"].chance}
    numbers = {"no_noise": clean, "paper_noise": noisy, "epsilon": cost}
    known = claim("attack-known", [clean > FOUND, noisy > FOUND], numbers, cost=format_cost(cost), **shown)
    best = max(attacked.cosine("none", name) for name in ("estimated", "geometric"))
    tiny, known_tiny = (attacked.cosine("tiny", name) for name in ("estimated", "known"))
    result = attacked.results["none"]
    off = abs(float(result.eta_ratio[result.observers.index("estimated"), -1].mean()) - 1)
    numbers = {"estimated": best, "estimated_tiny": tiny, "known_tiny": known_tiny}
    return [known, claim("attack-secret", [best < FOUND], numbers, off=off)]


def claims_of_theorem3(*, quick: bool, seed: int) -> list[Claim]:
    """The claims about Theorem 3, tested by two audits of norm noise and by the costs of one long run."""
    tight, bent = replace(norm_case(), delta=_PURE), replace(bend_case(), delta=_PURE)
    runs = QUICK_RUNS if quick else RUNS
    shown, jacobian = audit([tight, bent], runs=runs, seed=seed).results
    measured, ours, paper = shown.measured.epsilon, shown.certified, _paper(tight)
    costs = {
        "at_least": format_at_least(measured),
        "certified": format_cost(ours),
        "by_paper": format_cost(paper),
    }
    found = [
        claim(
            "theorem3-holds",
            [measured <= ours <= paper],
            {"measured": measured, "ours": ours, "paper": paper},
            runs=2 * runs,
            rounds=tight.rounds,
            **costs,
        )
    ]
    if jacobian.ratio is not None:
        numbers = {"mean": jacobian.ratio.mean, "margin": jacobian.ratio.margin}
        found.append(claim("theorem3-jacobian", [jacobian.ratio.holds], numbers, runs=runs))
    one = constant_of_theorem_3()
    cheaper = one["renyi"] < one["pure"] < one["paper"]
    ratio = one["paper"] / one["renyi"]
    shown_costs = [format_cost(cost) for cost in one.values()]
    return [*found, claim("theorem3-loose", [cheaper], {**one, "ratio": ratio}, costs=shown_costs)]


def _paper(case: Case) -> float:
    """The epsilon that Theorem 3 gives for all rounds of a case, in which the site has one neighbour."""
    tables = case.tables()
    if tables.scale is None:
        return 0.0
    c1 = case.loss.curvature_bound
    return float(bounds.paper_epsilon(case.C, tables.eta, 1, case.samples, c1, tables.scale).sum())
