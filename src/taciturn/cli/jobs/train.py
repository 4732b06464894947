"""`taciturn train job.toml`: from files to a model, a certificate, a trace and a report."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import TaciturnError
from ...jobs.run_folder import (
    CERTIFICATE,
    LEDGER,
    MODEL,
    REPORT,
    RESULTS,
    TRACE,
    earlier,
    set_aside,
    write_results,
)
from ..app import app

if TYPE_CHECKING:
    from ...estimators.base import PrivateLinearModel
    from ...jobs.training import TrainingRows
    from ...jobs.training_job import TrainingJob


@app.command("train")
def train(
    job: Annotated[Path, typer.Argument(help="The job file; `taciturn init` writes one to start from.")],
    out: Annotated[
        Path | None, typer.Option(help="A new or empty folder for the results; `run` beside the job.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check everything, train nothing.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run anew where a run was cut off; both costs add up.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Train one model across sites within a privacy budget.

    Everything is checked before anything is spent; what is spent is in the folder's ledger before anything
    comes of it. The training loss and accuracy are not shown: they are computed from the records, and no
    noise covers them.
    """
    from ...jobs.training import gather
    from ...jobs.training_job import read_job

    wanted = read_job(job)
    folder = job.parent / "run" if out is None else out
    before = earlier(folder, wanted.delta or 1e-5, again=again)
    rows = gather(wanted, job.parent)
    if check:
        typer.echo(f"{job}: {len(rows.y)} rows at {len(wanted.sites)} sites; everything is in order.")
        typer.echo("The cells were not judged; `taciturn check` counts them, for the rows' owner alone.")
        return
    marks = tuple(f"a run before this one was {run.words()}: that comes on top" for run in before)
    fitted = _spend(wanted, rows, folder, marks)
    if as_json:
        typer.echo(json.dumps(_facts(wanted, fitted, folder)))
    else:
        _show(wanted, fitted, folder)


def _spend(job: TrainingJob, rows: TrainingRows, folder: Path, marks: tuple[str, ...]) -> PrivateLinearModel:
    """The fit and its files; whatever stops it, what was spent until then is on record."""
    from ...estimators.charging import LedgerFile
    from ...jobs.training import fit

    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    ledger = None if job.seed is not None else folder / LEDGER
    try:
        set_aside(folder)
        fitted, model = fit(job, rows, None if ledger is None else LedgerFile(ledger, marks))
        write_results(folder, _contents(job, fitted, model.to_json()))
    except KeyboardInterrupt:
        raise TaciturnError(f"stopped; {_left(folder)}.") from None
    except OSError as error:
        raise TaciturnError(f"{folder}: {error.strerror}; {_left(folder)}.") from error
    finally:
        if made and not any(folder.iterdir()):
            folder.rmdir()
    (folder / (LEDGER + ".lock")).unlink(missing_ok=True)
    return fitted


def _left(folder: Path) -> str:
    """What a run that did not come to its end leaves behind."""
    return f"what it spent is in {folder / LEDGER}" if (folder / LEDGER).exists() else "nothing was spent"


def _contents(job: TrainingJob, fitted: PrivateLinearModel, model: str) -> dict[str, bytes]:
    """What each file of a run holds."""
    import numpy as np

    from ...report import render

    trace = io.BytesIO()
    names = np.array(fitted.trace_.settings["names"])
    np.savez_compressed(trace, released=fitted.trace_.released, sites=names)
    return {
        MODEL: model.encode(),
        CERTIFICATE: fitted.certificate_.to_json().encode(),
        TRACE: trace.getvalue(),
        REPORT: render(_report(job, fitted)).encode(),
    }


def _report(job: TrainingJob, fitted: PrivateLinearModel) -> Any:
    """The run as a page: what it cost, and how far apart the sites were, both made of released vectors."""
    import numpy as np

    from ...graph import Graph
    from ...report import Chart, Curve, from_certificates

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
        subtitle=f"{len(job.sites)} sites learn {job.label.column} together",
        graph=Graph(facts["sites"], tuple((i, j) for i, j in facts["edges"]), facts["name"]),
        charts=[gaps] if len(gap) > 1 else [],
        settings={key: value for key, value in settings.items() if key not in hidden},
        provenance={"versions": versions},
    )


def _facts(job: TrainingJob, fitted: PrivateLinearModel, folder: Path) -> dict[str, Any]:
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
        "marks": list(certificate.run.marks),
        "files": [str(folder / name) for name in _files(folder)],
    }


def _show(job: TrainingJob, fitted: PrivateLinearModel, folder: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from ...privacy.certificate.numbers import rounded_up

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
    for name in _files(folder):
        console.print(f"wrote {folder / name}", markup=False, soft_wrap=True)


def _files(folder: Path) -> list[str]:
    return [name for name in (*RESULTS, LEDGER) if (folder / name).exists()]
