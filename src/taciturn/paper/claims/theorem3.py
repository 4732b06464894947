"""Theorem 3, the paper's bound on the privacy cost of a whole run, compared with audits."""

from __future__ import annotations

from dataclasses import replace

from ...auditing.audit import audit
from ...auditing.cases import Case, bend_case, norm_case
from ...core.formatting import format_at_least, format_cost
from ...privacy.accounting import bounds
from .claim import Claim, claim
from .findings import constant_of_theorem_3

RUNS, QUICK_RUNS = 50_000, 10_000
_PURE = 1e-9  # a delta so small that our epsilon equals the epsilon of pure differential privacy


def claims_of_theorem3(*, quick: bool, seed: int) -> list[Claim]:
    """The claims about Theorem 3, from two audits of norm noise and from the costs of one long run."""
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
