"""Real site processes for tests, started quickly by forking, that can be killed at a chosen point."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from support.sitefaults import arrange
from taciturn.cli.app import run
from taciturn.core.errors import TaciturnError
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.driver import run_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.wire.zenoh_log import watch_zenoh

_FORKS = multiprocessing.get_context("forkserver")

_STARTED = "SITE_TESTS_FORK_SERVER"


class SiteProcess:
    """One `run_site` in a process of its own; its log is in `log`."""

    def __init__(self, path: Path, fault: dict[str, Any] | None = None) -> None:
        self.path, self.log = path, path.parent / "log.txt"
        _start_forks()
        self.process = _FORKS.Process(target=_run, args=(str(path), str(self.log), fault), daemon=True)
        self.process.start()

    def wait(self, seconds: float = 600.0) -> int:
        """The exit code; -9 after a kill."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise AssertionError(f"{self.path.parent.name} did not end:\n{self.text()}")
        return int(self.process.exitcode)

    def kill(self) -> None:
        """kill -9"""
        self.process.kill()
        self.process.join()

    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


class Command:
    """`taciturn ...` about the site of a file, forked like the sites; what it says is beside that file."""

    def __init__(self, *words: str, path: Path) -> None:
        self._told = path.parent / "out.txt", path.parent / "err.txt"
        _start_forks()
        self.process = _FORKS.Process(target=_command, args=(words, *map(str, self._told)), daemon=True)
        self.process.start()

    def wait(self, seconds: float = 300.0) -> tuple[int | None, str, str]:
        """The exit code, stdout and stderr."""
        self.process.join(seconds)
        out, err = (file.read_text() for file in self._told)
        return self.process.exitcode, out, err


class Network:
    """All sites of a run. A killed site is started again, with `again` for the fault that killed it."""

    def __init__(
        self,
        paths: list[Path],
        faults: dict[int, dict[str, Any]] | None = None,
        again: dict[str, Any] | None = None,
    ) -> None:
        self.paths, self.restarts, self.again = paths, 0, again
        self.running = [SiteProcess(path, (faults or {}).get(i)) for i, path in enumerate(paths)]

    def alive(self) -> list[int]:
        """The sites that have not ended, after starting those again that were killed."""
        for i, entry in enumerate(self.running):
            if entry.process.exitcode == -signal.SIGKILL:
                self.restarts += 1
                self.running[i] = SiteProcess(self.paths[i], self.again)
        return [i for i, entry in enumerate(self.running) if entry.process.exitcode is None]

    def finish(self, seconds: float = 600.0) -> None:
        """Wait until every site has ended well."""
        end = time.monotonic() + seconds
        try:
            while self.alive():
                codes = [entry.process.exitcode for entry in self.running]
                assert all(code in (None, 0, -signal.SIGKILL) for code in codes), f"{codes}\n{self.logs()}"
                assert time.monotonic() < end, self.logs()
                time.sleep(0.02)
        finally:
            self.stop()

    def finish_despite_kills(self, kills: int, pause: float) -> None:
        """Kill so many sites chosen at random, at most `pause` seconds apart; then let all end well.

        None of them may end before: they hold back a frame until there is a file `go`.
        """
        rng, done = random.Random(os.urandom(16)), 0
        while done < kills and (alive := self.alive()):
            time.sleep(rng.uniform(0.0, pause))
            victim = self.running[rng.choice(alive)]
            if victim.process.exitcode is None:
                victim.kill()
                done += 1
        for path in self.paths:
            (path.parent / "go").touch()
        self.finish()
        assert done == self.restarts == kills

    def stop(self) -> None:
        for entry in self.running:
            if entry.process.exitcode is None:
                entry.kill()

    def logs(self) -> str:
        return "\n".join(f"== {entry.path.parent.name}\n{entry.text()}" for entry in self.running)


def run_all(paths: list[Path], faults: dict[int, dict[str, Any]] | None = None) -> Network:
    """Start every site, restart those that die of a fault, and wait until all have succeeded."""
    network = Network(paths, faults)
    network.finish()
    return network


def _start_forks() -> None:
    """One process, with all imported and compiled, forks the sites; it must find the tests' modules too."""
    if os.environ.get(_STARTED) == str(os.getpid()):
        return
    _FORKS.set_forkserver_preload([__name__, "support.warm"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    forkserver.ensure_running()
    os.environ[_STARTED] = str(os.getpid())
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def _command(words: tuple[str, ...], *told: str) -> None:
    for stream, file in zip((1, 2), told, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    code = run(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(path: str, log: str, fault: dict[str, Any] | None) -> None:
    logging.basicConfig(filename=log, level=logging.INFO, format="%(levelname)s %(message)s", force=True)
    threading.excepthook = lambda hooked: logging.error("a thread ended: %r", hooked.exc_value)
    os.chdir(Path(path).parent)
    newest = fault.pop("newest", False) if fault is not None else False
    if fault:
        arrange(**fault)
    try:
        site = load_site(Path(path))
        run_site(make_ready(site), watch=watch_zenoh(site), newest=newest)
    except TaciturnError as error:
        logging.getLogger("taciturn.site").error("%s: %s", type(error).__name__, error)
        logging.shutdown()
        os._exit(error.exit_code)
    logging.shutdown()
