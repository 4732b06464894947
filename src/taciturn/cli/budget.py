"""`taciturn budget show budget.sqlite`: list the runs that share a privacy budget, and what is left of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app
from .options import AsJson

if TYPE_CHECKING:
    from ..privacy.ledger.budget_file import BudgetRun

group = typer.Typer(
    help="Show a privacy budget that several runs share.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(group, name="budget")


@group.command("show")
def show(
    file: Annotated[Path, typer.Argument(help="The budget file, such as budget.sqlite.")],
    as_json: AsJson = False,
) -> None:
    """Verify a budget file, and show its runs and how much of the budget is left.

    A budget file records what several runs on the same records cost.
    """
    from ..core.formatting import format_at_least, format_cost, format_given
    from ..privacy.ledger.budget import Budget, describe_run

    found = Budget(file)
    spent, left = format_cost(found.spent), format_at_least(found.left)
    if as_json:
        facts = {name: getattr(found, name) for name in ("epsilon", "delta", "unit", "accountant")}
        facts |= {"spent": float(spent), "left": float(left), "runs": [_run(run) for run in found.runs]}
        facts["head"] = {"rows": found.head.rows, "digest": found.head.digest}
        typer.echo(json.dumps(facts))
        return
    limit = f"epsilon = {format_given(found.epsilon)} at delta = {format_given(found.delta)}"
    typer.echo(f"{file}: {limit}, for any one {found.unit}")
    typer.echo(f"  spent  {spent}")
    typer.echo(f"  left   {left} for one more run")
    for number, run in enumerate(found.runs, 1):
        typer.echo(f"  {number:>3}. {run.time}  {run.what}: {describe_run(run)}")
    typer.echo(f"Head (number of rows, hash of the last row): {found.head.rows} rows, {found.head.digest}.")
    typer.echo("Note the head in another place: if an older copy replaces this file, later charges are lost,")
    typer.echo("and only the note reveals the loss.")


def _run(run: BudgetRun) -> dict[str, Any]:
    from ..core.formatting import format_cost

    facts = {name: getattr(run, name) for name in ("what", "time", "against", "finished")}
    return facts | {"epsilon": float(format_cost(run.cost.alone))}
