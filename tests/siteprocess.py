"""Site processes for tests: real processes, started quickly by forking, that can be made to die at a point.

The faults are put in from out here. The product has no switch for them.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tacit.admm.node as node_module
from tacit.engines.local import run_local
from tacit.engines.setup import prepare
from tacit.engines.zenoh.driver import run_site
from tacit.engines.zenoh.frame import decode
from tacit.engines.zenoh.prepare import make_ready
from tacit.engines.zenoh.rows import load_rows
from tacit.engines.zenoh.session import Session
from tacit.engines.zenoh.site import Site, load_site
from tacit.engines.zenoh.store import Store
from tacit.errors import TacitError
from tacit.objective.passes import Passes
from tacit.objective.problem import Problem

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["siteprocess"])

POINTS = ("before the charge", "after the charge", "after the send", "in a solve")


class SiteProcess:
    """One `run_site` in a process of its own; its log is in `log`."""

    def __init__(self, path: Path, fault: dict[str, Any] | None = None) -> None:
        self.path, self.log = path, path.parent / "log.txt"
        self.process = _FORKS.Process(target=_run, args=(str(path), str(self.log), fault), daemon=True)
        self.process.start()

    def wait(self, seconds: float = 90.0) -> int:
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


def run_all(paths: list[Path], faults: dict[int, dict[str, Any]] | None = None) -> list[SiteProcess]:
    """Start every site, start again whoever dies of a fault, and wait until all have ended well."""
    faults = faults or {}
    running = [SiteProcess(path, faults.get(i)) for i, path in enumerate(paths)]
    for i, process in enumerate(running):
        code = process.wait()
        while code == -signal.SIGKILL:
            running[i] = SiteProcess(process.path)
            code = running[i].wait()
        assert code == 0, running[i].text()
    return running


def _run(path: str, log: str, fault: dict[str, Any] | None) -> None:
    logging.basicConfig(filename=log, level=logging.INFO, format="%(levelname)s %(message)s", force=True)
    if fault is not None:
        _arrange(**fault)
    try:
        run_site(make_ready(load_site(Path(path))))
    except TacitError as error:
        logging.getLogger("tacit.site").error("%s: %s", type(error).__name__, error)
        logging.shutdown()
        os._exit(1)
    logging.shutdown()


# -- faults ---------------------------------------------------------------------------------------------


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _arrange(point: str | None = None, t: int = 1, jump: float | None = None, slow: float = 0.0) -> None:
    """Die at `point` of round t; or have the clock jump by `jump` seconds there; or solve slowly."""
    if point == "before the charge":
        _before(Store, "release", lambda store, state, charge, *rest: _die() if charge.t == t else None)
    elif point == "after the charge":
        _after(Store, "release", lambda store, state, charge, *rest: _die() if charge.t == t else None)
    elif point == "after the send":
        _after(Session, "publish", lambda session, sent, *rest: _die() if sent == t else None)
    elif point == "in a solve":
        _die_in_solve(t)
    if jump is not None:
        _jump_clock(t, jump)
    if slow:
        _before(node_module.Node, "primal", lambda *rest: time.sleep(slow))


def _before(owner: Any, name: str, act: Any) -> None:
    real = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        act(*args)
        return real(*args, **options)

    setattr(owner, name, wrapped)


def _after(owner: Any, name: str, act: Any) -> None:
    real = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        result = real(*args, **options)
        act(*args)
        return result

    setattr(owner, name, wrapped)


def _die_in_solve(t: int) -> None:
    """Round t begins; its second look at the gradient is the last."""
    looks = {"round": 0, "count": 0}

    def begin(node: Any, state: Any, now: int, *rest: Any) -> None:
        looks.update(round=now, count=0)

    def look(*rest: Any) -> None:
        looks["count"] += 1
        if looks["round"] == t and looks["count"] == 2:
            _die()

    _before(node_module.Node, "primal", begin)
    _before(Passes, "gradient", look)


def _jump_clock(t: int, seconds: float) -> None:
    """From round t on the wall clock is off; the monotonic clock, by its nature, is not."""
    real, shift = time.time, [0.0]
    time.time = lambda: real() + shift[0]
    _before(
        Session, "publish", lambda session, sent, *rest: shift.__setitem__(0, seconds if sent >= t else 0.0)
    )


# -- what must hold at the end ---------------------------------------------------------------------------


def in_process(sites: list[Site]) -> np.ndarray:
    """The same job by the in-process engine: every released vector, (rounds, sites, d)."""
    import tacit

    job = sites[0].job
    problem = Problem(
        [load_rows(site) for site in sites], loss=job.loss, C=job.C, regularization=job.regularization
    )
    first = sites[0].file
    scale = "rate" if first.noise.kind == "norm" else "std"
    noise = type(first.noise)([getattr(site.file.noise, scale) for site in sites])
    method = tacit.PenaltyPerturbation(
        penalty=[site.file.penalty for site in sites],
        dual_step=job.dual_step,
        noise=noise,
        output_noise=first.output_noise,
        grid=job.grid,
        clip=job.clip,
    )
    setup = prepare(
        problem,
        job.graph,
        method,
        rounds=job.rounds,
        repeats=1,
        seed=job.seed,
        tol=job.tol,
        start="zeros",
        strict=False,
        history=True,
    )
    history = run_local(_afresh(setup), show=False).history
    assert history is not None
    return history[:, 0]


def _afresh(setup: Any) -> Any:
    from dataclasses import replace

    return replace(setup, refresh=1)


def released(site: Site) -> np.ndarray:
    """Every vector in a site's outbox, (rounds, d)."""
    with sqlite3.connect(f"file:{site.database}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT t, frame FROM outbox ORDER BY t").fetchall()
    assert [t for t, _ in rows] == list(range(1, site.job.rounds + 1))
    return np.stack([decode(frame, dimension=site.job.dimension).vector for _, frame in rows])


def charged(site: Site) -> list[int]:
    """The rounds in a site's ledger, in the order they were charged."""
    with sqlite3.connect(f"file:{site.database}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT t FROM ledger WHERE t IS NOT NULL ORDER BY seq").fetchall()
    return [t for (t,) in rows]


def check_end(paths: list[Path], expected: np.ndarray | None = None) -> None:
    """Each round charged once and released once, with the bytes of an undisturbed run; one model for all."""
    sites = [load_site(path) for path in paths]
    history = in_process(sites) if expected is None else expected
    for i, site in enumerate(sites):
        assert charged(site) == list(range(1, site.job.rounds + 1))
        assert released(site).tobytes() == np.ascontiguousarray(history[:, i]).tobytes()
        assert "a second, different" not in (path_log := (paths[i].parent / "log.txt").read_text()), path_log
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1


if __name__ == "__main__":
    sys.exit("this module is imported by tests")
