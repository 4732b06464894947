"""`taciturn plan`: from a budget to rounds, penalty and noise whose certificate stays within it."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError
from .app import app
from .options import LossName, usage_errors

if TYPE_CHECKING:
    from ..planning.masked_plan import MaskedPlan
    from ..planning.privacy_plan import PrivacyPlan


class GraphFamily(enum.StrEnum):
    """Graph families that a number of sites describes."""

    complete = "complete"
    ring = "ring"
    star = "star"
    path = "path"


class NoiseChoice(enum.StrEnum):
    """Kinds of noise."""

    best = "best"
    gaussian = "gaussian"
    norm = "norm"


class Unit(enum.StrEnum):
    """What one promise covers."""

    record = "record"
    person = "person"


class Effort(enum.StrEnum):
    """How a shape is chosen."""

    quick = "quick"
    full = "full"


@app.command("plan")
def plan(
    epsilon: Annotated[str, typer.Option(help="The budget: one number, or one per site: 1,1,0.5")],
    samples: Annotated[str, typer.Option(help="Records, or persons: a number, or one per site: 9044,300")],
    sites: Annotated[int, typer.Option(min=2, help="Number of sites.")],
    dimension: Annotated[int, typer.Option(min=1, help="Length of the model's vector, intercept included.")],
    delta: Annotated[float, typer.Option(help="The chance of an exception; 0 for a pure budget.")] = 1e-5,
    large_delta: Annotated[
        bool, typer.Option("--large-delta", help="Insist on a delta above 1 / records.")
    ] = False,
    graph: Annotated[GraphFamily, typer.Option(help="Who talks to whom.")] = GraphFamily.complete,
    colluding: Annotated[
        int | None, typer.Option(min=0, help="Other sites that may work together; left out: all of them.")
    ] = None,
    C: Annotated[float | None, typer.Option("--C", help="Weight of the loss; chosen if left out.")] = None,
    regularization: Annotated[float | None, typer.Option(help="rho; chosen if left out.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Exactly so many rounds.")] = None,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="At most so many rounds.")] = None,
    noise: Annotated[NoiseChoice, typer.Option(help="Kind of noise.")] = NoiseChoice.best,
    loss: Annotated[LossName, typer.Option(help="The loss.")] = LossName.logistic,
    unit: Annotated[
        Unit, typer.Option(help="What is protected: a record, or all of a person's.")
    ] = Unit.record,
    outputs: Annotated[
        int, typer.Option(min=1, help="Models at once: releases per round, K for one-vs-rest.")
    ] = 1,
    schema: Annotated[Path | None, typer.Option(help="A public schema to make the proxy from.")] = None,
    effort: Annotated[Effort, typer.Option(help="quick: a formula; full: trial runs too.")] = Effort.full,
    seed: Annotated[int, typer.Option(min=0, help="Of the proxy.")] = 0,
    toml: Annotated[
        Path | None,
        typer.Option(help="A folder for files to begin with: train.toml, job.toml, one file per site."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose rounds, penalty and noise for a privacy budget, on public proxy data alone."""
    from .. import Graph
    from ..planning.masked_plan import MaskedPlan
    from ..planning.plan import plan as make_plan

    public = None if schema is None else _schema(schema)
    with usage_errors():
        found = make_plan(
            epsilon=_numbers("epsilon", epsilon, float),
            delta=delta,
            large_delta=large_delta,
            samples=_numbers("samples", samples, int),
            graph=Graph.of(graph.value, sites),
            dimension=dimension,
            colluding=colluding,
            C="auto" if C is None else C,
            regularization="auto" if regularization is None else regularization,
            rounds=rounds,
            max_rounds=max_rounds,
            noise=noise.value,
            loss=loss.make(),
            outputs=outputs,
            unit=unit.value,
            proxy=public,
            effort=effort.value,
            seed=seed,
            baseline=True,
        )
    if toml is not None:
        from ..jobs.planned_files import write_planned

        for path in write_planned(found, toml, public):
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        typer.echo(found.to_json())
    elif isinstance(found, MaskedPlan):
        _show_masked(found)
    else:
        _show(found)


def _numbers(name: str, text: str, kind: type[float] | type[int]) -> Any:
    """One number, or a list of them between commas."""
    try:
        values = [kind(entry) for entry in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(
            f"--{name} must be a number, or numbers between commas; got {text!r}."
        ) from error
    return values[0] if len(values) == 1 else values


def _schema(file: Path) -> Any:
    from ..data.tables.schema import Schema

    try:
        return Schema.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{file.name} is not a schema: not valid JSON.") from error


def _show(found: PrivacyPlan) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..privacy.accounting.shown import rounded_up, shown_delta

    entry = found.to_dict()
    console = Console(highlight=False)
    table = Table(title="The plan", show_header=False)
    rows = {
        "epsilon, delta": f"{rounded_up(entry['epsilon'])}, {shown_delta(found.delta)}",
        "rounds": str(found.rounds),
        "penalty": _schedules(entry["penalty"]),
        "dual step": f"{entry['dual_step']:g}",
        f"noise ({entry['noise']['kind']})": _schedules(
            entry["noise"].get("std", entry["noise"].get("rate"))
        ),
        "output noise": "none" if found.blueprint.output is None else f"{found.blueprint.output:g}",
        "C, regularization": f"{found.C:g}, {found.regularization:g}",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    console.print(_trials_table(found))
    console.print(found.price.sentence())
    console.print(
        f"Chosen on public rows, {found.proxy}; the loss is that of the average of what was released."
    )


def _show_masked(found: MaskedPlan) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..privacy.accounting.shown import rounded_up, shown_delta

    console, certificate = Console(highlight=False), found.certificate
    table = Table(title="The plan", show_header=False)
    table.add_row("epsilon, delta", f"{rounded_up(certificate.epsilon)}, {shown_delta(found.delta)}")
    table.add_row("method", f"masked descent, {found.rounds} rounds")
    for c in sorted({0, found.method.colluding or 0, found.facts.sites // 3, found.facts.sites - 1}):
        table.add_row(f"epsilon if {c} collude", rounded_up(certificate.epsilon_against(c)))
    console.print(table)
    console.print(found.sentence())


def _schedules(entry: Any) -> str:
    if isinstance(entry, list):
        starts = [one["start"] for one in entry]
        return f"{min(starts):g} to {max(starts):g}, one per site, x {entry[0]['ratio']:g} each round"
    return f"{entry['start']:g}, x {entry['ratio']:g} each round"


def _trials_table(found: PrivacyPlan) -> Any:
    from rich.table import Table

    table = Table(title="Best shapes tried")
    columns = (
        "rounds",
        "penalty x degree",
        "growth",
        "noise tilt",
        "noise",
        "forecast",
        "loss",
        "no privacy",
    )
    for column in columns:
        table.add_column(column, justify="right")
    for tried in found.tried[:6]:
        shape = tried.shape
        table.add_row(
            str(shape.rounds),
            f"{found.C * shape.pull / 2:.3g}",
            f"{shape.growth:.3g}",
            f"{shape.tilt:.3g}",
            shape.noise,
            "" if tried.predicted is None else f"+{tried.predicted:.4f}",
            "" if tried.loss is None else f"{tried.loss:.4f}",
            "" if tried.loss is None or found.baseline is None else f"{found.baseline:.4f}",
        )
    return table
