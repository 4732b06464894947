"""Site processes for tests: real processes, started quickly by forking, that can be made to die at a point.

The faults are put in from out here. The product has no switch for them.
"""

from __future__ import annotations

import ctypes
import datetime
import logging
import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
import time
import types
from contextlib import closing
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt
import taciturn.admm.node as node_module
import taciturn.masked.node as masked_node_module
import taciturn.sites.rounds.ending as ending_module
import taciturn.sites.wire.trust as trust_module
import taciturn.sites.wire.waiting as waiting_module
from taciturn.engines.local import run_local
from taciturn.engines.setup import prepare
from taciturn.errors import TaciturnError
from taciturn.objective.problem import Problem
from taciturn.sites.files.rows import load_rows
from taciturn.sites.files.site import Site, load_site
from taciturn.sites.rounds.driver import run_site
from taciturn.sites.rounds.masked.store import MaskedStore
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.store import SiteStore
from taciturn.sites.wire.config import key_of
from taciturn.sites.wire.frame import decode, to_vector
from taciturn.sites.wire.session import Session
from taciturn.sites.wire.waiting import Waiting
from taciturn.sites.wire.zenoh_log import watch_zenoh

_FORKS = multiprocessing.get_context("forkserver")

_STARTED = "SITE_TESTS_FORK_SERVER"

POINTS = ("before the charge", "after the charge", "after the send", "in a solve")


class SiteProcess:
    """One `run_site` in a process of its own; its log is in `log`."""

    def __init__(self, path: Path, fault: dict[str, Any] | None = None) -> None:
        self.path, self.log = path, path.parent / "log.txt"
        _start_forks()
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


class Network:
    """All sites of a run. Whoever is killed is started again, without the fault that killed it."""

    def __init__(self, paths: list[Path], faults: dict[int, dict[str, Any]] | None = None) -> None:
        self.paths, self.restarts = paths, 0
        self.running = [SiteProcess(path, (faults or {}).get(i)) for i, path in enumerate(paths)]

    def alive(self) -> list[int]:
        """The sites that have not ended, after starting those again that were killed."""
        for i, entry in enumerate(self.running):
            if entry.process.exitcode == -signal.SIGKILL:
                self.restarts += 1
                self.running[i] = SiteProcess(self.paths[i])
        return [i for i, entry in enumerate(self.running) if entry.process.exitcode is None]

    def finish(self, seconds: float = 90.0) -> None:
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

    def stop(self) -> None:
        for entry in self.running:
            if entry.process.exitcode is None:
                entry.kill()

    def logs(self) -> str:
        return "\n".join(f"== {entry.path.parent.name}\n{entry.text()}" for entry in self.running)


def run_all(paths: list[Path], faults: dict[int, dict[str, Any]] | None = None) -> Network:
    """Start every site, start again whoever dies of a fault, and wait until all have ended well."""
    network = Network(paths, faults)
    network.finish()
    return network


def _start_forks() -> None:
    """One process has everything imported and forks the sites; it must find the tests' modules too."""
    if os.environ.get(_STARTED) == str(os.getpid()):
        return
    _FORKS.set_forkserver_preload([__name__])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    forkserver.ensure_running()
    os.environ[_STARTED] = str(os.getpid())
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def _run(path: str, log: str, fault: dict[str, Any] | None) -> None:
    logging.basicConfig(filename=log, level=logging.INFO, format="%(levelname)s %(message)s", force=True)
    os.chdir(Path(path).parent)
    if fault is not None:
        _arrange(**fault)
    try:
        site = load_site(Path(path))
        run_site(make_ready(site), watch=watch_zenoh(site))
    except TaciturnError as error:
        logging.getLogger("taciturn.site").error("%s: %s", type(error).__name__, error)
        logging.shutdown()
        os._exit(error.exit_code)
    logging.shutdown()


# -- faults ---------------------------------------------------------------------------------------------


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _die_later() -> None:
    """Once the bytes are on their way."""
    time.sleep(0.2)
    _die()


