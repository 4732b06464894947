"""tacit demo: the main job on data that needs no account and no server."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import app

if TYPE_CHECKING:
    from rich.table import Table

    from ..experiments.comparison import Compared
    from ..experiments.tasks import Task


class Data(enum.StrEnum):
    """The data sets of the demonstration."""

    auto = "auto"
    adult = "adult"
    breast_cancer = "breast-cancer"


@app.command("demo")
def demo(
    out: Annotated[Path, typer.Option(help="Directory for what is written.")] = Path("tacit-demo"),
    data: Annotated[Data, typer.Option(help="auto: Adult where it can be had.")] = Data.auto,
) -> None:
    """Train one model across five sites: without privacy, and with two private methods at one budget."""
    from rich.console import Console

    from ..engines.progress import progress
    from ..experiments.comparison import compare, methods
    from ..experiments.tasks import find_task

    console = Console()
    task = find_task(data.value)
    console.print(task.about, markup=False, highlight=False)
    results = []
    with progress(len(methods(task)) + 1, "methods") as step:
        for result in compare(task):
            results.append(result)
            step()
    console.print(_table(task, results))
    console.print(results[-1].certificate.statement(), markup=False, highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "certificate.json"
    path.write_text(results[-1].certificate.to_json(), "utf-8")
    console.print(f"\nCertificate: {path}", markup=False, highlight=False, soft_wrap=True)


def _table(task: Task, results: list[Compared]) -> Table:
    from rich.table import Table

    from ..privacy.statement import rounded_up

    table = Table(title=f"{task.rounds} rounds on a ring, the private ones at delta = {task.delta:g}")
    table.add_column("method", no_wrap=True)
    for heading in ("epsilon", "pure epsilon", "paper's bound", "loss", "held-out accuracy"):
        table.add_column(heading, justify="right")
    for result in results:
        certificate = result.certificate
        costs = (certificate.epsilon, certificate.pure_epsilon, certificate.paper_epsilon)
        shown = [rounded_up(cost) if result.private else "no limit" for cost in costs]
        table.add_row(
            result.name, *shown, f"{result.run.loss[0, -1]:.3f}", f"{100 * result.test_accuracy:.1f} %"
        )
    return table
