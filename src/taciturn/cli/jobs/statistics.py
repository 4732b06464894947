"""`taciturn evaluate`, `taciturn ask` and `taciturn describe`: noisy answers from private tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.files import check_folder, write_whole
from ..app import app
from ..options import AsJson

if TYPE_CHECKING:
    from ...questions.shipped.description import PrivateDescription
    from ...questions.shipped.score import PrivateScore

_Epsilon = Annotated[
    float, typer.Option(help="The privacy cost epsilon of this command, for any one record or person.")
]
_Kept = Annotated[Path | None, typer.Option("--certificate", help="Write the certificate to this file.")]


@app.command("evaluate")
def evaluate(
    model: Annotated[Path, typer.Argument(help="The file model.json that `taciturn train` or a site wrote.")],
    job: Annotated[Path, typer.Argument(help="A job file, which names the sites and the label.")],
    epsilon: _Epsilon = 0.5,
    bins: Annotated[
        int, typer.Option(help="The number of bins of the histogram of predicted scores; must be even.")
    ] = 20,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="Declare that the model was made without these rows. The model's certificate is then not "
            "checked.",
        ),
    ] = False,
    certificate: _Kept = None,
    as_json: AsJson = False,
) -> None:
    """Score a classifier on private tables, with noise.

    The score consists of accuracy, confusion matrix, AUC and calibration. Its privacy cost adds to the cost
    of training. The command uses these keys of the job file: delta (or 1e-5 if delta is 0), large_delta,
    colluding, person and seed. If owner.toml (the file beside the job that says where the rows are) has a
    budget, the cost is charged to it.
    """
    from ...jobs.statistics import evaluate_job

    check_folder("--certificate", certificate)
    found = evaluate_job(model, job, epsilon=epsilon, bins=bins, public=public)
    if as_json:
        names = ("accuracy", "auc", "unanswered", "classes", "confusion", "margin", "calibration")
        _give(found, certificate, {name: getattr(found, name) for name in names})
        return
    typer.echo(f"accuracy  {found.accuracy}\nAUC       {found.auc}")
    if found.unanswered.low > 0:
        typer.echo(
            f"unanswered {found.unanswered} of the rows. They count as wrong answers, because a value of the "
            "row cannot be read, or because its label is not among the classes."
        )
    typer.echo(
        f"confusion matrix (row: true class, column: predicted class), each count +-{found.margin:.0f}:"
    )
    for label, row in zip(found.classes, found.confusion, strict=True):
        typer.echo("  " + "".join(f"{count:>10.0f}" for count in row) + f"  {label}")
    _give(found, certificate, None)


@app.command("ask")
def ask(
    job: Annotated[Path, typer.Argument(help="A job file that asks questions: its kind is not 'train'.")],
    out: Annotated[
        Path | None,
        typer.Option(help="A new or empty folder for the answers; `answers` in the job's folder by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the questions of a job within one privacy budget.

    The key `kind` of the job says what to ask: describe, evaluate, survival, correlations, glm or program
    (one question), or several (a list of questions). The command writes each answer as text, HTML, CSV and,
    for most kinds, a picture. One certificate covers all answers.
    """
    from ...jobs.statistics import ask_job

    answers, written = ask_job(job, out)
    if as_json:
        typer.echo(json.dumps({"answers": [one.facts() for one in answers], "files": [*map(str, written)]}))
        return
    for one in answers:
        typer.echo(f"{one.text()}\n")
    typer.echo(answers[0].certificate.statement())
    for path in written:
        typer.echo(f"wrote {path}")


@app.command("describe")
def describe(
    context: typer.Context,
    job: Annotated[
        Path, typer.Argument(help="A job file, which names the sites, the columns and their ranges.")
    ],
    epsilon: _Epsilon = 0.5,
    bins: Annotated[int, typer.Option(help="The number of bins of each histogram.")] = 20,
    certificate: _Kept = None,
    as_json: AsJson = False,
) -> None:
    """Describe the columns of private tables, with noise.

    The result has the mean, the quantiles and the histogram of each numeric column, and the share of each
    category. It helps you to adjust the ranges in the job's schema before you train. If owner.toml (the
    file beside the job that says where the rows are) has a budget, the cost is charged to it.
    """
    from ...jobs.statistics import describe_job
    from ...jobs.training_job import kind_in

    check_folder("--certificate", certificate)
    if kind_in(job) == "describe":
        for name in ("epsilon", "bins", "certificate"):
            if (source := context.get_parameter_source(name)) is not None and source.name != "DEFAULT":
                raise typer.BadParameter(
                    f"--{name} has no effect on a job of kind 'describe': the job states epsilon and bins, "
                    "and the certificate is written beside the answers."
                )
        ask(job, None, as_json)
        return
    found = describe_job(job, epsilon=epsilon, bins=bins)
    if as_json:
        names = ("readable", "mean", "quantiles", "shares")
        columns = {column.name: {name: getattr(column, name) for name in names} for column in found}
        _give(found, certificate, {"columns": columns})
        return
    for column in found:
        typer.echo(repr(column))
    _give(found, certificate, None)


def _give(found: PrivateScore | PrivateDescription, kept: Path | None, facts: dict[str, Any] | None) -> None:
    """Write the certificate to `kept`, if given. Print `facts` as JSON, or else the statement."""
    from ...core.canonical import plain

    stated = found.certificate
    if kept is not None:
        write_whole(kept, stated.to_json())
    if facts is None:
        typer.echo(f"\n{stated.statement()}")
        return
    cost = {"epsilon": stated.epsilon, "delta": stated.delta, "simulated": stated.run.simulated}
    typer.echo(json.dumps(plain(facts | cost)))
