"""Files by which a worker process learns that a process above it opened a budget.

A block is the `with` block of a budget; the budget is charged for everything that is released in the block. A
worker process may start before the block begins, and may run after the block has ended, so a worker cannot
find the block in its own memory. A process that enters a block writes a small file, whose name contains the
id and the start time of the process. A process that releases something reads the files of its ancestors.
Ancestors that have ended count too: an ancestor that was killed in its block leaves its file behind.

At the end of the block, the process writes the current time to its file: a worker that started before this
time may still be busy with a call from the block. The file is removed when the process ends. If the process
was killed, or ended before its workers, the file stays, and a later block removes it after a day. The file of
a process that is not an ancestor has no effect. A process that was started inside a block also finds the name
of the block in an environment variable.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import NamedTuple

from ...core.ancestors import clock, has_children, is_gone, is_started, lineage, process_entry
from ...core.errors import LedgerError

FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
"""Where the files are. The list is fixed, because a worker may have another TMPDIR than its ancestors. A
process writes its file to the first writable folder and reads the files in all folders."""
VARIABLE = "TACITURN_BUDGET"
UNTOUCHED = "no noise was drawn and nothing was charged"
_KEPT = 86400.0  # seconds for which the file of an ended process is kept, for workers that are still running


class BudgetBlock(NamedTuple):
    """A budget's `with` block.

    path : the budget's file.
    entry : the name of the file that the process wrote for this block.
    name : a unique name of the block.
    before : the value of the environment variable `VARIABLE` before the block.
    ended : the time at which the block ended; 0 while the block is open.
    """

    path: str
    entry: str
    name: str
    before: str
    ended: int = 0


def announce(path: Path) -> BudgetBlock:
    """Write the file of this process, which says that the budget is open. Raises if no folder is writable."""
    for folder in map(_folder, FOLDERS):
        before = os.environ.get(VARIABLE, "")
        block = BudgetBlock(str(path), process_entry(os.getpid()), secrets.token_hex(8), before)
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_mine(folder):
                _write(folder, block)
                Finalize(None, _leave, exitpriority=-1)  # a negative priority: after the workers have ended
                os.environ[VARIABLE] = f"{block.entry} {block.name}"
                return block
    raise LedgerError(
        f"the budget {path} cannot be opened: none of the folders {', '.join(FOLDERS)} can be written, so "
        "worker processes would not know about the budget. Make one of them writable."
    )


def withdraw(block: BudgetBlock) -> None:
    """Write the time of the block's end to the file of this process.

    Then wait for the next tick of the clock, so that later workers have a start time after this end.
    """
    os.environ[VARIABLE] = block.before
    if not block.before:
        del os.environ[VARIABLE]
    now = clock()
    for folder in map(_folder, FOLDERS):
        with suppress(OSError):
            if (folder / block.entry).exists():
                _write(folder, block._replace(ended=now))
    while clock() <= now:
        time.sleep(0.001)


def blocks_of_ancestors(*, sure: bool = True) -> tuple[BudgetBlock | None, BudgetBlock | None]:
    """(open, ended): an open block and an ended block of ancestors of this process. At least one is None.

    The open block is that of the nearest ancestor with an open block. An ended block counts only if this
    process may be, or descend from, a worker of the block. The test: among the children of the process
    that had the block, take the one from which this process descends (or which is this process). That child
    must have started before the block ended.

    Raises if an ancestor was killed in its block. If `sure` is True, also raises if there are files of other
    processes, but the ancestors of this process are unknown.
    """
    known = {name for folder in _readable() for name in os.listdir(folder) if not name.startswith(".")}
    if not known - {process_entry(os.getpid())}:
        return None, None
    line = lineage()
    if line is None and not sure:
        return None, None
    if line is None:
        raise LedgerError(
            f"a budget is or was open on this machine ({sorted(known)[0]}), and without /proc and `ps` this "
            f"process cannot tell whether it belongs to that budget; {UNTOUCHED}. Open a budget here."
        )
    late = None
    for name, below in line:
        found = _read(name) if name in known else None
        if found is not None and found.ended:
            late = late or (found if is_started(below, found.ended) else None)
        elif found is not None and is_gone(name):
            raise LedgerError(
                f"the process that started this worker was killed while it had the budget {found.path} open; "
                f"{UNTOUCHED}. Start new workers."
            )
        elif found is not None:
            return found, None
    return None, late


def block_at_start() -> tuple[str, BudgetBlock | None]:
    """(name, block): the name of the block in which this process was started, and the block if still open.

    The name is "" if this process was not started in a block. The block is None if it is not open.

    A fork server is a process of multiprocessing that starts workers. If it was started in a block, it passes
    the name of this block to all its workers, even after the block has ended. So if the block with this name
    belongs to an ancestor and has ended, the name proves nothing. The result is then ("", None), and the
    caller uses `blocks_of_ancestors`.
    """
    entry, _, name = os.environ.get(VARIABLE, "").partition(" ")
    found = _read(entry) if entry and Path(entry).name == entry else None
    if found is not None and found.ended and entry in (above for above, _ in lineage() or ()):
        return "", None
    alive = found is not None and found.name == name and not found.ended and not is_gone(entry)
    return name, found if alive else None


def _folder(place: str) -> Path:
    return Path(place) / f"taciturn-budgets-{os.getuid()}"


def _is_mine(folder: Path) -> bool:
    """Whether only this user can write to the folder. Otherwise another user could redirect charges."""
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o022


def _readable() -> list[Path]:
    found = []
    for folder in map(_folder, FOLDERS):
        with suppress(OSError):
            if _is_mine(folder):
                found.append(folder)
    return found


def _write(folder: Path, block: BudgetBlock) -> None:
    _forget_dead(folder)
    part = folder / f".{block.name}"
    part.write_text(json.dumps(block))
    part.replace(folder / block.entry)


def _read(entry: str) -> BudgetBlock | None:
    for folder in _readable():
        with suppress(OSError, ValueError, TypeError):
            return BudgetBlock(*json.loads((folder / entry).read_text()))
    return None


def _forget_dead(folder: Path) -> None:
    """Remove files of processes that have ended, if the files are more than a day old.

    Files of processes in other containers are kept, because this process cannot see whether they run.
    """
    here = process_entry(os.getpid()).rpartition("-")[2]
    for name in os.listdir(folder):
        if name.partition("-")[0].isdigit() and name.endswith(f"-{here}") and is_gone(name):
            with suppress(FileNotFoundError):
                if time.time() - (folder / name).stat().st_mtime > _KEPT:
                    (folder / name).unlink()


def _leave() -> None:
    """Remove the file of this process when it ends, unless its workers are still running."""
    for folder in _readable():
        with suppress(OSError):
            mine = folder / process_entry(os.getpid())
            if mine.exists() and not has_children():
                mine.unlink()
