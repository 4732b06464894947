"""`taciturn attack` tries to reconstruct a record; `taciturn audit` measures lower bounds on epsilon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ..app import app
from ..options import AsJson, say, show_table, usage_errors

if TYPE_CHECKING:
    from ...auditing.attack import AttackResult
    from ...auditing.audit import AuditReport


@app.command("attack")
def attack(
    samples: Annotated[int, typer.Option(min=10, help="The number of records at each site.")] = 1000,
    sites: Annotated[int, typer.Option(min=3, help="The number of sites, which form a ring.")] = 5,
    dimension: Annotated[int, typer.Option(min=2, help="The number of coefficients.")] = 50,
    rounds: Annotated[int, typer.Option(min=1, help="The number of rounds.")] = 50,
    rate: Annotated[
        float | None,
        typer.Option(
            help="The rate of the noise, which has density exp(-rate * norm): a larger rate means less "
            "noise. Without this option there is no noise."
        ),
    ] = None,
    penalty: Annotated[
        float, typer.Option(help="The penalty of ADMM in round 1, which is also the dual step.")
    ] = 0.5,
    penalty_ratio: Annotated[
        float, typer.Option(help="The factor by which the penalty grows in each round.")
    ] = 1.04,
    C: Annotated[
        float | None, typer.Option("--C", help="The weight of the loss; a fifth of --samples by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the rows and the noise.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Measure how well an attacker reconstructs one record of a site.

    The sites train a model by ADMM on synthetic rows. ADMM has two settings: the penalty, which may change in
    every round, and the dual step, which is fixed. The attacker knows all other records of the site, and sees
    every vector that the sites send. To reconstruct the record, the attacker also needs the penalties, which
    are secret. The command compares four attackers. "known" knows the penalties. "constant" assumes that the
    penalty equals the dual step in every round. "estimated" estimates the penalty of each round. "geometric"
    fits a geometric sequence to these estimates. The attack is from Zhang, Khalili and Liu (2018).
    """
    from ... import MADMM, Geometric, Graph, NormNoise, PenaltyPerturbation, Problem
    from ...auditing.attack import run_attack
    from ...planning.proxy import generate_proxy

    with usage_errors():
        rows = generate_proxy(dimension, samples * sites, "classification", seed=seed)
        hands = [(rows.X[i::sites], rows.y[i::sites]) for i in range(sites)]
        problem = Problem(hands, C=samples / 5 if C is None else C, regularization=10**-2.5)
        eta = Geometric(penalty, penalty_ratio)
        method = MADMM(eta, penalty) if rate is None else PenaltyPerturbation(eta, penalty, NormNoise(rate))
        result = run_attack(problem, Graph.ring(sites), method, rounds=rounds, seed=seed)
    if as_json:
        fields = {"chance": result.chance, "prior": result.prior, "prior_label": result.prior_label}
        typer.echo(json.dumps(fields | {"table": result.table()}))
    else:
        _show(result)


def _show(result: AttackResult) -> None:
    columns = ("observer", "rounds", "cosine", "10% to 90%", "label found")
    rows = (
        (
            row["observer"],
            str(row["rounds"]),
            f"{row['cosine']:.3f}",
            f"{row['cosine_low']:.2f} to {row['cosine_high']:.2f}",
            f"{row['label']:.0%}",
        )
        for row in result.table()
    )
    show_table("How well an observer reconstructs one record", rows, columns, left=("observer",))
    say(
        f"For comparison, without an attack: a random guess of the record has an absolute cosine of "
        f"{result.chance:.3f} on average; the mean of the known records has a cosine of {result.prior:.3f}. "
        f"{result.prior_label:.0%} of the attacked records have the label that is more common at the site."
    )


@app.command("audit")
def audit(
    runs: Annotated[
        int,
        typer.Option(
            min=100, help="The number of runs on each of the two data sets, for every tested method."
        ),
    ] = 50_000,
    confidence: Annotated[
        float,
        typer.Option(
            min=0.5,
            max=1 - 1e-12,
            help="The confidence that a measured lower bound is below the true epsilon.",
        ),
    ] = 1 - 1e-6,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="A seed, which makes the audit reproducible; by default, no seed."),
    ] = None,
    as_json: AsJson = False,
    table: Annotated[bool, typer.Option("--table", help="Print the result as a Markdown table.")] = False,
) -> None:
    """Measure lower bounds on epsilon in many worst-case runs.

    For several methods, the command runs the code of a real site on two data sets that differ in one record.
    The easier it is to distinguish the two data sets by the outputs, the larger the lower bound on epsilon.
    The exit code is 1 if a measured lower bound is above the certified upper bound, or if another check
    fails.
    """
    from ...auditing.audit import audit as run_audit

    report = run_audit(runs=runs, confidence=confidence, seed=seed)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    elif table:
        from ...auditing.audit import markdown

        typer.echo(markdown(report), nl=False)
    else:
        _show_audit(report)
    if not report.passed:
        raise typer.Exit(1)


def _show_audit(report: AuditReport) -> None:
    from ...core.formatting import format_at_least, format_cost, format_delta

    rows = (
        (
            result.case,
            format_delta(result.measured.delta),
            format_at_least(result.measured.epsilon),
            format_cost(result.certified),
            "" if result.ratio is None else f"{result.ratio.mean:.3f} +- {result.ratio.margin:.3f}",
            "ok" if result.passed else "FAILED",
        )
        for result in report.results
    )
    columns = ("case", "delta", "measured", "certified", "mean ratio", "verdict")
    show_table("Measured lower bounds and certified upper bounds", rows, columns, left=("case", "verdict"))
    say("A mean ratio of 1 shows that the computed densities of the outputs match the noise that was drawn.")
    say(report.sentence())
