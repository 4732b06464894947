"""`taciturn reproduce` draws figures from TOML files; `taciturn sweep` runs every combination of settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..app import app
from ..options import show_table

if TYPE_CHECKING:
    from ...paper.figures.attack_runner import AttackFigureResult, Drawn
    from ...paper.figures.runner import FigureResult
    from ...paper.reproduce import Reproduction
    from ...paper.sweeps.grid import SweepResult
    from ...report import ReportData


@app.command("reproduce")
def reproduce(
    figures: Annotated[
        list[str],
        typer.Argument(
            help="The figures: fig1a, fig1b, fig2, fig3, fig4, attack, budget, all, or paths of TOML files."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for pictures, tables and reports.")],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Use fewer rows, rounds and repeats; all figures together take about a minute."
        ),
    ] = False,
    engine: Annotated[
        str, typer.Option(help="Where the sites run: local (this process), ray (a Ray cluster), or auto.")
    ] = "local",
    seed: Annotated[int | None, typer.Option(help="A seed that replaces the seed of each figure.")] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Also write paper.md and its pictures (img/) to this folder.")
    ] = None,
) -> None:
    """Reproduce figures of the paper by Zhang, Khalili and Liu.

    The paper was published at ICML 2018. A figure consists of curves, such as the loss of one method over
    the rounds. Curves that are already in the --out folder are not computed again.
    """
    from ...paper.reproduce import reproduce as run
    from ...paper.reproduce import write_docs

    result = run(figures, out, quick=quick, seed=seed, engine=engine)
    for drawn in result.drawn.values():
        _report(drawn, out)
    if docs is not None:
        write_docs(result, docs)
    _say(result, out)


def _report(drawn: Drawn, out: Path) -> None:
    """Write an interactive page for a figure, or one page for each row of its panels."""
    from ...paper.figures.runner import FigureResult
    from ...report import write

    if not isinstance(drawn, FigureResult):
        write(_of_attack(drawn), out / f"{drawn.figure.name}.html")
        return
    for row in drawn.figure.rows:
        part = re.sub(r"[^\w.-]+", "-", f"-{row.name}") if row.name else ""
        write(_of_runs(drawn, row.name), out / f"{drawn.figure.name}{part}.html")


def _of_runs(drawn: FigureResult, panel: str) -> ReportData:
    from ...report import from_runs

    return from_runs(
        {outcome.curve.name: outcome.run for outcome in drawn.panel(panel)},
        title=f"{drawn.figure.title}; {panel}" if panel else drawn.figure.title,
        subtitle=drawn.figure.caption,
        delta=drawn.figure.run.delta,
        provenance=drawn.provenance(),
    )


def _of_attack(attacked: AttackFigureResult) -> ReportData:
    from ...report import Chart, Curve, ReportData

    charts = []
    for noise in attacked.figure.noises:
        result = attacked.results[noise.name]
        rows = {name: [row for row in result.table() if row["observer"] == name] for name in result.observers}
        curves = [
            Curve(
                f"eta {name}",
                result.rounds,
                *([row[key] for row in found] for key in ("cosine", "cosine_low", "cosine_high")),
            )
            for name, found in rows.items()
        ]
        level = "no noise" if noise.rate is None else f"noise rate {noise.rate:g}"
        charts.append(Chart(noise.name, f"Attack, {level}", "cosine to the record", curves, private=False))
    return ReportData(
        title=attacked.figure.title,
        headline="Noise hides a record; a secret penalty does not.",
        subtitle=attacked.figure.caption,
        charts=charts,
        settings=attacked.figure.model_dump(include={"data", "graph", "problem", "run"}),
        provenance=attacked.provenance(),
    )


def _say(result: Reproduction, out: Path) -> None:
    for drawn in result.drawn.values():
        stem = out / drawn.figure.name
        typer.echo(f"{drawn.figure.title}: {stem}.png, .svg, .csv, .json")
    for claim in result.claims:
        typer.echo(f"{claim.verdict.value:>14}  {claim.key}: {claim.measured}")
    typer.echo(f"One page with all figures and claims: {out / 'index.html'}")


@app.command("sweep")
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            help="A TOML file with the settings of the runs. Its section [axes] lists the values to combine.",
            exists=True,
            dir_okay=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder for the results, the table and the picture.")],
    engine: Annotated[
        str,
        typer.Option(
            help="Where the runs happen: local (this process), ray (a Ray cluster), or auto (the faster one)."
        ),
    ] = "auto",
    address: Annotated[
        str | None, typer.Option(help="The address host:port of a running Ray cluster.")
    ] = None,
) -> None:
    """Train with every combination of the settings in a file.

    The command shows the combinations with the best trade-off between loss and epsilon. Results that are
    already in the --out folder are not computed again.
    """
    from ...paper.sweeps.grid import load_grid
    from ...paper.sweeps.sweep import run_sweep

    swept = run_sweep(load_grid(file), out, engine=engine, address=address)
    _show_front(swept)
    stem = out / swept.grid.name
    typer.echo(f"{len(swept.rows)} combinations: {stem}.csv, .json, .png, .svg")


def _show_front(swept: SweepResult) -> None:
    from ...core.formatting import format_cost

    rows = (
        (
            *(str(row.settings[axis]) for axis in swept.grid.axes),
            format_cost(row.numbers["epsilon"]),
            *(f"{row.numbers[name]:.4g}" for name in ("loss_mean", "accuracy_mean")),
        )
        for row in swept.front
    )
    columns = (*swept.grid.axes, "epsilon", "loss", "accuracy")
    show_table("The Pareto front: a smaller loss costs a larger epsilon", rows, columns)