def _arrange(
    point: str | None = None,
    t: int = 1,
    netns: str | None = None,
    jump: float | None = None,
    slow: float = 0.0,
    full: bool = False,
    fill: bool = False,
    hold: int | None = None,
    silent: str | None = None,
    leak: bool = False,
    lie: str | None = None,
) -> None:
    """In round t: die at `point`, have the clock jump by `jump` seconds, find the disk full. Or be slow.

    Or write the private key of a masked run where a colluder finds it.

    Or lose patience as soon as nobody but `silent` is missing, however long that takes.
    """
    if netns is not None:
        _enter(netns)
    if point == "before the charge":
        _before(SiteStore, "release", lambda store, state, charge, *rest: _die() if charge.t == t else None)
    elif point == "after the charge":
        _after(SiteStore, "release", lambda store, state, charge, *rest: _die() if charge.t == t else None)
    elif point == "after the send":
        _after(Session, "publish", lambda session, sent, *rest: _die_later() if sent == t else None)
    elif point == "after the last round":
        _after(SiteStore, "finish", lambda *rest: _die())
    elif point == "after the results":
        _after(ending_module, "write_results", lambda *rest: _die())
    elif point == "in a solve":
        _die_in_solve(t)
    if jump is not None:
        _jump_clock(t, jump)
    if fill:
        _before(SiteStore, "release", lambda store, state, charge, *rest: _fill() if charge.t == t else None)
    if full:
        _before(
            SiteStore, "release", lambda store, state, charge, *rest: _fill_disk() if charge.t == t else None
        )
    if hold is not None:
        _before(
            SiteStore, "release", lambda store, state, charge, *rest: _hold() if charge.t == hold else None
        )
    if silent is not None:
        _lose_patience([silent])
    if lie == "twice":
        _after(
            Session, "publish", lambda session, sent, *rest: _send_twice(session, t) if sent == t else None
        )
    elif lie is not None:
        _tell_two_stories(t)
    if slow:
        _before(node_module.Node, "primal", lambda *rest: time.sleep(slow))
        _before(masked_node_module.MaskedNode, "message", lambda *rest: time.sleep(slow))
    if leak:
        _leak()


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
    """Round t is drawn and solved; whoever asked for the minimiser never gets it."""
    begun = [0]
    _before(node_module.Node, "primal", lambda node, state, now, *rest: begun.__setitem__(0, now))
    _after(node_module, "minimise", lambda *rest: _die() if begun[0] == t else None)


def _lose_patience(names: list[str]) -> None:
    """Time flies for whoever waits for these alone: half of the patience, and more, at each look."""
    real, shift = Waiting.until, [0.0]

    def until(self: Waiting, missing: Any, *rest: Any, **options: Any) -> bool:
        def look() -> list[str]:
            found: list[str] = missing()
            shift[0] += 0.6 * self.patience if found == names else 0.0
            return found

        return real(self, look, *rest, **options)

    clock = time.monotonic
    Waiting.until = until  # type: ignore[method-assign]
    waiting_module.time = types.SimpleNamespace(  # type: ignore[attr-defined]
        monotonic=lambda: clock() + shift[0], time=time.time, strftime=time.strftime, localtime=time.localtime
    )


def _leak() -> None:
    """A site that keeps, in `leaked`, the private key that it made for the run."""
    real = MaskedStore.secret

    def secret(self: MaskedStore) -> bytes:
        found = real(self)
        Path("leaked").write_bytes(found)
        return found

    MaskedStore.secret = secret  # type: ignore[method-assign]


def _another(session: Session, frame: bytes) -> bytes:
    """The same frame with another message, signed by the same site."""
    ready = make_ready(session._site)
    content = bytearray(decode(frame, largest=10**6).content)
    content[-8:] = np.float64(0.125).tobytes()
    return ready.identity.seal(bytes(content))


def _send_twice(session: Session, t: int) -> None:
    """A second frame of round t, with other noise, to everybody."""
    key = key_of(session._site.name, t)
    session._zenoh.put(key, _another(session, session._outbox[key][1]), express=True)


