"""`taciturn check job.toml`: what a job would make of its tables, before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..app import app

if TYPE_CHECKING:
    from ...jobs.checking import TableCheck


@app.command("check")
def check(
    job: Annotated[Path, typer.Argument(help="The job file of `taciturn train`.")],
    site: Annotated[str | None, typer.Option(help="Only the table of this site.")] = None,
) -> None:
    """Count, column by column, how many cells fit the schema; nothing is trained, spent or written.

    The counts are computed from the rows: they are for the owner's eyes, on this screen, and nowhere else.
    """
    from ...errors import ParameterError
    from ...jobs.checking import OWNER_ONLY, check_tables
    from ...jobs.training_job import read_job

    wanted = read_job(job)
    if site is not None and site not in wanted.names:
        raise ParameterError(f"`--site` must be one of {', '.join(wanted.names)}; got {site!r}.")
    typer.echo(f"({OWNER_ONLY})")
    for found in check_tables(wanted, job.parent):
        if site in (None, found.site):
            _show(found)
    typer.echo("Nothing was trained or spent.")


def _show(found: TableCheck) -> None:
    width = max(len(counts.name) for counts in found.columns)
    typer.echo(f"\n{found.site}: {found.rows} rows, {found.zeros} of which become zeros and teach nothing")
    typer.echo(f"  {'column':{width}} {'fit':>9} {'moved':>9} {'unknown':>9} {'missing':>9}")
    for c in found.columns:
        typer.echo(f"  {c.name:{width}} {c.fit:>9} {c.moved:>9} {c.unknown:>9} {c.missing:>9}")
    for line in found.troubles:
        typer.echo(f"  WARNING {line}")
