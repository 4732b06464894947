"""`taciturn site approve`: the owner of a table approves or refuses a job, or reads the log of answers."""

from __future__ import annotations

from typing import Annotated

import typer

from ...core.errors import ParameterError, one_line
from .run import SiteFile, site


@site.command("approve")
def approve(
    file: SiteFile,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False,
    refuse: Annotated[
        bool, typer.Option("--refuse", help="Refuse the job, also after an earlier approval.")
    ] = False,
    log: Annotated[
        bool,
        typer.Option("--log", help="Only show the earlier approvals and refusals of jobs on this table."),
    ] = False,
) -> None:
    """Show what a job asks and costs; then approve or refuse it.

    The owner of the rows decides. A site runs a job only with this approval, or if a rule in site.toml
    approves it.
    """
    from ...core.formatting import format_at_least
    from ...sites.files.site import load_site
    from ...sites.rounds.prepare import make_ready
    from ...sites.state.account import open_account
    from ...sites.state.approval import answer_by_hand, audit_log, question, what_for

    if yes + refuse + log > 1:
        raise ParameterError("give at most one of `--yes`, `--refuse` and `--log`.")
    loaded = load_site(file)
    account = open_account(loaded)
    if account is None:
        typer.echo("the job has a seed: a rehearsal needs no approval, only `rehearsal = true` in site.toml")
        return
    if log:
        for entry in audit_log(account).entries():
            asked = f"{', '.join(entry['kinds'])} in job {entry['name']}, {entry['job'][:16]}"
            typer.echo(one_line(f"{entry['at']} {entry['answer']} by {entry['by']}: {asked}"))
        return
    planned = make_ready(loaded).planned()
    for line in question(loaded, planned).lines(account.seen()):
        typer.echo(one_line(line))
    if not refuse:
        left = format_at_least(account.can_pay(planned, what_for(loaded)))
        typer.echo(f"  after this job, one more job may cost at most epsilon {left}")
    if not refuse and not yes and not typer.confirm("Do you approve the job?"):
        refuse = True
    answer_by_hand(loaded, planned, account, approve=not refuse)
    typer.echo(
        "refused: this site will not run the job" if refuse else "approved: start with taciturn site run"
    )
    if refuse:
        raise typer.Exit(1)
