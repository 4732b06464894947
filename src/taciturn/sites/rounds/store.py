"""The store: ledger, state and outbox of one site in one SQLite file, on disk before anything is sent.

One transaction per round holds the charge, the exact bytes of the frame and the state they follow from. So a
round is either not charged, and nobody has seen it, or charged with the bytes that will be sent, again and
again if need be. A round whose solve gave up is charged without bytes, and no restart draws it again.
Everything here is made of released vectors; no row of data and no noise is written.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from ...admm.node import NodeState
from ...diskfile import LockFile
from ...errors import RunOver, SiteError, TaciturnError, WrongFiles
from ...privacy.facts import Charge, RunFacts, SiteBudget, SiteFacts
from ...privacy.ledger.chain import ledger_errors
from ...privacy.ledger.disk import SqliteLedger
from ..files.database import check_form, check_place, wrong_ledger_as
from ..wire.frame import FrameRefused

KEPT = 256  # rounds whose frames a site can still show
FORMAT = 2  # of this file
_TABLES = (
    f"PRAGMA user_version = {FORMAT}",
    "CREATE TABLE site (one INTEGER PRIMARY KEY CHECK (one = 1), job BLOB NOT NULL, name TEXT NOT NULL, "
    "schedules BLOB NOT NULL)",
    "CREATE TABLE outbox (attempt INTEGER NOT NULL, t INTEGER NOT NULL, frame BLOB NOT NULL, "
    "at REAL NOT NULL, PRIMARY KEY (attempt, t))",
    "CREATE TRIGGER outbox_keeps BEFORE UPDATE ON outbox BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER outbox_holds BEFORE DELETE ON outbox BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TABLE heard (attempt INTEGER NOT NULL, t INTEGER NOT NULL, sender INTEGER NOT NULL, "
    "frame BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (attempt, t, sender))",
    "CREATE TABLE silent (sender INTEGER PRIMARY KEY, t INTEGER NOT NULL, since REAL NOT NULL)",
)


class HasRound(Protocol):
    """The state of some method after `t` rounds."""

    @property
    def t(self) -> int: ...


State = TypeVar("State", bound=HasRound)


class Memory(Protocol[State]):
    """How a method's state is kept: in a table `state` with a column `t`, and whatever else it needs."""

    @property
    def statements(self) -> tuple[str, ...]:
        """What makes its tables."""
        ...

    def start(self) -> State:
        """Before the first round."""
        ...

    def write(self, db: sqlite3.Connection, state: State) -> None:
        """Put `state` in the place of the one before."""
        ...

    def read(self, db: sqlite3.Connection) -> State:
        """What was written last."""
        ...


@dataclass(frozen=True)
class NodeMemory:
    """The state of the method "penalty": three vectors of d numbers."""

    dimension: int
    statements: tuple[str, ...] = (
        "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), t INTEGER NOT NULL, "
        "f BLOB NOT NULL, lam BLOB NOT NULL, heard BLOB NOT NULL)",
    )

    def start(self) -> NodeState:
        """t = 0: zeros everywhere, at every site."""
        zeros = np.zeros((1, self.dimension))
        return NodeState.start(zeros, zeros)

    def write(self, db: sqlite3.Connection, state: NodeState) -> None:
        vectors = [np.ascontiguousarray(v, dtype="<f8").tobytes() for v in (state.f, state.lam, state.heard)]
        db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?)", (state.t, *vectors))

    def read(self, db: sqlite3.Connection) -> NodeState:
        t, *blobs = db.execute("SELECT t, f, lam, heard FROM state").fetchone()
        f, lam, heard = (np.frombuffer(blob, dtype="<f8").astype(np.float64)[None, :] for blob in blobs)
        if {vector.size for vector in (f, lam, heard)} != {self.dimension} or not isinstance(t, int):
            raise ValueError("the state is not one of this job")
        return NodeState(t, f, lam, heard)


@dataclass(frozen=True)
class SavedRound(Generic[State]):
    """Where a site goes on: the state after the last full round, and the frame of the next one if charged."""

    state: State
    frame: bytes | None


