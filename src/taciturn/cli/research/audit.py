"""`taciturn audit`: measure lower bounds on epsilon in many runs, and compare them with certificates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ..app import app
from ..options import AsJson, say, show_table

if TYPE_CHECKING:
    from ...auditing.audit import AuditReport


@app.command("audit")
def audit(
    runs: Annotated[
        int,
        typer.Option(
            min=100, help="For each case: the runs on each of two data sets that differ in one record."
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
        int | None, typer.Option(min=0, help="A seed makes the audit reproducible; by default there is none.")
    ] = None,
    as_json: AsJson = False,
    table: Annotated[bool, typer.Option("--table", help="Print the result as a Markdown table.")] = False,
) -> None:
    """Measure lower bounds on epsilon in many worst-case runs.

    For several methods, the command runs the code of a real site on two data sets that differ in one record.
    How well the outputs can be told apart gives a lower bound on epsilon. The exit code is 1 if a measured
    lower bound is above the certified upper bound, or another check fails.
    """
    from ...auditing.audit import audit as run_audit

    report = run_audit(runs=runs, confidence=confidence, seed=seed)
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    elif table:
        from ...auditing.audit import markdown

        typer.echo(markdown(report), nl=False)
    else:
        _show(report)
    if not report.passed:
        raise typer.Exit(1)


def _show(report: AuditReport) -> None:
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
    say("The mean ratio of the densities on the two data sets must be 1: this checks the computed densities.")
    say(report.sentence())
