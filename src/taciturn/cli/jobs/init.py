"""`taciturn init FOLDER`: write an example with three small tables, a job file and a README."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import ParameterError
from ..app import app

_ROWS = {"north.csv": 3000, "south.csv": 2000, "new.csv": 20}
_TEXTS = ("job.toml", "owner.toml", "README.md")


@app.command("init")
def init(folder: Annotated[Path, typer.Argument(help="A new or empty folder to write to.")]) -> None:
    """Write an example job to try.

    The command writes tables of made-up patients, a job file, and a README with the next steps.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(f"`folder` must be a new or empty folder; {folder} is not.")
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, rows) in enumerate(_ROWS.items()):
        _write_patients(folder / name, rows, seed, label=name != "new.csv")
    for name in _TEXTS:
        text = files("taciturn.jobs").joinpath("starter", name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
    typer.echo(f"wrote {', '.join([*_ROWS, *_TEXTS])} to {folder}")
    typer.echo(f"next: taciturn train {folder / 'job.toml'}")


def _write_patients(path: Path, rows: int, seed: int, *, label: bool) -> None:
    """Write a table of made-up patients: the old, smokers, and those with many visits return more often."""
    import numpy as np

    draw = np.random.default_rng(seed)
    age, visits = draw.integers(18, 96, rows), draw.poisson(1.5, rows)
    stay = np.round(draw.exponential(5.0, rows), 1)
    smoker, ward = draw.random(rows) < 0.3, draw.integers(0, 3, rows)
    score = (age - 60) / 12 + 0.8 * (visits - 1.5) + 1.2 * smoker - 1.5 * (ward == 2) + 0.05 * stay
    again = draw.random(rows) < 1 / (1 + np.exp(-1.2 * score))
    words: dict[str, Any] = {
        "age": age,
        "stay": stay,
        "visits": visits,
        "smoker": np.where(smoker, "yes", "no"),
        "ward": np.array(["medical", "surgical", "maternity"])[ward],
    }
    if label:
        words["readmitted"] = np.where(again, "yes", "no")
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(words)
        out.writerows(zip(*(column.tolist() for column in words.values()), strict=True))
