"""`tacit train job.toml`: from files to a model, a certificate, a trace and a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ParameterError
from .app import app

if TYPE_CHECKING:
    from ..estimators.base import PrivateLinearModel
    from ..estimators.files.job import Job

MODEL, CERTIFICATE, TRACE, REPORT = "model.json", "certificate.json", "trace.npz", "report.html"


@app.command("train")
def train(
    job: Annotated[Path, typer.Argument(help="The job file; `tacit init` writes one to start from.")],
    out: Annotated[
        Path | None, typer.Option(help="A new or empty folder for the results; `run` beside the job.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check everything, train nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train one model across sites within a privacy budget.

    Everything is checked before anything is spent. The training loss and accuracy are not shown: they are
    computed from the records, and no noise covers them.
    """
    from ..estimators.files.job import read_job
    from ..estimators.files.training import fit, gather

    wanted = read_job(job)
    folder = job.parent / "run" if out is None else out
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(f"`--out` must be a new or empty folder; got {folder}, which holds something.")
    rows = gather(wanted, job.parent)
    if check:
        typer.echo(f"{job}: {len(rows.y)} rows at {len(wanted.site)} sites; everything is in order.")
        return
    fitted, model = fit(wanted, rows)
    _write(folder, wanted, fitted, model.to_json())
    if as_json:
        typer.echo(json.dumps(_facts(wanted, fitted, folder)))
    else:
        _show(wanted, fitted, folder)


def _write(folder: Path, job: Job, fitted: PrivateLinearModel, model: str) -> None:
    import numpy as np

    from ..report import write

    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_text(model, encoding="utf-8")
    (folder / CERTIFICATE).write_text(fitted.certificate_.to_json(), encoding="utf-8")
    names = np.array(fitted.trace_.settings["names"])
    np.savez_compressed(folder / TRACE, released=fitted.trace_.released, sites=names)
    write(_report(job, fitted), folder / REPORT)


def _report(job: Job, fitted: PrivateLinearModel) -> Any:
    """The run as a page: what it cost, and how far apart the sites were, both made of released vectors."""
    import numpy as np

    from ..graph import Graph
    from ..report import Chart, Curve, from_certificates

    settings = dict(fitted.trace_.settings)
    released = fitted.trace_.released
    gap = np.linalg.norm(released - released.mean(axis=1, keepdims=True), axis=3).max(axis=(1, 2))
    gaps = Chart(
        "gap",
        "Disagreement",
        "largest distance of a site from the mean",
        [Curve(job.name, range(1, len(gap) + 1), gap.tolist())],
        note="Made of what the sites released. Loss and accuracy are left out: no noise covers them.",
    )
    facts, versions = settings.pop("graph"), settings.pop("versions")
    hidden = ("simulated", "repeats", "seed", "names", "samples")
    return from_certificates(
        {job.name: fitted.certificate_},
        title=job.name,
        subtitle=f"{len(job.site)} sites learn {job.label.column} together",
        graph=Graph(facts["sites"], tuple((i, j) for i, j in facts["edges"]), facts["name"]),
        charts=[gaps] if len(gap) > 1 else [],
        settings={key: value for key, value in settings.items() if key not in hidden},
        provenance={"versions": versions},
    )


def _facts(job: Job, fitted: PrivateLinearModel, folder: Path) -> dict[str, Any]:
    certificate = fitted.certificate_
    return {
        "name": job.name,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "asked": job.epsilon,
        "simulated": certificate.run.simulated,
        "rounds": certificate.rounds,
        "noise": certificate.run.noise,
        "samples": {facts.name: facts.samples for facts in certificate.sites},
        "files": [str(folder / name) for name in (MODEL, CERTIFICATE, TRACE, REPORT)],
    }


def _show(job: Job, fitted: PrivateLinearModel, folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..privacy.statement import rounded_up

    certificate = fitted.certificate_
    console = Console(highlight=False)
    table = Table(title=job.name, show_header=False)
    sites = ", ".join(f"{facts.name} ({facts.samples:,} rows)" for facts in certificate.sites[:8])
    more = f" and {len(certificate.sites) - 8} more" if len(certificate.sites) > 8 else ""
    entries = {
        "sites": sites + more,
        "epsilon": f"{rounded_up(certificate.epsilon)} of {job.epsilon:g}, at delta = {certificate.delta:g}",
        "rounds": f"{certificate.rounds}, with {certificate.run.noise} noise",
        "model": f"{fitted.trace_.released.shape[3]} numbers, {fitted.trace_.released.shape[2]} output(s)",
        "noise": "replayable: a rehearsal" if certificate.run.simulated else "secret, and gone",
    }
    for name, value in entries.items():
        table.add_row(name, value)
    console.print(table)
    console.print(certificate.statement(), markup=False)
    console.print("\nAnother run on the same rows costs again: the epsilons add up.", markup=False)
    for name in (MODEL, CERTIFICATE, TRACE, REPORT):
        console.print(f"wrote {folder / name}", markup=False, soft_wrap=True)
