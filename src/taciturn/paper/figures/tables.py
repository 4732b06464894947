"""The numbers of a figure as a CSV file, and its settings and last numbers as a JSON file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.versions import versions
from .attack_runner import AttackFigureResult
from .build import load_rows
from .runner import FigureResult

Drawn = FigureResult | AttackFigureResult


def to_csv(drawn: Drawn) -> str:
    """All numbers of a figure as CSV text, with ten significant digits."""
    return csv_text(drawn.columns, drawn.records(), digits=".10g")


def csv_text(columns: Sequence[str], records: Iterable[Sequence[Any]], digits: str = "") -> str:
    """The CSV text: a header and one line per record. A missing number is an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value, digits) for value in record] for record in records)
    return buffer.getvalue()


def _cell(value: Any, digits: str) -> Any:
    if value is None or value != value:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value)
    return format(value, digits) if isinstance(value, float) else value


def to_json(drawn: Drawn, *, quick: bool) -> str:
    """The settings, seed, versions and data checksums of a figure, and each curve's last numbers, as JSON."""
    figure = drawn.figure
    facts = {
        "figure": figure.name,
        "quick": quick,
        "seed": figure.run.seed,
        "settings": figure.model_dump(),
        "data_sha256": dict(load_rows(figure.data).sha256),
        "versions": versions(),
        "results": drawn.summaries(),
    }
    return json.dumps(facts, indent=2, allow_nan=False)


def provenance(drawn: Drawn) -> dict[str, Any]:
    """Where the numbers come from: the data set, its checksums, and the name of the figure."""
    data = drawn.figure.data
    return {"data": data.name, "data_sha256": dict(load_rows(data).sha256), "figure": drawn.figure.name}
