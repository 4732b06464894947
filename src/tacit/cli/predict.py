"""`tacit predict model.json in.csv`: what a trained model says of new records."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .app import app


@app.command("predict")
def predict(
    model: Annotated[Path, typer.Argument(help="A model that `tacit train` wrote.")],
    table: Annotated[Path, typer.Argument(help="The records, .csv or .parquet.")],
    out: Annotated[
        Path | None, typer.Option(help="A CSV file for the result; the terminal if left out.")
    ] = None,
) -> None:
    """Predict, one line per record: the class and its probability, or the number.

    A record with a missing value is treated as an empty one, as in training.
    """
    from ..data.files import read_table
    from ..estimators.files.model import read_model

    found = read_model(model)
    X = found.rows(read_table(table, found.columns))
    fitted = found.estimator()
    names = [found.label or "prediction"]
    columns: list[list[Any]] = [fitted.predict(X).tolist()]
    if found.kind == "logistic":
        names.append("probability")
        columns.append([round(chance, 6) for chance in fitted.predict_proba(X).max(axis=1).tolist()])
    if out is None:
        _write(sys.stdout, names, zip(*columns, strict=True))
        return
    with out.open("w", newline="", encoding="utf-8") as file:
        _write(file, names, zip(*columns, strict=True))
    typer.echo(f"wrote {len(X)} predictions to {out}")


def _write(file: Any, names: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(names)
    lines.writerows(rows)
