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

    The column `unreadable` names the columns of a record that are missing, cannot be read or hold an
    undeclared category. A record that says nothing because of it gets no class and no number.
    """
    from ...estimators.model_file import read_model

    _check_folder(out)
    found = read_model(model)
    loaded = found.pipeline()
    if table.suffix.lower() == ".npz":
        X, predictor = _array(found, table), loaded[-1]
        unread = [""] * len(X)
    else:
        from ...data.tables.files import CsvForm, read_table

        X, predictor = read_table(table, found.columns, CsvForm(separator, decimal, encoding)), loaded
        unread = ["; ".join(names) for names in loaded.unread_columns(X)]
    names, columns = [found.label or "prediction"], [predictor.predict(X).tolist()]
    if found.loss in ("logistic", "softmax"):
        names.append("probability")
        columns.append(predictor.predict_proba(X).max(axis=1).tolist())
    elif found.loss == "smooth-hinge":
        scores = predictor.decision_function(X)
        names.append("score")
        columns.append((scores if scores.ndim == 1 else scores.max(axis=1)).tolist())
    _give(out, [*names, "unreadable"], [*columns, unread])


def _give(out: Path | None, names: list[str], columns: list[list[Any]]) -> None:
    """To the file, or to the terminal; no answer is an empty cell."""
    cells = [["" if cell is None or cell != cell else cell for cell in column] for column in columns]
    if out is None:
        _write(sys.stdout, names, zip(*cells, strict=True))
        return
    from ...diskfile import write_whole

    text = io.StringIO()
    _write(text, names, zip(*cells, strict=True))
    write_whole(out, text.getvalue())
    said = f"wrote {len(cells[0])} predictions to {out}"
    empty = sum(cell == "" for cell in cells[0])
    if empty:
        said += f"; {empty} records cannot be read and have none, see the column `unreadable`"
    typer.echo(said)


def _check_folder(out: Path | None) -> None:
    """A result goes into a folder that is there: a typing mistake makes no new ones."""
    from ...errors import ParameterError

    if out is not None and not out.parent.is_dir():
        raise ParameterError(f"`--out` must be in a folder that exists; got {out}: make {out.parent} first.")


def _array(model: ModelFile, path: Path) -> Any:
    """The rows X of an .npz, taken as they are."""
    import zipfile

    import numpy as np

    from ...errors import DataError

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
