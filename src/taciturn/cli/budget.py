"""`taciturn budget show ledger.sqlite`: what all runs on the same records cost together, and what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app

if TYPE_CHECKING:
    from ..privacy.ledger.budget import Budget

group = typer.Typer(
    help="Budgets over several runs on the same records.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(group, name="budget")


@group.callback()
def budget() -> None:
    """Budgets over several runs on the same records."""


@group.command("show")
def show(
    file: Annotated[Path, typer.Argument(help="The file of the budget.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was spent, what is left, and every run that was ever reserved. The file is verified."""
    from ..privacy.ledger.budget import Budget, describe_run, round_down, round_up

    found = Budget(file)
    if as_json:
        typer.echo(json.dumps(_facts(found)))
        return
    typer.echo(f"{file}: epsilon = {found.epsilon:g} at delta = {found.delta:g}, any one {found.unit}")
    typer.echo(f"  spent  {round_up(found.spent)}")
    typer.echo(f"  left   {round_down(found.left)} for one more run")
    for number, run in enumerate(found.runs, 1):
        typer.echo(f"  {number:>3}. {run.time}  {run.what}: {describe_run(run)}")
    typer.echo(f"Head: {found.head.rows} rows, {found.head.digest}. Note it elsewhere: a copy or a backup of")
    typer.echo("the file that is put back forgets what was charged since, and nothing in it can show that.")


def _facts(found: Budget) -> dict[str, Any]:
    from ..privacy.ledger.budget import round_down, round_up

    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "unit": found.unit,
        "accountant": found.accountant,
        "spent": float(round_up(found.spent)),
        "left": float(round_down(found.left)),
        "runs": [
            {
                "what": run.what,
                "time": run.time,
                "epsilon": float(round_up(run.cost.alone)),
                "against": run.against,
                "finished": run.finished,
            }
            for run in found.runs
        ],
        "head": {"rows": found.head.rows, "digest": found.head.digest},
    }