def _tell_two_stories(t: int) -> None:
    """Round t is not sent but answered only: to whoever asks first one frame, to the next another."""
    answered: list[bytes] = []

    def publish(session: Session, sent: int, frame: bytes, *, owner: str | None = None) -> None:
        if sent != t or owner is not None:
            real(session, sent, frame, owner=owner)
            return
        session.keep(sent, frame)

    def answer(session: Session, query: Any) -> None:
        key = key_of(session._site.name, t)
        if str(query.key_expr) == key and key in session._outbox:
            if len(answered) == 1:
                session.keep(t, _another(session, session._outbox[key][1]))
            answered.append(session._outbox[key][1])
        really(session, query)

    real, really = Session.publish, Session._answer
    Session.publish, Session._answer = publish, answer  # type: ignore[method-assign]


def _fill() -> None:
    """Write to the state folder until its disk is full."""
    with open("state/filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1024))
        except OSError:
            return


def _hold() -> None:
    """Wait until the test says go."""
    while not Path("go").exists():
        time.sleep(0.02)


def _enter(netns: str) -> None:
    """Move this process into a network namespace."""
    with open(f"/run/netns/{netns}") as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns failed")


def _fill_disk() -> None:
    """From now on no file may grow: writing past 4 kB fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


def _jump_clock(t: int, seconds: float) -> None:
    """From round t on the wall clock is off; the monotonic clock, by its nature, is not."""
    real, shift = time.time, [0.0]

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(time.time(), tz)

    time.time = lambda: real() + shift[0]
    trust_module.datetime = types.SimpleNamespace(datetime=Shifted, UTC=datetime.UTC)
    _before(
        Session, "publish", lambda session, sent, *rest: shift.__setitem__(0, seconds if sent >= t else 0.0)
    )


# -- what must hold at the end ---------------------------------------------------------------------------


def in_process(sites: list[Site]) -> np.ndarray:
    """The same job by the in-process engine: every released vector, (rounds, sites, d)."""
    job = sites[0].job
    problem = Problem(
        [load_rows(site) for site in sites], loss=job.loss, C=job.C, regularization=job.regularization
    )
    first = sites[0].file
    scale = "rate" if first.noise.kind == "norm" else "std"
    noise = type(first.noise)([getattr(site.file.noise, scale) for site in sites])
    method = tt.PenaltyPerturbation(
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
    history = run_local(replace(setup, refresh=1), show=False).history
    assert history is not None
    return history[:, 0]


def released(site: Site) -> np.ndarray:
    """Every vector in a site's outbox, (rounds, d)."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        rows = db.execute(
            "SELECT t, frame FROM outbox WHERE t BETWEEN 1 AND ? ORDER BY t", (site.job.rounds,)
        ).fetchall()
    assert [t for t, _ in rows] == list(range(1, site.job.rounds + 1))
    return np.stack([to_vector(decode(frame, largest=10**6).message) for _, frame in rows])


def kept(site: Site) -> np.ndarray:
    """The vector that a site goes on with, from its stored state."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        (blob,) = db.execute("SELECT f FROM state").fetchone()
    return np.frombuffer(blob)


def rounds_of(site: Site) -> int:
    """How many rounds a running site has released."""
    if not site.database.exists():
        return 0
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'outbox'").fetchone() is None:
            return 0
        return int(
            db.execute("SELECT count(*) FROM outbox WHERE t BETWEEN 1 AND ?", (site.job.rounds,)).fetchone()[
                0
            ]
        )


def charged(site: Site) -> list[int]:
    """The rounds in a site's ledger, in the order they were charged."""
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        rows = db.execute("SELECT t FROM ledger WHERE t IS NOT NULL ORDER BY seq").fetchall()
    return [t for (t,) in rows]


def check_end(paths: list[Path], expected: np.ndarray | None = None) -> None:
    """Each round charged once and released once, with the bytes of an undisturbed run; one model for all."""
    sites = [load_site(path) for path in paths]
    history = in_process(sites) if expected is None else expected
    for i, site in enumerate(sites):
        assert charged(site) == list(range(1, site.job.rounds + 1))
        assert released(site).tobytes() == np.ascontiguousarray(history[:, i]).tobytes()
        assert kept(site).tobytes() == released(site)[-1].tobytes()
        assert "a second, different" not in (path_log := (paths[i].parent / "log.txt").read_text()), path_log
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1
