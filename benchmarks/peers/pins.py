"""The pinned versions of the peers. Each peer has a virtual environment, which is created once and kept.

An environment is rebuilt if the pin or the Python version changed, or if it does not work any more. The
environments are in the user's cache folder, or in the folder TACITURN_PEERS.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_MARK = "made.txt"
_PIP = ("-E", "-m", "pip", "--disable-pip-version-check")


@dataclass(frozen=True)
class Pin:
    """The packages to install for a peer, the distribution whose version is shown, and required commands."""

    name: str
    requirements: tuple[str, ...]
    distribution: str
    commands: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The pinned version of the distribution."""
        entry = next(one for one in self.requirements if re.split(r"\W", one)[0] == self.distribution)
        return entry.rpartition("=")[2]

    @property
    def mark(self) -> str:
        """A text that identifies the pin and the Python version of an environment."""
        return "\n".join((f"Python {platform.python_version()}", *self.requirements))


# flwr 1.42.0 requires a version of certifi that no index had on the day of the run.
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
    """A peer's interpreter, version, size and installed packages; or the reason why it has no environment."""

    name: str
    python: Path | None
    version: str
    megabytes: float
    error: str | None = None
    packages: tuple[str, ...] = ()


def cache() -> Path:
    """The folder of the environments."""
    base = os.environ.get("TACITURN_PEERS")
    return (
        Path(base)
        if base
        else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "taciturn" / "peers"
    )


def environment(name: str) -> Environment:
    """The environment of a peer; it is created if it does not exist yet."""
    pin, folder = PINS[name], cache() / name
    missing = [command for command in pin.commands if shutil.which(command) is None]
    if missing:
        why = f"needs the command {missing[0]}, which is not installed"
        return Environment(name, None, pin.version, 0.0, why)
    python, mark = folder / "bin" / "python", folder / _MARK
    try:
        if not mark.exists() or mark.read_text(encoding="utf-8") != pin.mark or not _works(python, pin):
            _install(folder, python, pin)
            mark.write_text(pin.mark, encoding="utf-8")
        installed = _packages(python)
        return Environment(name, python, pin.version, megabytes(folder), packages=installed)
    except subprocess.CalledProcessError as failure:
        return Environment(name, None, pin.version, 0.0, brief(f"{failure.stderr}\n{failure.stdout}"))
    except OSError as failure:
        return Environment(name, None, pin.version, 0.0, f"{type(failure).__name__}: {failure.strerror}")


def _install(folder: Path, python: Path, pin: Pin) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    _said([sys.executable, "-m", "venv", "--clear", str(folder)])
    _said([str(python), *_PIP, "install", "-q", *pin.requirements])


def _said(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def brief(said: str) -> str:
    """The error of an installer in one line, without addresses and paths."""
    lines = [line for line in said.splitlines() if line.strip()] or ["no reason given"]
    first = next((line for line in lines if line.startswith("ERROR")), lines[-1])
    text = re.sub(r"\(from versions:.*?\)", "", first.removeprefix("ERROR: "))
    return re.sub(r"(?<!\w)/\S+", "...", re.sub(r"\w+://\S+", "an index", text))[:160].strip()


def _works(python: Path, pin: Pin) -> bool:
    """Whether the environment works and has the peer in the pinned version."""
    try:
        return f"{pin.distribution}=={pin.version}" in _packages(python)
    except (OSError, subprocess.CalledProcessError):
        return False


def _packages(python: Path) -> tuple[str, ...]:
    """All installed packages, as name==version; `pip freeze` would contain paths of this machine."""
    return tuple(_said([str(python), *_PIP, "list", "--format=freeze"]).splitlines())


def megabytes(folder: Path) -> float:
    """The size of a folder, without pip and setuptools, which every environment has."""
    return (
        sum(
            path.lstat().st_size
            for path in folder.rglob("*")
            if path.is_file() and not re.search(r"site-packages/(pip|setuptools)\b", path.as_posix())
        )
        / 1e6
    )


def own_size() -> float:
    """The size in megabytes of taciturn and all packages that its sites need."""
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
