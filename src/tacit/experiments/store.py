"""What was computed once is not computed again: results on disk, by the hash of all that they depend on."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.float64]]


def fingerprint(facts: Any) -> str:
    """32 hex digits that are the same for the same facts, and for no others."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file: whoever looks sees the old one or the whole new one. Folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def write_text(path: Path, text: str) -> Path:
    """The same for text."""
    return write_bytes(path, text.encode("utf-8"))


class Store:
    """A folder of results, one file each, named by fingerprint."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        write_bytes(self._path(key), buffer.getvalue())

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"
