"""Plant one fault at a time in a copy of the tree, and run the tests that should fail.

The original tree is never changed. A fault is killed if a test fails, or if the tests take several times as
long as without the fault. It survives if all tests pass.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from .operators import Mutant
from .targets import ROOT, SOURCE, stages

_COPIED = (
    "src",
    "tests",
    "tools",
    "docs",
    "examples",
    "benchmarks",
    "pyproject.toml",
    "README.md",
    "mkdocs.yml",
)
_PATIENCE = 4.0  # stop the tests after this many times their duration without a fault
_LEAST = 20.0  # but not before this many seconds


@dataclass(frozen=True)
class Outcome:
    """The fate of a mutant ("killed", "slow" or "survived"), and how long its tests took."""

    mutant: Mutant
    fate: str
    seconds: float


@dataclass
class Workshop:
    """A copy of the tree in which faults are planted."""

    folder: Path
    _usual: dict[tuple[str, ...], float] = field(default_factory=dict)

    def source(self, name: str) -> Path:
        return self.folder / SOURCE / name

    def judge(self, mutant: Mutant) -> Outcome:
        """Plant the fault, run the tests stage by stage, and restore the file."""
        began = time.monotonic()
        file = self.source(mutant.path)
        before, stat = file.read_text(encoding="utf-8"), file.stat()
        fate = "survived"
        for paths in stages(mutant.path):
            usual = self._time_of(paths)
            file.write_text(mutant.planted(before), encoding="utf-8")
            try:
                done = self._passes(paths, _LEAST + _PATIENCE * usual)
            finally:
                file.write_text(before, encoding="utf-8")
                os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            if done is not True:
                fate = "slow" if done is None else "killed"
                break
        return Outcome(mutant, fate, time.monotonic() - began)

    def _time_of(self, paths: tuple[str, ...]) -> float:
        """The duration of these tests without a fault; they must pass."""
        if paths not in self._usual:
            began = time.monotonic()
            if not self._passes(paths, 1800.0):
                raise SystemExit(f"these tests fail without any fault: {' '.join(paths)}")
            self._usual[paths] = time.monotonic() - began
        return self._usual[paths]

    def _passes(self, paths: Sequence[str], seconds: float) -> bool | None:
        """Whether all tests pass; None if they did not end in time."""
        quick = "not process and not ray and not slow"
        kinds = ["-m", quick] if any((self.folder / path).is_dir() for path in paths) else []
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", *kinds, *paths]
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the tests and all processes that they started; they run in a separate session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@contextmanager
def workshop() -> Iterator[Workshop]:
    """A temporary copy of the tree."""
    with TemporaryDirectory(prefix="mutants-") as folder:
        for name in _COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, Path(folder) / name)
            elif (ROOT / name).exists():
                shutil.copy2(ROOT / name, Path(folder) / name)
        yield Workshop(Path(folder))
