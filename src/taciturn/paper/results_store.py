"""Store results in files, so that they are not computed again; write results as CSV text.

The key of a result is its fingerprint: a hash of all facts that the result depends on.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.canonical import digest
from ..core.files import DAMAGED_NPZ, write_whole

Arrays = Mapping[str, NDArray[Any]]


def fingerprint(facts: Any) -> str:
    """A hash of the facts, as 32 hex digits."""
    return digest(facts)[:32]


@dataclass(frozen=True)
class ResultStore:
    """A folder with one file per result, named by its key. Without a folder, no result is stored."""

    folder: Path | None = None

    def get(self, key: str) -> Arrays | None:
        """The stored arrays, or None if the file is missing or damaged."""
        try:
            content = b"" if self.folder is None else (self.folder / f"{key}.npz").read_bytes()
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (FileNotFoundError, *DAMAGED_NPZ):
            return None

    def put(self, key: str, arrays: Arrays) -> Arrays:
        """Store the arrays atomically and return them."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        if self.folder is not None:
            write_whole(self.folder / f"{key}.npz", buffer.getvalue())
        return arrays

    def kept(self, key: str, make: Callable[[], Arrays]) -> Arrays:
        """The stored arrays of `key`. If they are not stored yet, compute them with `make` and store them."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found


def csv_text(columns: Sequence[str], records: Iterable[Sequence[Any]], digits: str = "") -> str:
    """The records as CSV with a header. `digits` formats floats; a missing number is an empty cell."""
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
