"""`taciturn plan`: choose a method, rounds and noise within a privacy budget, and show this plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..core.errors import DataError
from .app import app
from .options import AsJson, LossName, make_loss, say, show_table, usage_errors

if TYPE_CHECKING:
    from ..planning.request import Plan, Trial


@app.command("plan")
def plan(
    epsilon: Annotated[
        str,
        typer.Option(
            help="The privacy budget epsilon: one number for all sites, or one per site, e.g. 1,1,0.5"
        ),
    ],
    samples: Annotated[
        str,
        typer.Option(
            help="The number of records (or persons) at each site: one number, or one per site, e.g. 9044,300"
        ),
    ],
    sites: Annotated[int, typer.Option(min=2, help="The number of sites.")],
    dimension: Annotated[
        int, typer.Option(min=1, help="The number of coefficients, including the intercept.")
    ],
    delta: Annotated[
        float, typer.Option(help="The delta of the budget; 0 for pure differential privacy.")
    ] = 1e-5,
    large_delta: Annotated[
        bool, typer.Option("--large-delta", help="Allow a delta above 1 / (number of records or persons).")
    ] = False,
    graph: Annotated[
        Literal["complete", "ring", "star", "path"], typer.Option(help="Which sites exchange messages.")
    ] = "complete",
    colluding: Annotated[
        int | None,
        typer.Option(min=0, help="How many other sites may work with an attacker; all of them by default."),
    ] = None,
    C: Annotated[
        float | None, typer.Option("--C", help="The weight of the loss; by default the planner chooses it.")
    ] = None,
    regularization: Annotated[
        float | None, typer.Option(help="The weight of the regulariser; by default the planner chooses it.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="The exact number of rounds (exchanges between sites).")
    ] = None,
    max_rounds: Annotated[
        int | None, typer.Option(min=1, help="The largest number of rounds that the planner may choose.")
    ] = None,
    noise: Annotated[
        Literal["best", "gaussian", "norm"],
        typer.Option(
            help="Gaussian noise, norm noise (density exp(-rate * norm)), or the better of the two."
        ),
    ] = "best",
    loss: Annotated[LossName, typer.Option(help="The loss.")] = "logistic",
    unit: Annotated[
        Literal["record", "person"],
        typer.Option(help="What the guarantee protects: one record, or all records of one person."),
    ] = "record",
    outputs: Annotated[
        int, typer.Option(min=1, help="How many models to train at once: K for one-vs-rest with K classes.")
    ] = 1,
    whiten: Annotated[
        bool | None,
        typer.Option(
            "--whiten/--no-whiten",
            help="First estimate the second moments of all rows, with noise; then train in coordinates in "
            "which the rows vary equally in all directions. By default, the planner does this only with "
            "--colluding, and only if it expects a benefit.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file with the public ranges and categories of the columns. The planner generates "
            "the synthetic rows for its trial runs from this file."
        ),
    ] = None,
    effort: Annotated[
        Literal["quick", "full"] | None,
        typer.Option(
            help="quick uses only a formula. full (the default) also makes trial runs on synthetic rows."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The seed of the synthetic rows; 0 by default.")
    ] = None,
    toml: Annotated[
        Path | None,
        typer.Option(
            help="Write the plan to this folder, as files that you then complete: train.toml and owner.toml "
            "for `taciturn train`; job.toml and one file per site for `taciturn site`."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Choose a method, rounds and noise for a privacy budget.

    The planner reads no private rows. It uses only the options of this command.
    """
    from .. import Graph
    from ..planning.plan import plan as make_plan

    public = None if schema is None else _schema(schema)
    with usage_errors():
        found = make_plan(
            epsilon=_numbers("epsilon", epsilon, float),
            delta=delta,
            large_delta=large_delta,
            samples=_numbers("samples", samples, int),
            graph=Graph.of(graph, sites),
            dimension=dimension,
            colluding=colluding,
            C="auto" if C is None else C,
            regularization="auto" if regularization is None else regularization,
            rounds=rounds,
            max_rounds=max_rounds,
            noise=noise,
            loss=make_loss(loss),
            outputs=outputs,
            unit=unit,
            whiten=whiten,
            proxy=public,
            effort=effort,
            seed=seed,
        )
    if toml is not None:
        from ..jobs.planned_files import write_planned

        for path in write_planned(found, toml, public):
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        typer.echo(found.to_json())
    else:
        _show(found)


def _numbers(name: str, text: str, kind: type[float] | type[int]) -> Any:
    """One number, or a list of numbers separated by commas."""
    try:
        values = [kind(entry) for entry in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"--{name} must be a number, or numbers separated by commas; got {text!r}."
        ) from error
    return values[0] if len(values) == 1 else values


def _schema(file: Path) -> Any:
    from ..data.tables.schema import Schema

    try:
        return Schema.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"`--schema` must be a JSON file; {file} is not valid JSON.") from error


def _show(found: Plan) -> None:
    show_table("The plan", found.facts().items())
    if found.tried:
        columns = ("rounds", "pull", "growth", "noise tilt", "noise", "forecast", "loss", "no privacy")
        rows = (_trial(tried, found.baseline) for tried in found.tried[:6])
        show_table("The best schedules of the trial runs, by the loss of the average model", rows, columns)
        say(
            "pull is 2 * penalty * neighbours / C in round 1, averaged over the sites. growth and noise tilt "
            "are the factors by which the penalty and the noise change in each round. forecast is the "
            "expected excess loss. no privacy is the loss of a model without noise.\n"
        )
    say(found.sentence())


def _trial(tried: Trial, baseline: float | None) -> list[str]:
    shape = tried.shape
    scored = "" if tried.loss is None else f"{tried.loss:.4f}"
    return [
        str(shape.rounds),
        *(f"{number:.3g}" for number in (shape.pull, shape.growth, shape.tilt)),
        shape.noise,
        "" if tried.predicted is None else f"+{tried.predicted:.4f}",
        scored,
        f"{baseline:.4f}" if scored and baseline is not None else "",
    ]
