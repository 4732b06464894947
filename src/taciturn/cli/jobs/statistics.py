"""`taciturn evaluate model.json job.toml` and `taciturn describe job.toml`: scores and tables with noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..app import app

if TYPE_CHECKING:
    from ...privacy.certificate.certificate import Certificate
    from ...statistics.descriptions import ColumnDescription
    from ...statistics.estimates import Estimate
    from ...statistics.scores import PrivateScore

_Epsilon = Annotated[float, typer.Option(help="What it may cost any one record or person.")]
_Bins = Annotated[int, typer.Option(help="Cells of a score or of a range.")]
_Kept = Annotated[Path | None, typer.Option("--certificate", help="Write the certificate to this file.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("evaluate")
def evaluate(
    model: Annotated[Path, typer.Argument(help="The model.json of `taciturn train`, or of any site.")],
    job: Annotated[Path, typer.Argument(help="A job file: whose tables, and which label.")],
    epsilon: _Epsilon = 0.5,
    bins: _Bins = 20,
    certificate: _Kept = None,
    as_json: _Json = False,
) -> None:
    """Score a model on private tables: accuracy, confusion matrix, AUC and calibration, from one noisy sum.

    delta, colluding, person and budget are those of the job. It costs epsilon on top of what training did.
    """
    from ...jobs.statistics import evaluate_job

    found = evaluate_job(model, job, epsilon=epsilon, bins=bins)
    _keep(found.certificate, certificate)
    if as_json:
        typer.echo(json.dumps(_score_facts(found)))
        return
    typer.echo(f"accuracy  {found.accuracy}\nAUC       {found.auc}")
    typer.echo(f"rows of each class (down) given each class (across), up to {found.margin:.0f} off:")
    for label, row in zip(found.classes, found.confusion, strict=True):
        typer.echo("  " + "".join(f"{count:>10.0f}" for count in row) + f"  {label}")
    typer.echo(f"\n{found.certificate.statement()}")


@app.command("describe")
def describe(
    job: Annotated[Path, typer.Argument(help="A job file: whose tables, and which columns and ranges.")],
    epsilon: _Epsilon = 0.5,
    bins: _Bins = 20,
    certificate: _Kept = None,
    as_json: _Json = False,
) -> None:
    """Describe private tables before training: means, quantiles, shares and histograms, from one noisy sum.

    delta, colluding, person and budget are those of the job. Mend the ranges of its schema by what you see.
    """
    from ...jobs.statistics import describe_job

    found = describe_job(job, epsilon=epsilon, bins=bins)
    _keep(found.certificate, certificate)
    if as_json:
        columns = {column.name: _column_facts(column) for column in found}
        typer.echo(json.dumps({"columns": columns, **_cost(found.certificate)}))
        return
    for column in found:
        typer.echo(repr(column))
    typer.echo(f"\n{found.certificate.statement()}")


def _keep(certificate: Certificate, path: Path | None) -> None:
    from ...diskfile import write_whole

    if path is not None:
        write_whole(path, certificate.to_json())


def _cost(certificate: Certificate) -> dict[str, Any]:
    return {
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "simulated": certificate.run.simulated,
    }


def _interval(estimate: Estimate | None) -> dict[str, float | None] | None:
    """JSON knows no nan: None stands for it."""
    if estimate is None:
        return None
    value = None if estimate.value != estimate.value else estimate.value
    return {"value": value, "low": estimate.low, "high": estimate.high}


def _score_facts(found: PrivateScore) -> dict[str, Any]:
    curves = {
        str(label): [{"score": p.score, "rows": p.rows, "share": _interval(p.share)} for p in points]
        for label, points in found.calibration.items()
    }
    return {
        "accuracy": _interval(found.accuracy),
        "auc": _interval(found.auc),
        "classes": list(found.classes),
        "confusion": found.confusion.tolist(),
        "margin": found.margin,
        "calibration": curves,
        **_cost(found.certificate),
    }


def _column_facts(column: ColumnDescription) -> dict[str, Any]:
    spots = None if column.quantiles is None else {str(q): _interval(e) for q, e in column.quantiles.items()}
    return {
        "readable": _interval(column.readable),
        "mean": _interval(column.mean),
        "quantiles": spots,
        "shares": {name: _interval(share) for name, share in column.shares.items()},
    }
