"""The cache: verified files in the user's own cache folder, each written whole or not at all."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

from ...diskfile import write_whole
from ...errors import TaciturnWarning


def cache_folder() -> Path | None:
    """$TACITURN_CACHE, else the platform's place for caches, e.g. ~/.cache/taciturn.

    None where there is neither a setting nor a home.
    """
    if chosen := os.environ.get("TACITURN_CACHE"):
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "taciturn"
    places = {"win32": "AppData/Local", "darwin": "Library/Caches"}
    try:
        return Path.home() / places.get(sys.platform, ".cache") / "taciturn"
    except RuntimeError:
        return None


def store(name: str, files: Mapping[str, bytes]) -> None:
    """Put a set's files into the cache, each by one atomic rename; where that fails there is a warning."""
    folder = cache_folder()
    if folder is None:
        problem = "there is no home folder"
    else:
        try:
            for file, content in files.items():
                write_whole(folder / name / file, content)
            return
        except OSError as error:
            problem = f"{folder} cannot be written ({error.strerror})"
    warnings.warn(
        f"{problem}: `{name}` will be fetched again next time; set TACITURN_CACHE to a folder of yours.",
        TaciturnWarning,
        stacklevel=2,
    )
