"""`taciturn predict model.json in.csv`: what a trained model says of new records."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..app import app
from ..sites.run import site

if TYPE_CHECKING:
    from ...data.model_file import ModelFile


@app.command("predict")
@site.command("predict")
def predict(
    model: Annotated[Path, typer.Argument(help="The model.json of `taciturn train`, or of any site.")],
    table: Annotated[Path, typer.Argument(help="The records, .csv or .parquet; or an .npz that holds X.")],
    out: Annotated[
        Path | None, typer.Option(help="A CSV file for the result; the terminal if left out.")
    ] = None,
    separator: Annotated[str, typer.Option(help="What separates the cells of the CSV file.")] = ",",
    decimal: Annotated[str, typer.Option(help="The decimal sign of the CSV file, . or ,")] = ".",
    encoding: Annotated[str, typer.Option(help="The text encoding of the CSV file.")] = "utf-8",
) -> None:
    """Predict, one line per record: the class with its probability or score, or the number.

    A record with a missing value is treated as an empty one, as in training.
    """
    from ...estimators.model_file import read_model

    found = read_model(model)
    X, fitted = _rows(found, table, (separator, decimal, encoding)), found.estimator()
    names = [found.label or "prediction"]
    columns: list[list[Any]] = [fitted.predict(X).tolist()]
    if found.loss in ("logistic", "softmax"):
        names.append("probability")
        columns.append([round(chance, 6) for chance in fitted.predict_proba(X).max(axis=1).tolist()])
    elif found.loss == "smooth-hinge":
        scores = fitted.decision_function(X)
        names.append("score")
        columns.append((scores if scores.ndim == 1 else scores.max(axis=1)).tolist())
    if out is None:
        _write(sys.stdout, names, zip(*columns, strict=True))
        return
    from ...diskfile import write_whole

    text = io.StringIO()
    _write(text, names, zip(*columns, strict=True))
    write_whole(out, text.getvalue())
    typer.echo(f"wrote {len(X)} predictions to {out}")


def _rows(model: ModelFile, path: Path, form: tuple[str, str, str]) -> Any:
    """x of every record in a file; arrays are taken as they are."""
    from ...data.tables.files import CsvForm, read_table
    from ...errors import DataError

    if path.suffix.lower() != ".npz":
        return model.rows(read_table(path, model.columns, CsvForm(*form)))
    import zipfile

    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            X = np.asarray(archive["X"], dtype=np.float64)
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise DataError(f"{path}: must be an .npz with the array of numbers X.") from error
    if X.ndim != 2 or X.shape[1] != len(model.features):
        raise DataError(f"{path}: the model has {len(model.features)} features; X has shape {X.shape}.")
    return X


def _write(file: Any, names: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(names)
    lines.writerows(rows)
