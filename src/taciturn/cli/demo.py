"""`taciturn demo`: the main job on data that needs no account and no server."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import app

if TYPE_CHECKING:
    from rich.table import Table

    from ..experiments.demo.comparison import MethodResult
    from ..experiments.demo.tasks import Task


class DemoData(enum.StrEnum):
    """The data sets of the demonstration."""

    auto = "auto"
    adult = "adult"
    breast_cancer = "breast-cancer"


@app.command("demo")
def demo(
    out: Annotated[Path, typer.Option(help="Directory for the report and the certificate.")] = Path(
        "taciturn-demo"
    ),
    data: Annotated[DemoData, typer.Option(help="auto: Adult where it can be had.")] = DemoData.auto,
) -> None:
    """Train one model across five sites: without privacy, trusting nobody, and trusting all but one."""
    from rich.console import Console

    from ..experiments.demo.comparison import NAMES, compare
    from ..experiments.demo.tasks import find_task
    from ..progress import progress

    console = Console(highlight=False)
    task = find_task(data.value)
    console.print(f"{task.about} They may not share it.\n", markup=False)
    results = []
    with progress(len(NAMES), "methods") as step:
        for result in compare(task):
            results.append(result)
            step()
    console.print(_table(task, results))
    console.print(
        f"\nWhat may be claimed of the last run:\n\n{results[-1].certificate.statement()}\n", markup=False
    )
    for what, path in _written(task, results, out).items():
        console.print(f"{what}: {path}", markup=False, soft_wrap=True)


def _table(task: Task, results: list[MethodResult]) -> Table:
    from rich.table import Table

    from ..privacy.accounting.shown import rounded_up

    table = Table(title=f"five sites on a ring, delta = {task.delta:g}; loss and accuracy on rows held out")
    table.add_column("choice", no_wrap=True)
    for heading in ("rounds", "epsilon", "if all collude", "loss", "accuracy"):
        table.add_column(heading, justify="right")
    for result in results:
        certificate = result.certificate
        costs = (certificate.epsilon, certificate.epsilon_against(None))
        shown = [rounded_up(cost) if result.private else "no limit" for cost in costs]
        quality = f"{result.test_loss:.3f}", f"{100 * result.test_accuracy:.1f} %"
        table.add_row(result.name, str(certificate.rounds), *shown, *quality)
    return table


def _written(task: Task, results: list[MethodResult], out: Path) -> dict[str, Path]:
    """The report of all runs and the certificate of the last."""
    from ..report import from_runs, write

    page = from_runs(
        {result.name: result.run for result in results},
        title=f"{task.name} at five sites",
        subtitle=f"{task.about} No privacy, noise of each site's own, masked sums, at one budget.",
        delta=task.delta,
    )
    report = write(page, out / "report.html")
    certificate = out / "certificate.json"
    certificate.write_text(results[-1].certificate.to_json(), "utf-8")
    return {"Certificate": certificate, "Report": report}