class SiteStore(Generic[State]):
    """The file of one site, held by one process. Use it in a `with` block."""

    def __init__(
        self,
        path: Path,
        *,
        job: bytes,
        name: str,
        schedules: bytes,
        memory: Memory[State],
        run: RunFacts,
        facts: SiteFacts,
        budget: SiteBudget | None,
    ) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # it holds this site's schedules
        except (FileExistsError, NotADirectoryError) as error:
            raise WrongFiles(f"{path.parent}: `state` must be a folder, or not there yet.") from error
        check_place(path, write=True)
        self._path, self._memory = path, memory
        self.before_release: Callable[[], None] = lambda: None  # raises where nothing more may be released
        self._lock = LockFile(path)
        self._db: sqlite3.Connection | None = None
        try:
            with wrong_ledger_as(path):
                self._db = _connect(path)
                self.ledger = SqliteLedger(self._db, run, [facts], budget)
            self._begin(path, (job, name, schedules))
            self.moved = self._place() not in (None, self._mark())
            self.stay()
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, whose: tuple[bytes, str, bytes]) -> None:
        """Tables for a new file; an old one must belong to this job and site, with the same schedules."""
        with self._transaction() as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'site'").fetchone() is None:
                for statement in (*_TABLES, *self._memory.statements):
                    db.execute(statement)
                db.execute("INSERT INTO site VALUES (1, ?, ?, ?)", whose)
                self._write_state(db, self._memory.start())
            check_form(db, path, FORMAT)
            stored = db.execute("SELECT job, name, schedules FROM site").fetchone()
        for was, now, what in zip(stored, whose, ("another job", "another site", ""), strict=True):
            if was != now and what:
                raise WrongFiles(f"{path}: belongs to {what}; a new run needs a new `state` folder.")
            if was != now:
                raise WrongFiles(
                    f"{path}: the run was begun with another `penalty`, `noise` or `output_noise`. They are "
                    "fixed beforehand, or the cost could not be added up: put the old values back."
                )

    # -- where it is ------------------------------------------------------------------------------------

    def stay(self, *, vouched: bool = False) -> None:
        """Note the files that this is kept in; after a move only once somebody has vouched for it."""
        if self._place() is None or vouched:
            with self._transaction() as db:
                db.execute(
                    "CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), mark TEXT)"
                )
                db.execute("INSERT OR REPLACE INTO place VALUES (1, ?)", (self._mark(),))
            self.moved = False

    def _place(self) -> str | None:
        with ledger_errors():
            db = self._open()
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'place'").fetchone() is None:
                return None
            row = db.execute("SELECT mark FROM place").fetchone()
            return None if row is None else str(row[0])

    def _mark(self) -> str:
        """What no copy has: the numbers of the two files, and when the lock, never written to, was made."""
        lock = self._path.with_name(self._path.name + ".lock").stat()
        return f"{self._path.stat().st_ino} {lock.st_ino} {lock.st_ctime_ns}"

    # -- rounds -----------------------------------------------------------------------------------------

    def resume(self) -> SavedRound[State]:
        """The state after the last full round, and what was charged but perhaps not sent since."""
        db = self._open()
        with ledger_errors(), self.readable():
            state = self._memory.read(db)
        t = state.t
        frame = self.frame(t + 1)
        if frame is None and t + 1 in self.charged():
            raise RunOver(
                f"round {t + 1} gave up when it was solved. It is charged and is never drawn again, so this "
                "run is over; agree on a new job, with a larger `tol`, and a new `state` folder."
            )
        return SavedRound(state, frame)

    def release(self, state: State, charge: Charge, frame: bytes, heard: Mapping[int, bytes]) -> None:
        """Round charge.t: its charge, its bytes, the state before it and the frames that led there.

        On return all of it is on disk and the frame may be sent. On an error none of it is, and none may.
        """
        self.before_release()
        with self._transaction() as db:
            self.ledger.charge(charge)
            db.execute("INSERT INTO outbox VALUES (0, ?, ?, ?)", (charge.t, frame, time.time()))
            self._write_state(db, state)
            _write_heard(db, state.t, heard)

    def abort(self, state: State, charge: Charge, heard: Mapping[int, bytes]) -> None:
        """Round charge.t gave up: its charge, without bytes, so that it is never drawn again."""
        with self._transaction() as db:
            self.ledger.charge(charge)
            self._write_state(db, state)
            _write_heard(db, state.t, heard)

    def finish(self, state: State, heard: Mapping[int, bytes]) -> None:
        """After the last round: its state, and the last frames of all."""
        with self._transaction() as db:
            self._write_state(db, state)
            _write_heard(db, state.t, heard)

    def say(self, t: int, frame: bytes, *, attempt: int = 0) -> None:
        """A frame that costs nothing, before it is sent: hello, done, left."""
        with self._transaction() as db:
            db.execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", (attempt, t, frame, time.time()))

    def frame(self, t: int, *, attempt: int = 0) -> bytes | None:
        """The bytes of round t, if it was charged, or said."""
        with ledger_errors(), self.readable():
            query = "SELECT frame FROM outbox WHERE attempt = ? AND t = ?"
            row = self._open().execute(query, (attempt, t)).fetchone()
            return None if row is None else _blob(row[0])

    def paid(self) -> str | None:
        """The number of this run in the account of the table, once it was charged there."""
        with ledger_errors(), self.readable():
            db = self._open()
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'account'").fetchone() is None:
                return None
            row = db.execute("SELECT run FROM account").fetchone()
            return None if row is None else str(row[0])

    def note_paid(self, run: str) -> None:
        """The number under which this run was charged to the account of the table."""
        with self._transaction() as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS account "
                "(one INTEGER PRIMARY KEY CHECK (one = 1), run TEXT NOT NULL)"
            )
            db.execute("INSERT INTO account VALUES (1, ?)", (run,))

    def early_frames(self, t: int) -> list[bytes]:
        """The frames of round t that were said to end the run early, the latest first."""
        with ledger_errors(), self.readable():
            query = "SELECT frame FROM outbox WHERE attempt > 0 AND t = ? ORDER BY at DESC"
            return [_blob(frame) for (frame,) in self._open().execute(query, (t,))]

    def charged(self) -> list[int]:
        """The rounds in the ledger."""
        return [int(t) for t in self.ledger.columns(self.ledger.sites[0].site).t]

    # -- what was heard ---------------------------------------------------------------------------------

    def hear(self, t: int, frames: Mapping[int, bytes], *, attempt: int = 0) -> None:
        """Frames of round t, kept as soon as there is time: they are what a neighbour that lost its own asks
        for."""
        with self._transaction() as db:
            _write_heard(db, t, frames, attempt)

    def frames_heard(self, t: int, *, attempt: int = 0) -> dict[int, bytes]:
        """The frames of round t that were kept, by sender."""
        with ledger_errors(), self.readable():
            query = "SELECT sender, frame FROM heard WHERE attempt = ? AND t = ? ORDER BY sender"
            rows = self._open().execute(query, (attempt, t))
            return {int(sender): _blob(frame) for sender, frame in rows}

    # -- what `status` shows ----------------------------------------------------------------------------

    def note_silent(self, t: int, since: Mapping[int, float]) -> None:
        """Who has not been heard in round t, and since when; nobody, if empty."""
        with self._transaction() as db:
            db.execute("DELETE FROM silent")
            db.executemany("INSERT INTO silent VALUES (?, ?, ?)", [(j, t, at) for j, at in since.items()])

    # -- inside -----------------------------------------------------------------------------------------

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Rows that no release of this program wrote are one line, and nothing is released."""
        with unreadable_as(self._path):
            yield

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self.ledger.transaction() as db, ledger_errors():
            yield db

    def _write_state(self, db: sqlite3.Connection, state: State) -> None:
        self._memory.write(db, state)

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise SiteError("the site's file is closed.")
        return self._db

    def close(self) -> None:
        """Let the next process in."""
        if self._db is not None:
            self._db.close()
            self._db = None
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def unreadable_as(path: Path) -> Iterator[None]:
    """Whatever comes of reading damaged rows, as one line that says so."""
    try:
        yield
    except TaciturnError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, MemoryError, FrameRefused) as error:
        raise WrongFiles(
            f"{path}: is damaged: a row in it cannot be read. Nothing is released; put the newest whole copy "
            "of the folder back, and the neighbours will say whether it is new enough."
        ) from error


def _blob(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("not bytes")
    return value


def _write_heard(db: sqlite3.Connection, t: int, heard: Mapping[int, bytes], attempt: int = 0) -> None:
    """Frames of round t; with 'hello' and the last, the newest KEPT rounds stay, as evidence."""
    rows = [(attempt, t, sender, frame, time.time()) for sender, frame in heard.items()]
    db.executemany("INSERT OR REPLACE INTO heard VALUES (?, ?, ?, ?, ?)", rows)
    db.execute("DELETE FROM heard WHERE attempt = ? AND t > 0 AND t < ?", (attempt, t - KEPT))
    db.execute("DELETE FROM silent WHERE t <= ?", (t,))


def _connect(path: Path) -> sqlite3.Connection:
    with ledger_errors():
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
    return db
