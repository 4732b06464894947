"""`taciturn check job.toml`: check whether the tables fit the job, before any budget is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..app import app


@app.command("check")
def check(
    job: Annotated[Path, typer.Argument(help="The job file of `taciturn train`.")],
    site: Annotated[str | None, typer.Option(help="Check only the table of this site.")] = None,
) -> None:
    """Check the tables of a job before you train.

    The command shows which values do not fit the schema (the columns, ranges and categories that the job file
    declares), and says whether there are enough rows. It does not train, spend or write anything. The output
    is for the owner of the rows only: its counts are computed without noise, so do not share them.
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
