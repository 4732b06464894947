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
    """Verify a budget file and show what was spent, what is left, and every run."""
    from ..core.formatting import format_at_least, format_cost, format_given
    from ..privacy.ledger.budget import Budget, describe_run

    found = Budget(file)
    if as_json:
        typer.echo(json.dumps(_facts(found)))
        return
    limit = f"epsilon = {format_given(found.epsilon)} at delta = {format_given(found.delta)}"
    typer.echo(f"{file}: {limit}, any one {found.unit}")
    typer.echo(f"  spent  {format_cost(found.spent)}")
    typer.echo(f"  left   {format_at_least(found.left)} for one more run")
    for number, run in enumerate(found.runs, 1):
        typer.echo(f"  {number:>3}. {run.time}  {run.what}: {describe_run(run)}")
    typer.echo(f"Head: {found.head.rows} rows, {found.head.digest}. Store it elsewhere: a restored copy of")
    typer.echo("the file lacks later charges, and nothing in the file shows that.")


def _facts(found: Budget) -> dict[str, Any]:
    from ..core.formatting import format_at_least, format_cost

    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "unit": found.unit,
        "accountant": found.accountant,
        "spent": float(format_cost(found.spent)),
        "left": float(format_at_least(found.left)),
        "runs": [
            {
                "what": run.what,
                "time": run.time,
                "epsilon": float(format_cost(run.cost.alone)),
                "against": run.against,
                "finished": run.finished,
            }
            for run in found.runs
        ],
        "head": {"rows": found.head.rows, "digest": found.head.digest},
    }
