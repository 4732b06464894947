"""`taciturn demo`: compare ways to train one model across five sites, on a public data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from .app import app
from .options import say, show_table

if TYPE_CHECKING:
    from ..paper.demo.comparison import Choice
    from ..paper.demo.tasks import Task
    from ..privacy.certificate.certificate import Certificate


@app.command("demo")
def demo(
    out: Annotated[
        Path, typer.Option(help="The folder for the picture, the report and the certificate.")
    ] = Path("taciturn-demo"),
    data: Annotated[
        Literal["auto", "adult", "breast-cancer"],
        typer.Option(help="The data set. auto uses adult, or breast-cancer if adult is not available."),
    ] = "auto",
) -> None:
    """Compare ways to train one model across five sites.

    The rows are from a public data set. The command trains in several ways: on the rows of all sites
    together, without noise; at each site alone, without noise; across the sites, with noise that protects a
    site even if all other sites work with an attacker; and across the sites, with less noise, which protects
    a site if at most one other site works with an attacker.
    """
    from ..core.progress import progress
    from ..paper.demo.comparison import compare, count_choices
    from ..paper.demo.tasks import find_task
    from ..privacy.certificate.summary import five_lines

    task = find_task(data)
    say(f"{task.about} The sites may not share their rows.\n")
    choices = []
    with progress(count_choices(task), "models") as step:
        for choice in compare(task):
            choices.append(choice)
            step()
    shown = [choice for choice in choices if choice.epsilon in (None, task.epsilon)]
    title = f"five sites, delta = {task.delta:g}; loss and accuracy on held-out rows"
    columns = ("choice", "epsilon", "if all collude", "loss", "accuracy")
    show_table(title, map(_row, shown), columns, left=("choice",))
    say("\nThe certificate of the model in the last row, in five lines:\n")
    certificate = cast("Certificate", shown[-1].certificate)
    for line in five_lines(certificate):
        say(f"  {line}")
    say("")
    for what, path in _write(task, choices, certificate, out).items():
        say(f"{what}: {path}", soft_wrap=True)


def _row(choice: Choice) -> list[str]:
    from ..core.formatting import format_cost

    certificate = choice.certificate
    costs = ["no limit" if choice.name == "no privacy" else "nothing sent"] * 2
    if certificate is not None:
        costs = [format_cost(cost) for cost in (certificate.epsilon, certificate.epsilon_against(None))]
    return [choice.name, *costs, f"{choice.test_loss:.3f}", f"{100 * choice.test_accuracy:.1f} %"]


def _write(task: Task, choices: list[Choice], stated: Certificate, out: Path) -> dict[str, Path]:
    """Write the picture of all choices, and the report and certificate of the choice that has `stated`.

    Returns the paths of these files.
    """
    from ..paper.demo.comparison import draw
    from ..report import Illustration, KeyNumber, from_certificates, write

    last = next(choice for choice in choices if choice.certificate is stated)
    out.mkdir(parents=True, exist_ok=True)
    picture = draw(task, choices)
    picture.savefig(out / "demo.png", dpi=160)
    described = "; ".join(f"{choice.name}: loss {choice.test_loss:.3f}" for choice in choices)
    page = from_certificates(
        {"this run": stated},
        title=f"{task.name} at five sites",
        subtitle=task.about,
        graph=task.graph,
        quality={
            "this run": [
                KeyNumber("Loss on held-out rows", last.test_loss),
                KeyNumber("Accuracy on held-out rows", last.test_accuracy, "percent"),
            ]
        },
        illustration=Illustration(described, (out / "demo.png").read_bytes()),
    )
    report = write(page, out / "report.html")
    certificate = out / "certificate.json"
    certificate.write_text(stated.to_json(), "utf-8")
    return {"Picture": out / "demo.png", "Certificate": certificate, "Report": report}
