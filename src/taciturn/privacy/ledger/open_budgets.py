"""Files that name the processes with an open or ended block, so that worker processes find their budget.

A block is the `with` block of a budget. A worker process may start before the block begins, and may run after
the block has ended, so a worker cannot find the block in its own memory. A process that enters a block writes
a small file, named after the id and the start time of the process. A process that releases something looks
for the files of its ancestors. Ancestors that have ended count too: an ancestor that was killed in its block
leaves its file behind. At the end of the block, the process writes the time of this end to the file, because
a worker that started earlier may still receive calls from inside the block. The file is removed when the
process ends. If the process was killed, or ended before its workers, a later block removes the file after a
day. The file of a process that is not an ancestor has no effect. A process that was started inside a block
also finds the name of the block in an environment variable.
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
"""Where the files are: a fixed list, because TMPDIR of a worker may differ. A process writes its file to the
first writable folder and reads the files in all of them."""
VARIABLE = "TACITURN_BUDGET"
UNTOUCHED = "no noise was drawn and nothing was charged"
_KEPT = 86400.0  # seconds for which the file of an ended process is kept, for workers that are still running


class BudgetBlock(NamedTuple):
    """A budget's `with` block.

    path : the budget's file.
    entry : the name of the file that the process wrote for this block.
    name : a unique name of the block.
    before : the value of the environment variable before the block.
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
                Finalize(None, _leave, exitpriority=-1)  # runs after workers end; workers skip atexit
                os.environ[VARIABLE] = f"{block.entry} {block.name}"
                return block
    raise LedgerError(
        f"the budget {path} cannot be opened: none of the folders {', '.join(FOLDERS)} can be written, so "
        "worker processes would not know about the budget. Make one of them writable."
    )


def withdraw(block: BudgetBlock) -> None:
    """Write the time of the block's end to the file of this process. Returns after the next tick of the
    clock, so that workers that are started afterwards have a start time after this end."""
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
    process may come from a worker of the block: when the block ended, the ancestor had a running child that
    is this process, or an ancestor of this process. Raises if an ancestor was killed in
    its block. With `sure`, also raises if there are files of other processes, but the ancestors of this
    process cannot be determined.
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
    """The name of the block that this process was started in, or "", and the block if it is still open.

    A fork server that was started in a block passes the block's name to all workers that it starts, even
    after the end of the block. Such a worker descends from the process that opened the block, and the file of
    that process states that the block has ended: then the name is "", and `blocks_of_ancestors` decides.
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
