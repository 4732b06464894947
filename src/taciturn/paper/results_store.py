"""Stored results, by the hash of everything that they depend on, so that none is computed twice."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.canonical import digest
from ..core.files import write_whole

Arrays = Mapping[str, NDArray[Any]]


def fingerprint(facts: Any) -> str:
    """32 hex digits that are the same for the same facts, and for no others."""
    return digest(facts)[:32]


@dataclass(frozen=True)
class ResultStore:
    """A folder of results, one file each, named by fingerprint; without a folder nothing is kept."""

    folder: Path | None = None

    def get(self, key: str) -> Arrays | None:
        """The arrays that were put there, or None: a file that cannot be read counts as none."""
        try:
            content = b"" if self.folder is None else (self.folder / f"{key}.npz").read_bytes()
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (FileNotFoundError, ValueError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, key: str, arrays: Arrays) -> Arrays:
        """Keep the arrays; a crash leaves all of them or none."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        if self.folder is not None:
            write_whole(self.folder / f"{key}.npz", buffer.getvalue())
        return arrays

    def kept(self, key: str, make: Callable[[], Arrays]) -> Arrays:
        """The arrays of that key, made now if they are not there."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found
