"""A file that is either as it was, or complete and on disk, whoever else writes it and whenever it stops."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"  # how the name of an unfinished file ends; a process that is killed leaves it behind


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which becomes `path` at the end of the block; folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write a file whole, text as UTF-8; a pipe or a device is written as it is."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        with whole_file(path) as file:
            file.write(data)
    return path
