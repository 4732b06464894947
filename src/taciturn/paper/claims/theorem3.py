"""The paper's claims about the privacy of a whole run, against an audit: Theorem 3."""

from __future__ import annotations

from dataclasses import replace

from ...auditing.audit import audit
from ...auditing.cases import Case, bend_case, norm_case
from ...core.formatting import format_at_least, format_cost
from ...privacy.accounting import bounds
from .claim import Claim, claim, judge
from .findings import constant_of_theorem_3

RUNS, QUICK_RUNS = 50_000, 10_000
_PURE = 1e-9  # a delta at which our epsilon is the pure one


def claims_of_theorem3(*, quick: bool, seed: int) -> list[Claim]:
    """Two audits of norm noise, and the numbers of one long run."""
    tight, bent = replace(norm_case(), delta=_PURE), replace(bend_case(), delta=_PURE)
    runs = QUICK_RUNS if quick else RUNS
    shown, jacobian = audit([tight, bent], runs=runs, seed=seed).results
    paper = _paper(tight)
    found = [
        claim(
            "theorem3-holds",
            f"{2 * runs:,} runs of {tight.rounds} rounds show ε ≥ {format_at_least(shown.measured.epsilon)} "
            f"(wrong once in a million); ours is {format_cost(shown.certified)}, "
            f"Theorem 3's {format_cost(paper)}.",
            judge([shown.measured.epsilon <= shown.certified <= paper]),
            {"measured": shown.measured.epsilon, "ours": shown.certified, "paper": paper},
        )
    ]
    if jacobian.ratio is not None:
        found.append(
            claim(
                "theorem3-jacobian",
                f"E[p_new / p_old] = {jacobian.ratio.mean:.3f} ± {jacobian.ratio.margin:.3f}, {runs:,} runs.",
                judge([jacobian.ratio.holds]),
                {"mean": jacobian.ratio.mean, "margin": jacobian.ratio.margin},
            )
        )
    return [*found, _loose()]


def _loose() -> Claim:
    one = constant_of_theorem_3()
    return claim(
        "theorem3-loose",
        f"One run (C = 1750, B = 9044, V = 2, η = 0.5, α = 3, d = 105, T = 100): {format_cost(one.paper)} by "
        f"Theorem 3, {format_cost(one.pure)} by our pure bound, {format_cost(one.renyi)} at δ = 1e-5.",
        judge([one.renyi < one.pure < one.paper]),
        {"paper": one.paper, "pure": one.pure, "renyi": one.renyi, "ratio": one.paper / one.renyi},
    )


def _paper(case: Case) -> float:
    """Theorem 3 for all rounds of a case, whose site has one neighbour."""
    tables = case.tables()
    if tables.scale is None:
        return 0.0
    c1 = case.loss.curvature_bound
    return float(bounds.paper_epsilon(case.C, tables.eta, 1, case.samples, c1, tables.scale).sum())
