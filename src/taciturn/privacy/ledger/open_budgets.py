"""Which processes have a budget open: one small file each, so that workers find the block they work for.

A worker may be older than the block, or outlive it, so its own memory does not name the block. A process
that enters a block writes a file named after its number and start time. A process that releases something
looks there for its ancestors, also for those that it had when it started: an ancestor that was killed in its
block leaves the file behind. The file of a process that has ended, and was not an ancestor, has no effect.
A process that was started inside a block also knows which one, from an environment variable.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...core.ancestors import ancestors, ancestors_at_start, is_gone, process_entry
from ...core.errors import LedgerError

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
"""Fixed: a worker may have another TMPDIR. The first that can be written is used, all are read."""
VARIABLE = "TACITURN_BUDGET"
UNTOUCHED = "no noise was drawn and nothing was charged"
_KEPT = 86400.0  # seconds for which the file of a killed process tells its workers that it was in a block


class BudgetBlock(NamedTuple):
    """A budget's `with` block: the budget's file, the process's entry, a name that is never used again, and
    what the environment said before it."""

    path: str
    entry: str
    name: str
    before: str


def announce(path: Path) -> BudgetBlock:
    """Announce in a file that this process has the budget open; an error if no folder is writable."""
    for folder in map(_folder, FOLDERS):
        before = os.environ.get(VARIABLE, "")
        block = BudgetBlock(str(path), process_entry(os.getpid()), secrets.token_hex(8), before)
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_mine(folder):
                _forget_dead(folder)
                part = folder / f".{block.name}"
                part.write_text(json.dumps(block))
                part.replace(folder / block.entry)
                os.environ[VARIABLE] = f"{block.entry} {block.name}"
                return block
    raise LedgerError(
        f"the budget {path} cannot be opened: no folder of {', '.join(FOLDERS)} can be written, so worker "
        "processes would not know about it."
    )


def withdraw(block: BudgetBlock) -> None:
    """The block is over."""
    os.environ[VARIABLE] = block.before
    if not block.before:
        del os.environ[VARIABLE]
    for folder in map(_folder, FOLDERS):
        with suppress(OSError):
            (folder / block.entry).unlink()


def block_of_ancestors(*, sure: bool = True) -> BudgetBlock | None:
    """The block of the nearest ancestor process that is in one; `sure`: raise if that is unknown."""
    known = {name for folder in _readable() for name in os.listdir(folder) if not name.startswith(".")}
    if not known:
        return None
    now = ancestors()
    if now is None and not sure:
        return None
    if now is None:
        raise LedgerError(
            f"a budget is open on this machine ({sorted(known)[0]}), and without /proc and `ps` this process "
            f"cannot tell whether it belongs to that budget; {UNTOUCHED}. Close it, or open one here."
        )
    for name in dict.fromkeys((*ancestors_at_start, *now)):
        found = _read(name) if name in known else None
        if found is not None and is_gone(name):
            raise LedgerError(
                f"the process that this worker works for was killed inside the budget {found.path}; "
                f"{UNTOUCHED}. Start new workers."
            )
        if found is not None:
            return found
    return None


def block_at_start() -> tuple[str, BudgetBlock | None]:
    """The name of the block that this process was started in, or "", and the block if it is still open."""
    entry, _, name = os.environ.get(VARIABLE, "").partition(" ")
    found = _read(entry) if entry and Path(entry).name == entry else None
    alive = found is not None and found.name == name and not is_gone(entry)
    return name, found if alive else None


def _folder(place: str) -> Path:
    return Path(place) / f"taciturn-budgets-{os.getuid()}"


def _is_mine(folder: Path) -> bool:
    """Whether this user alone can write there: another one could send charges astray."""
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022


def _readable() -> list[Path]:
    found = []
    for folder in map(_folder, FOLDERS):
        with suppress(OSError):
            if _is_mine(folder):
                found.append(folder)
    return found


def _read(entry: str) -> BudgetBlock | None:
    for folder in _readable():
        with suppress(OSError, ValueError, TypeError):
            return BudgetBlock(*json.loads((folder / entry).read_text()))
    return None


def _forget_dead(folder: Path) -> None:
    """Remove what killed processes left a day ago; those of another container that shares the folder stay."""
    here = process_entry(os.getpid()).rpartition("-")[2]
    for name in os.listdir(folder):
        if name.partition("-")[0].isdigit() and name.endswith(f"-{here}") and is_gone(name):
            with suppress(FileNotFoundError):
                if time.time() - (folder / name).stat().st_mtime > _KEPT:
                    (folder / name).unlink()
