"""What was computed once is not computed again: results on disk, by the hash of all that they depend on."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.canonical import digest
from ..core.files import write_whole

Arrays = dict[str, NDArray[np.float64]]


def fingerprint(facts: Any) -> str:
    """32 hex digits that are the same for the same facts, and for no others."""
    return digest(facts)[:32]


@dataclass(frozen=True)
class ResultStore:
    """A folder of results, one file each, named by fingerprint."""

    folder: Path

    def get(self, key: str) -> Arrays | None:
        """The arrays that were put there, or None: a file that cannot be read counts as none."""
        try:
            content = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (ValueError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: str, arrays: Arrays) -> None:
        """Keep the arrays; a crash leaves all of them or none."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        write_whole(self._path(key), buffer.getvalue())

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"
