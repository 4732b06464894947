"""Results on disk, in one file each, so that a run can continue where it stopped."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

OURS, RUN = "taciturn", "run"


@dataclass(frozen=True)
class Finding:
    """The result or the error of one peer in one section; `commit` is the commit of the measuring code."""

    peer: str
    section: str
    version: str
    date: str
    load: float
    result: Any = None
    error: str | None = None
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    commit: str = ""


def state_of(root: Path) -> str:
    """The commit of the code, with `+changes` if there are uncommitted changes; empty without git."""
    git = ["git", "-C", str(root)]
    asked = (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--", "src", "benchmarks"])
    try:
        commit, changes = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}+changes" if changes else commit


def obtain(
    folder: Path,
    peer: str,
    section: str,
    version: str,
    measure: Callable[[], Any],
    error: str | None = None,
    commit: str = "",
) -> Finding:
    """The stored finding, or a new one. A measurement is repeated if it failed, or is of another version
    (for taciturn: of another commit). `error` is the reason if nothing can be measured."""
    file = folder / f"{peer}-{section}.json"
    known = read(file)
    if known is not None and known.error is None and known.version == version:
        if peer != OURS or known.commit == commit:
            return known
    load, result = os.getloadavg()[0], None
    if error is not None:
        version = ""
    else:
        try:
            result = measure()
        except Exception as failure:  # a failing peer must not stop the measurements of the others
            error = re.sub(r"/\S+", "...", f"{type(failure).__name__}: {failure}")[:200]
    load = round((load + os.getloadavg()[0]) / 2, 1)
    today = datetime.date.today().isoformat()
    found = Finding(peer, section, version, today, load, result, error, commit=commit)
    _write(file, found)
    return found


def read(file: Path) -> Finding | None:
    """The finding in a file; None if the file does not exist or cannot be read."""
    try:
        return Finding(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _write(file: Path, found: Finding) -> None:
    """Write a finding atomically: an interrupted process leaves no incomplete file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(asdict(found), indent=1), encoding="utf-8")
    os.replace(draft, file)


def begin(folder: Path, version: str, commit: str = "") -> None:
    """Record the start of a run and the load of the machine. If the run has begun, count one more call."""
    file = folder / f"{OURS}-{RUN}.json"
    known = read(file)
    if known is not None:
        facts = known.result | {"calls": known.result["calls"] + 1}
    else:
        load, calls = round(os.getloadavg()[0], 2), 1 + any(folder.glob("*-*.json"))
        facts = {"begun": _now(), "ended": None, "calls": calls, "load": load, "python": _python()}
    today = datetime.date.today().isoformat()
    _write(file, Finding(OURS, RUN, version, today, facts["load"], facts, commit=commit))


def end(folder: Path) -> None:
    """Record the end of the run."""
    file = folder / f"{OURS}-{RUN}.json"
    known = read(file)
    if known is not None:  # otherwise the page says that it has parts of several runs
        _write(file, replace(known, result=known.result | {"ended": _now()}))


def forget(folder: Path, peer: str, section: str | None) -> None:
    """Delete the results of a peer, or of one of its sections."""
    for path in folder.glob(f"{peer}-{section or '*'}.json"):
        if path.stem != f"{OURS}-{RUN}":
            path.unlink()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _python() -> str:
    return f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"


def read_one(folder: Path, peer: str, section: str, version: str) -> Any:
    """The result of an earlier section, of the same version, that another section needs."""
    known = read(folder / f"{peer}-{section}.json")
    if known is None or known.error is not None or known.version != version:
        raise RuntimeError(f"the section {section} has no result to compare with")
    return known.result


def read_all(folder: Path) -> list[Finding]:
    """Every finding in the folder."""
    known = (read(path) for path in sorted(folder.glob("*-*.json")))
    return [entry for entry in known if entry is not None]
