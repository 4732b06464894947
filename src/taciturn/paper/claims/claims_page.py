"""docs/paper.md: every claim of the paper, what we measured, whether it holds, and why. Made by the run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ...core.formatting import format_cost
from ...core.versions import versions
from ..figures.attack_runner import AttackFigureResult
from ..figures.runner import FigureResult
from .claim import Claim, Verdict

_MARK = {Verdict.holds: "**holds**", Verdict.in_part: "**in part**", Verdict.fails: "**does not hold**"}

_HEAD = """\
# The paper, reproduced

Zhang, Khalili and Liu, *Improving the Privacy and Accuracy of ADMM-Based Distributed Algorithms* (ICML 2018):
each claim, what we measured, and whether it holds. This page is made by `taciturn reproduce all`; nobody
edits it. PP is the paper's penalty perturbation; DVP and PVP are the dual and primal variable perturbation of
the earlier work [zhang2017]. A run is named by its parameters: "PP 1.04 1.03" has η(t) = 0.5 · 1.04^(t-1) and
α(t) = α(1) · 1.03^(t-1).
"""

_QUICK = "**A quick version**: fewer rows, rounds and repeats than the real one.\n"

_OURS = """\
## What is ours

The paper states η(1), θ, α(1) and the q_i of Figure 1a. It does not state C, ρ, T, the network, nor the q_1
and q_2 of the other figures. The TOML file of each figure states ours; copy it, edit it, and run it with
`taciturn reproduce my.toml --out DIR`. Adult has 45,222 complete rows; the paper's 45,223 counts a comment.
We divide each row by its own norm; dividing all rows by the largest norm changes L(T) by less than the runs
differ among themselves. Columns are scaled by their largest value, as in the paper. That looks at the data:
right for a reproduction, outside any guarantee. All runs are simulated (their noise can be replayed) and
idealised (the exact minimiser is assumed).
"""


def claims_page(
    drawn: Mapping[str, FigureResult | AttackFigureResult],
    claims: Sequence[Claim],
    *,
    quick: bool,
    images: str = "",
) -> str:
    """The page in Markdown; `images` is the prefix of the pictures' names."""
    parts = [_HEAD]
    if quick:
        parts.append(_QUICK)
    parts += [_table(claims), "## Figures\n"]
    parts += [_figure(one, images) for one in drawn.values()]
    parts += [_OURS, _made_by()]
    return "\n".join(parts)


def count(claims: Sequence[Claim]) -> str:
    """26 claims: 18 hold, ..."""
    words = {Verdict.holds: "hold", Verdict.in_part: "hold in part", Verdict.fails: "do not hold"}
    found = {word: sum(claim.verdict == verdict for claim in claims) for verdict, word in words.items()}
    return f"{len(claims)} claims: {', '.join(f'{n} {word}' for word, n in found.items() if n)}."


def _table(claims: Sequence[Claim]) -> str:
    failing = [f"`{claim.key}`" for claim in claims if claim.verdict is not Verdict.holds]
    lines = [f"## Claims\n\n{count(claims)}"]
    if failing:
        lines.append(f"Not as the paper says: {', '.join(failing)}.")
    lines += ["", "| claim | verdict | measured | why |", "|---|---|---|---|"]
    lines += [
        f"| `{claim.key}` {_cell(claim.where)}: {_cell(claim.says)} | {_MARK[claim.verdict]} | "
        f"{_cell(claim.measured)} | {_cell(claim.why)} |"
        for claim in claims
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")


def _figure(drawn: FigureResult | AttackFigureResult, images: str) -> str:
    figure = drawn.figure
    data, run, graph = figure.data, figure.run, figure.graph
    network = graph.kind if graph.degree is None else f"random {graph.degree}-regular graph"
    settings = (
        f"{data.sites} sites ({network}), rows dealt {data.deal}, C = {figure.problem.C:g}, "
        f"ρ = {figure.problem.regularization:.4g}, T = {run.rounds}, runs: {run.repeats}, seed {run.seed}"
    )
    if isinstance(drawn, AttackFigureResult):
        rows = _attack_table(drawn)
    else:
        rows = _convergence_table(drawn) if figure.layout == "convergence" else _tradeoff_table(drawn)
    return "\n".join(
        [
            f"### {figure.title}\n",
            f"![{figure.title}]({images}{figure.name}.png)\n",
            f"{figure.caption}\n",
            f"{settings}.\n",
            *rows,
            "",
        ]
    )


def _tradeoff_table(drawn: FigureResult) -> Iterator[str]:
    yield "| run | L(T) | range | accuracy | P(T) | our pure ε | our ε |"
    yield "|---|---|---|---|---|---|---|"
    for outcome in drawn.outcomes:
        loss = outcome.run.loss[:, -1]
        yield (
            f"| {outcome.name} | {loss.mean():.3f} | {loss.max() - loss.min():.3f} | "
            f"{outcome.run.accuracy[:, -1].mean():.1%} | {_epsilon(outcome.paper[-1])} | "
            f"{_epsilon(outcome.pure[-1])} | {_epsilon(outcome.epsilon[-1])} |"
        )


def _convergence_table(drawn: FigureResult) -> Iterator[str]:
    yield "| run | L(T) | L(f*) | distance from f*, of its norm | disagreement |"
    yield "|---|---|---|---|---|"
    for outcome in drawn.outcomes:
        yield (
            f"| {outcome.name} | {outcome.final_loss:.4f} | {outcome.optimal_loss:.4f} | "
            f"{outcome.distance[:, -1].max():.2%} | {outcome.run.consensus_gap[:, -1].max():.2g} |"
        )


def _attack_table(attacked: AttackFigureResult) -> Iterator[str]:
    names = [observer.name for observer in attacked.figure.observers]
    yield f"| noise | our ε | {' | '.join(f'cosine, η {name}' for name in names)} | random | no attack |"
    yield "|---" * (len(names) + 4) + "|"
    for noise in attacked.figure.noises:
        result = attacked.results[noise.name]
        cosines = " | ".join(f"{attacked.cosine(noise.name, name):.3f}" for name in names)
        level = "none" if noise.rate is None else f"α = {noise.rate:g}"
        yield (
            f"| {level} | {_epsilon(attacked.epsilon[noise.name])} | {cosines} | ±{result.chance:.3f} | "
            f"{result.prior:.3f} |"
        )


def _epsilon(epsilon: float) -> str:
    return format_cost(epsilon) if math.isfinite(epsilon) else "none"


def made_with() -> str:
    """python 3.11.7, taciturn 0.1.0, ..."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())


def _made_by() -> str:
    again = "taciturn reproduce all --out build/paper --docs docs"
    return f"## Made by\n\n    {again}\n\nwith {made_with()}.\n"
