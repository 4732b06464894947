"""`taciturn sweep`: run every combination of some settings, and show the Pareto front of loss and epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..app import app
from ..options import show_table

if TYPE_CHECKING:
    from ...paper.sweeps.grid import SweepResult


@app.command("sweep")
def sweep(
    file: Annotated[
        Path,
        typer.Argument(
            help="A TOML file with settings, and a table [axes] with the values of each varied setting.",
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
    """Train with every combination of some settings.

    The command shows the combinations with the best trade-off between loss and epsilon. Results that are
    already in the --out folder are not computed again.
    """
    from ...paper.sweeps.grid import load_grid
    from ...paper.sweeps.sweep import run_sweep

    swept = run_sweep(load_grid(file), out, engine=engine, address=address)
    _show(swept)
    stem = out / swept.grid.name
    typer.echo(f"{len(swept.rows)} points: {stem}.csv, .json, .png, .svg")


def _show(swept: SweepResult) -> None:
    """Print the Pareto front as a table."""
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
