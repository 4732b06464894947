"""A file that is either as it was, or complete."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the file and put it in place at the end; a pipe or a device is written as it is."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
