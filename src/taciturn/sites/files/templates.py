"""The texts that a site begins with, from the folder `texts`; they are valid as they stand."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ...core.errors import SiteError
from ...core.templates import fill
from .keys import write_new


def write_readme(state: Path) -> None:
    """README.txt in the state folder, where there is none yet."""
    with suppress(SiteError):  # a full disk is said elsewhere
        write_new(state / "README.txt", fill(__package__, "state.txt").encode())


def write_templates(folder: Path, name: str) -> list[Path]:
    """job.toml and site.toml for the site `name`; files that exist are never overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path in (folder / "job.toml", folder / "site.toml"):
        if path.name == "job.toml" and path.exists():
            continue  # handed over by whoever wrote it first
        write_new(path, fill(__package__, path.name, name=name).encode())
        written.append(path)
    return written
