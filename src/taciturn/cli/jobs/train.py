"""`taciturn check job.toml` checks the tables of a job; `taciturn train job.toml` trains a model on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..app import app
from ..options import AsJson, say, show_table

if TYPE_CHECKING:
    from ...jobs.train_job import TrainedJob


@app.command("check")
def check(
    job: Annotated[Path, typer.Argument(help="The job file of `taciturn train`.")],
    site: Annotated[str | None, typer.Option(help="Check only the table of this site.")] = None,
) -> None:
    """Check the tables of a job before you train.

    The command shows which values do not fit the schema (the columns, ranges and categories that the job file
    declares), and whether there are enough rows. It trains no model, spends no privacy budget and writes no
    file. Do not share the output: its counts are computed without noise.
    """
    from ...core.errors import ParameterError
    from ...jobs.statistics import check_tables
    from ...jobs.training_job import read_job
    from ...statistics.table_check import OWNER_ONLY

    wanted = read_job(job)
    if site is not None and site not in wanted.names:
        raise ParameterError(f"`--site` must be one of {', '.join(wanted.names)}; got {site!r}.")
    typer.echo(f"({OWNER_ONLY})")
    for name, found in check_tables(wanted, job.parent).items():
        if site in (None, name):
            typer.echo(f"\n{name}: {found.rows} rows, {found.zeros} of which become zeros and have no effect")
            typer.echo("\n".join(found.lines()))
    typer.echo("\nNothing was trained or spent.")


@app.command("train")
def train(
    job: Annotated[Path, typer.Argument(help="The job file; `taciturn init` writes an example.")],
    out: Annotated[
        Path | None,
        typer.Option(help="A new or empty folder for the results; `run` in the job's folder by default."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the job and its files. This may create a budget file.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Start a new run after an interrupted run. The costs of both runs add up."
        ),
    ] = False,
    personalise: Annotated[
        bool,
        typer.Option(
            "--personalise",
            help="Also make a model for each site: the joint model, adapted to the site's rows without "
            "noise. The command writes it beside the site's table. Never share it.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train one model across sites within a privacy budget.

    The command checks the job and its files before it spends any privacy budget. Before each round starts, it
    records the cost of the round in a file (the ledger), so that a crash never hides a cost. It does not show
    the loss and the accuracy on the training records, because no noise protects these numbers.
    """
    from ...jobs.train_job import prepare_job

    ready = prepare_job(job, out, again=again)
    if check:
        rows, sites = len(ready.rows.y), len(ready.job.sites)
        typer.echo(f"{job}: {rows} rows at {sites} sites; everything is in order.")
        typer.echo("The values were not checked: the owner of the rows checks them with `taciturn check`.")
        return
    done = ready.train(verbose=True)
    if as_json:
        typer.echo(json.dumps(_facts(done)))
    else:
        _show(done)
    if personalise:
        from ...jobs.own_models import NOT_TO_BE_SHARED, personalise_job

        for path in personalise_job(done, job.parent):
            typer.echo(f"wrote {path}: {NOT_TO_BE_SHARED}", err=as_json)


def _facts(done: TrainedJob) -> dict[str, Any]:
    job, certificate = done.job, done.estimator.certificate_
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
        "files": [str(path) for path in done.files],
    }


def _show(done: TrainedJob) -> None:
    from ...core.formatting import format_cost, format_delta, format_given

    job, fitted = done.job, done.estimator
    certificate = fitted.certificate_
    sites = ", ".join(f"{facts.name} ({facts.samples:,} rows)" for facts in certificate.sites[:8])
    more = f" and {len(certificate.sites) - 8} more" if len(certificate.sites) > 8 else ""
    delta = format_delta(certificate.delta)
    entries = {
        "sites": sites + more,
        "epsilon": f"{format_cost(certificate.epsilon)} of {format_given(job.epsilon)}, at delta = {delta}",
        "rounds": f"{certificate.rounds}, with {certificate.run.noise} noise",
        "model": f"{fitted.trace_.released.shape[3]} numbers, {fitted.trace_.released.shape[2]} output(s)",
        "noise": "from a seed: not private" if certificate.run.simulated else "secret; no seed was kept",
    }
    show_table(job.name, entries.items())
    say(certificate.statement())
    if done.budget is None:
        say("\nIf you run again on the same rows, you pay again: the epsilons add up.")
    else:
        say(f"\n{done.budget}, in {done.budget.path}", soft_wrap=True)
    for path in done.files:
        say(f"wrote {path}", soft_wrap=True)
