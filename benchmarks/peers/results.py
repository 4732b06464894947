"""Results on disk, one file each, so that a run can go on where it stopped."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

OURS, RUN = "taciturn", "run"


@dataclass(frozen=True)
class Finding:
    """What one peer gave in one section; or why it gave nothing."""

    peer: str
    section: str
    version: str
    date: str
    load: float
    result: Any = None
    error: str | None = None
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)


def obtain(
    folder: Path, peer: str, section: str, version: str, measure: Callable[[], Any], error: str | None = None
) -> Finding:
    """The finding kept in the folder, or a new one. What failed is tried again."""
    file = folder / f"{peer}-{section}.json"
    if file.exists():
        known = Finding(**json.loads(file.read_text(encoding="utf-8")))
        if known.error is None:
            return known
    load, result = os.getloadavg()[0], None
    if error is None:
        try:
            result = measure()
        except Exception as failure:  # a peer that fails must not end the others' run
            error = re.sub(r"/\S+", "...", f"{type(failure).__name__}: {failure}")[:200]
    load = round((load + os.getloadavg()[0]) / 2, 1)
    today = datetime.date.today().isoformat()
    found = Finding(peer, section, version, today, load, result, error)
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(found), indent=1), encoding="utf-8")
    return found


def begin(folder: Path, version: str) -> None:
    """Note when a run began, and what else the machine did then; or that a call goes on with it."""
    file = folder / f"{OURS}-{RUN}.json"
    if file.exists():
        known = Finding(**json.loads(file.read_text(encoding="utf-8")))
        facts = known.result | {"calls": known.result["calls"] + 1}
    else:
        load, calls = round(os.getloadavg()[0], 2), 1 + any(folder.glob("*-*.json"))
        facts = {"begun": _now(), "ended": None, "calls": calls, "load": load, "python": _python()}
    folder.mkdir(parents=True, exist_ok=True)
    today = datetime.date.today().isoformat()
    found = Finding(OURS, RUN, version, today, facts["load"], facts)
    file.write_text(json.dumps(asdict(found), indent=1), encoding="utf-8")


def end(folder: Path) -> None:
    """Note that all that was asked for is done."""
    file = folder / f"{OURS}-{RUN}.json"
    known = Finding(**json.loads(file.read_text(encoding="utf-8")))
    found = replace(known, result=known.result | {"ended": _now()})
    file.write_text(json.dumps(asdict(found), indent=1), encoding="utf-8")


def forget(folder: Path, peer: str, section: str | None) -> None:
    """Remove what is known of a peer, or of one of its sections."""
    for path in folder.glob(f"{peer}-{section or '*'}.json"):
        if path.stem != f"{OURS}-{RUN}":
            path.unlink()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _python() -> str:
    return f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"


def read_one(folder: Path, peer: str, section: str) -> Any:
    """The result of a finding that another one builds on."""
    file = folder / f"{peer}-{section}.json"
    known = Finding(**json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None
    if known is None or known.error is not None:
        raise RuntimeError(f"the section {section} has no result to compare with")
    return known.result


def read_all(folder: Path) -> list[Finding]:
    """Every finding in the folder."""
    return [
        Finding(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*-*.json"))
    ]
