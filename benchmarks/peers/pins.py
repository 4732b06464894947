"""The peers, pinned, each in a virtual environment of its own that is made once and kept.

The environments are in the user's cache folder, or where TACITURN_PEERS says.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_MARK = "made.txt"


@dataclass(frozen=True)
class Pin:
    """What to install for a peer, the distribution whose version is shown, and commands it needs besides."""

    name: str
    requirements: tuple[str, ...]
    distribution: str
    commands: tuple[str, ...] = ()


# flwr 1.42.0 asks for a certifi that no index had on the day of the run.
PINS = {
    pin.name: pin
    for pin in (
        Pin("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn==1.6.1"), "diffprivlib"),
        Pin("flwr", ("flwr[dp]==1.41.0", "scikit-learn==1.9.1"), "flwr"),
        Pin("nvflare", ("nvflare==2.9.0", "scikit-learn==1.9.1"), "nvflare"),
        Pin("appfl", ("torch===2.13.0", "appfl==1.12.0", "scikit-learn==1.9.1"), "appfl"),
        Pin("disropt", ("disropt==0.1.9", "mpi4py==4.1.2"), "disropt", ("mpirun",)),
    )
}


@dataclass(frozen=True)
class Environment:
    """A peer's interpreter, its version and its size; or the reason why there is none."""

    name: str
    python: Path | None
    version: str
    megabytes: float
    error: str | None = None


def cache() -> Path:
    """Where the environments are kept."""
    base = os.environ.get("TACITURN_PEERS")
    return (
        Path(base)
        if base
        else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "taciturn" / "peers"
    )


def environment(name: str) -> Environment:
    """The peer's environment, made now if it is not there yet."""
    pin, folder = PINS[name], cache() / name
    missing = [command for command in pin.commands if shutil.which(command) is None]
    if missing:
        return Environment(name, None, "", 0.0, f"needs the command {missing[0]}, which is not installed")
    python, mark = folder / "bin" / "python", folder / _MARK
    wanted = "\n".join(pin.requirements)
    if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
        error = _install(folder, python, pin)
        if error:
            return Environment(name, None, "", 0.0, error)
        mark.write_text(wanted, encoding="utf-8")
    return Environment(name, python, _version(python, pin.distribution), megabytes(folder))


def _install(folder: Path, python: Path, pin: Pin) -> str | None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *pin.requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else brief(done.stderr)


def brief(stderr: str) -> str:
    """The error of an installer in one line, without the addresses that it tried."""
    lines = [line for line in stderr.splitlines() if line.startswith("ERROR")] or ["ERROR: no reason given"]
    text = re.sub(r"\(from versions:.*?\)", "", lines[0].removeprefix("ERROR: "))
    return re.sub(r"\w+://\S+", "an index", text)[:160].strip()


def _version(python: Path, distribution: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def megabytes(folder: Path) -> float:
    """What the files in a folder take, without pip and setuptools, which every environment has."""
    return (
        sum(
            path.lstat().st_size
            for path in folder.rglob("*")
            if path.is_file() and not re.search(r"site-packages/(pip|setuptools)\b", path.as_posix())
        )
        / 1e6
    )


def own_size() -> float:
    """Megabytes of taciturn with what it needs for sites: the files of its distributions."""
    seen: set[str] = set()
    waiting, total = ["taciturn", "eclipse-zenoh"], 0.0
    while waiting:
        name = re.split(r"[^A-Za-z0-9_.-]", waiting.pop())[0].lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [Path(str(found.locate_file(file))) for file in found.files or ()]
        total += sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
        waiting += [entry for entry in found.requires or () if "extra ==" not in entry]
    return total
