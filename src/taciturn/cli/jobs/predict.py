"""`taciturn predict model.json in.csv`: predict with a trained model for new records."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.files import check_folder, write_whole
from ..app import app
from ..sites.run import site

if TYPE_CHECKING:
    from ...data.model_file import ModelFile


@app.command("predict")
@site.command("predict")
def predict(
    model: Annotated[Path, typer.Argument(help="The file model.json that `taciturn train` or a site wrote.")],
    table: Annotated[
        Path, typer.Argument(help="The file with the records: .csv, .parquet, or .npz with an array X.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The CSV file for the result; by default, the command prints it.")
    ] = None,
    separator: Annotated[str, typer.Option(help="The separator between the cells of a CSV table.")] = ",",
    decimal: Annotated[str, typer.Option(help="The decimal sign of a CSV table: . or ,")] = ".",
    encoding: Annotated[str, typer.Option(help="The text encoding of a CSV table.")] = "utf-8",
) -> None:
    """Predict a class or a number for each record of a table.

    The result is a CSV table. A logistic model also gives the probability of the predicted class. A model
    with hinge loss gives a score instead. With two classes, a positive score means the second class; with
    more classes, the score is that of the predicted class. The column `unreadable` names the columns in which
    the record has no value, an unreadable value or an undeclared category. The key `missing` of the
    training job decides whether a record with missing or unreadable values gets a prediction.
    """
    from ...estimators.model_file import read_model

    check_folder("--out", out)
    found = read_model(model)
    loaded = found.pipeline()
    if table.suffix.lower() == ".npz":
        X, predictor = _array(found, table), loaded[-1]
        unread = [""] * len(X)
    else:
        from ...data.tables.table_files import CsvForm, read_table

        form = CsvForm(separator, decimal, encoding, prefix="--")
        X, predictor = read_table(table, found.columns, form), loaded
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
    """Write the columns to the file `out`, or else to the terminal. NaN and None become empty cells."""
    cells = [["" if cell is None or cell != cell else cell for cell in column] for column in columns]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *zip(*cells, strict=True)])
    if out is None:
        sys.stdout.write(text.getvalue())
        return
    write_whole(out, text.getvalue())
    said = f"wrote {len(cells[0])} predictions to {out}"
    empty = sum(cell == "" for cell in cells[0])
    if empty:
        said += f"; {empty} records cannot be read and have no prediction: see the column `unreadable`"
    typer.echo(said)


def _array(model: ModelFile, path: Path) -> Any:
    """The array X of an .npz file. It must have as many columns as the model has features."""
    from ...core.errors import DataError
    from ...jobfile.job_rows import read_arrays

    (X,) = read_arrays(path, "X")
    if X.ndim != 2 or X.shape[1] != len(model.features):
        raise DataError(
            f"{path}: X must have {len(model.features)} columns, one for each feature of the model; "
            f"got shape {X.shape}."
        )
    return X
