"""The paper's claims about noise: Figures 2 to 4, the same at one budget, and an observer (section 6.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.formatting import format_cost
from ..figures.attack_runner import AttackFigureResult
from ..figures.runner import CurveResult, FigureResult
from .claim import Claim, as_list, claim, judge


@dataclass(frozen=True, eq=False)
class Pair:
    """PP and the DVP that the paper sets it against: red against magenta, blue against black."""

    panel: str
    pp: CurveResult
    dvp: CurveResult

    @property
    def better(self) -> bool:
        """More accurate, and a smaller P(T)."""
        return self.pp.final_loss < self.dvp.final_loss and self.pp.paper[-1] < self.dvp.paper[-1]

    @property
    def better_by_ours(self) -> bool:
        """More accurate, and smaller by both of our accountings."""
        cheaper = self.pp.pure[-1] < self.dvp.pure[-1] and self.pp.epsilon[-1] < self.dvp.epsilon[-1]
        return self.pp.final_loss < self.dvp.final_loss and bool(cheaper)

    @property
    def name(self) -> str:
        """Both by name, and their panel."""
        panel = f", {self.panel}" if self.panel else ""
        return f"{self.pp.curve.name} / {self.dvp.curve.name}{panel}"

    def __str__(self) -> str:
        pp, dvp = self.pp, self.dvp
        return (
            f"{self.name}: L = {pp.final_loss:.3f} against {dvp.final_loss:.3f}, "
            f"P = {pp.paper[-1]:.1f} against {dvp.paper[-1]:.1f}"
        )


def pairs(drawn: FigureResult) -> list[Pair]:
    """The cheaper PP with the cheaper DVP of a panel, and the dearer with the dearer."""
    found = []
    for row in drawn.figure.rows:
        outcomes = sorted(drawn.panel(row.name), key=lambda outcome: float(outcome.paper[-1]))
        pp = [outcome for outcome in outcomes if outcome.curve.method == "penalty"]
        dvp = [outcome for outcome in outcomes if outcome.curve.method == "dual"]
        found += [Pair(row.name, *pair) for pair in zip(pp, dvp, strict=True)]
    return found


def typical_range(outcome: CurveResult) -> float:
    """The mean of L_range(t) = max - min over the repeats, over the second half of the rounds."""
    loss = outcome.run.loss[:, outcome.run.loss.shape[1] // 2 :]
    return float(np.ptp(loss, axis=0).mean())


def claims_of_fig2(drawn: FigureResult) -> list[Claim]:
    """Five sites."""
    return [both(drawn, "fig2"), _dearer(drawn), spread(drawn, "fig2"), _tight(drawn), _pvp(drawn)]


def claims_of_large(even: FigureResult | None, uneven: FigureResult | None) -> list[Claim]:
    """A hundred sites, with the rows dealt evenly, and unevenly."""
    named = {"fig3": even, "fig4": uneven}
    found = [make(one, name) for name, one in named.items() if one is not None for make in (both, spread)]
    return found if even is None or uneven is None else [*found, _uneven(even, uneven)]


def both(drawn: FigureResult, name: str) -> Claim:
    """PP beats DVP in accuracy and privacy at once."""
    found = pairs(drawn)
    numbers = {
        pair.name: {
            "loss": [pair.pp.final_loss, pair.dvp.final_loss],
            "paper_epsilon": [float(pair.pp.paper[-1]), float(pair.dvp.paper[-1])],
        }
        for pair in found
    }
    shown = "; ".join(str(pair) for pair in found)
    return claim(f"{name}-both", f"{shown}.", judge([pair.better for pair in found]), numbers)


def spread(drawn: FigureResult, name: str) -> Claim:
    """PP's runs differ less from one another than DVP's."""
    ranges = {pair.name: (typical_range(pair.pp), typical_range(pair.dvp)) for pair in pairs(drawn)}
    shown = "; ".join(f"{two}: {a:.4f} against {b:.4f}" for two, (a, b) in ranges.items())
    return claim(
        f"{name}-range",
        f"Mean range over the second half of the rounds, {drawn.figure.run.repeats} runs: {shown}.",
        judge([a < b for a, b in ranges.values()]),
        {"range": {two: list(both) for two, both in ranges.items()}},
    )


def _dearer(drawn: FigureResult) -> Claim:
    checks, shown = [], []
    for row in drawn.figure.rows:
        for method, name in (("dual", "DVP"), ("penalty", "PP")):
            two = [o for o in drawn.panel(row.name) if o.curve.method == method]
            cheap, dear = sorted(two, key=lambda outcome: float(outcome.paper[-1]))
            checks.append(dear.final_loss < cheap.final_loss)
            shown.append(
                f"{name}, {row.name}: P from {format_cost(cheap.paper[-1])} to "
                f"{format_cost(dear.paper[-1])}, L from {cheap.final_loss:.3f} to {dear.final_loss:.3f}"
            )
    return claim("fig2-tradeoff", "; ".join(shown) + ".", judge(checks))


def _tight(drawn: FigureResult) -> Claim:
    found = pairs(drawn)
    shown = "; ".join(
        f"{pair.name}: {format_cost(pair.pp.epsilon[-1])} against {format_cost(pair.dvp.epsilon[-1])} "
        f"(pure {format_cost(pair.pp.pure[-1])} against {format_cost(pair.dvp.pure[-1])})"
        for pair in found
    )
    below = [float(one.paper[-1] / one.epsilon[-1]) for pair in found for one in (pair.pp, pair.dvp)]
    return claim(
        "fig2-tight",
        f"ε at δ = {drawn.figure.run.delta:g}: {shown}.",
        judge([pair.better_by_ours for pair in found]),
        {"least": min(below), "most": max(below)},
    )


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
    return claim("fig2-pvp", "; ".join(shown) + ".", judge(checks))


def _uneven(even: FigureResult, uneven: FigureResult) -> Claim:
    names = [curve.name for curve in even.figure.curves if curve.method != "primal"]
    ratios = [float(uneven[name].paper[-1] / even[name].paper[-1]) for name in names]
    ours = [float(uneven[name].epsilon[-1] / even[name].epsilon[-1]) for name in names]
    return claim(
        "uneven-costs-more",
        f"P(T) is {as_list(ratios)} times that of the even network, our ε {as_list(ours)} times.",
        judge([ratio > 1 for ratio in (*ratios, *ours)]),
        {
            "paper": ratios,
            "ours": ours,
            "fewest": int(uneven[names[0]].problem.samples.min()),
            "even": int(even[names[0]].problem.samples.min()),
        },
    )


def claims_of_budget(drawn: FigureResult) -> list[Claim]:
    """All methods at the same (epsilon, delta)."""
    start, grown = drawn["DVP 2"], drawn["PP 2 growing"]
    tuned, best = _best(drawn, "dual"), _best(drawn, "penalty")
    spent = max(float(outcome.epsilon[-1]) for outcome in drawn.outcomes)
    budget = f"ε = {format_cost(spent)}, δ = {drawn.figure.run.delta:g}"
    return [
        claim(
            "budget-same-start",
            f"{budget}: η = 2 throughout gives {_result(start)}; growing by a tenth, {_result(grown)}.",
            judge([grown.final_loss < start.final_loss]),
            {"dvp": start.final_loss, "pp": grown.final_loss},
        ),
        claim(
            "budget-tuned",
            f"{budget}: the best DVP gives {_result(tuned)}; the best PP, {_result(best)}.",
            judge([best.final_loss < tuned.final_loss]),
            {"tuned": start.final_loss - tuned.final_loss, "all": start.final_loss - best.final_loss},
        ),
    ]


def _best(drawn: FigureResult, method: str) -> CurveResult:
    return min((o for o in drawn.outcomes if o.curve.method == method), key=lambda o: o.final_loss)


def _result(outcome: CurveResult) -> str:
    return f"L = {outcome.final_loss:.3f}, accuracy {float(outcome.run.accuracy[:, -1].mean()):.1%}"


FOUND = 0.9  # a cosine that counts as having found the record


def claims_of_attack(attacked: AttackFigureResult) -> list[Claim]:
    """With the penalty known, and with the penalty secret."""
    return [_known(attacked), _secret(attacked)]


def _known(attacked: AttackFigureResult) -> Claim:
    clean, noisy = (attacked.cosine(noise, "known") for noise in ("none", "paper"))
    return claim(
        "attack-known",
        f"Mean cosine to the record after {attacked.figure.run.rounds} rounds: {clean:.3f} without noise, "
        f"{noisy:.3f} with α = 3 (ε = {format_cost(attacked.epsilon['paper'])}), where a random direction "
        f"has ±{attacked.results['paper'].chance:.3f}.",
        judge([clean > FOUND, noisy > FOUND]),
        {"no_noise": clean, "paper_noise": noisy, "epsilon": attacked.epsilon["paper"]},
    )


def _secret(attacked: AttackFigureResult) -> Claim:
    clean = max(attacked.cosine("none", name) for name in ("estimated", "geometric"))
    tiny, known = (attacked.cosine("tiny", name) for name in ("estimated", "known"))
    ratio = attacked.results["none"].eta_ratio[attacked.results["none"].observers.index("estimated"), -1]
    return claim(
        "attack-secret",
        f"Without noise an observer who estimates η from the broadcasts reaches {clean:.3f} (its η is off by "
        f"{abs(float(ratio.mean()) - 1):.1%}); with very little noise {tiny:.3f}, where one who knows η "
        f"reaches {known:.3f}.",
        judge([clean < FOUND]),
        {"estimated": clean, "estimated_tiny": tiny, "known_tiny": known},
    )
