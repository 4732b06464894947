"""Status: where a site stands, read from its file while it runs or after."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from ...errors import SiteError, WrongFiles
from ...privacy.accounting.shown import rounded_down, rounded_up, shown_delta
from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.masked_words import holds_while
from ...privacy.ledger.chain import ledger_errors
from ...privacy.ledger.disk import SqliteLedger
from ..files.database import check_form, check_place, wrong_ledger_as
from ..files.site import Site
from ..rounds.network import NetworkSeen, read_seen
from ..rounds.results import STATEMENT
from ..rounds.store import FORMAT, unreadable_as
from ..wire.frame import decode, reaches_edge, to_vector


@dataclass(frozen=True)
class Neighbour:
    """One neighbour: the last round heard from it and when; since when it is silent, if it is.

    `at_edge`: its last vector has a number at the edge of the job's range.
    """

    name: str
    heard: int
    at: float | None
    silent_since: float | None
    at_edge: bool = False


@dataclass(frozen=True)
class Status:
    """A site in the middle of its job, or at the end of it."""

    site: str
    job: str
    simulated: bool
    released: int
    completed: int
    rounds: int
    neighbours: tuple[Neighbour, ...]
    epsilon: float
    budget: float
    delta: float
    finished: bool
    colluding: int | None = None
    epsilon_against: tuple[float, ...] = ()
    network: NetworkSeen = field(default_factory=NetworkSeen)

    @property
    def left(self) -> float:
        """What the budget still holds."""
        return max(0.0, self.budget - self.epsilon)

    @property
    def against(self) -> str:
        """Of a masked job: whom its figure holds against; else nothing."""
        return holds_while(self.colluding, self.epsilon_against[-1]) if self.epsilon_against else ""

    def to_json(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self) | {"left": self.left})

    def lines(self) -> list[str]:
        """For people."""
        stage = "finished" if self.finished else f"round {self.completed} of {self.rounds} complete"
        simulated = ", simulated" if self.simulated else ""
        spent = f"epsilon {rounded_up(self.epsilon)} spent, {rounded_down(self.left)} left of {self.budget:g}"
        return [
            f"{self.site} in job {self.job}{simulated}: {stage}, {self.released} released",
            f"{spent}, at delta {shown_delta(self.delta)}{self.against}",
            *(_line(neighbour) for neighbour in self.neighbours),
            *self.further(),
        ]

    def further(self) -> list[str]:
        """What is known of the others, and who holds up the run in the end."""
        near = {self.site, *(neighbour.name for neighbour in self.neighbours)}
        waits = [
            f"  {entry.name}: {stage_of(entry.round, self.rounds)}, waits for {', '.join(entry.waits_for)}"
            for entry in self.network.sites
            if entry.waits_for and entry.name != self.site
        ]
        far = [
            f"  {entry.name}: {stage_of(entry.round, self.rounds)}"
            for entry in self.network.sites
            if entry.name not in near and not entry.waits_for
        ]
        held = self.held_up()
        return [*waits, *far, *([held] if held else [])]

    def held_up(self) -> str:
        """Who holds up the run, in one line; nothing where nobody does."""
        own = self.network.of(self.site)
        if own is None or not own.waits_for:
            return ""
        since = f"since {_clock(self.network.since)}"
        direct, blockers = ", ".join(own.waits_for), ", ".join(self.network.blockers)
        if not blockers:
            return f"waits for {direct} {since}, and they for each other: look at the link between them"
        if set(self.network.blockers) == set(own.waits_for):
            return f"waits for {direct} {since}"
        return f"waits for {direct} {since}; held up by {blockers}"


def read_status(site: Site, network: NetworkSeen | None = None) -> Status:
    """What the file of a site says, and what is known of the `network`; nothing in it is changed."""
    with _opened(site) as db:
        with unreadable_as(site.database):
            certificate = Certificate.from_ledger(
                SqliteLedger(db, readonly=True), delta=site.file.budget.delta
            )
        with ledger_errors(), unreadable_as(site.database):
            job, name = db.execute("SELECT job, name FROM site").fetchone()
            completed = int(db.execute("SELECT t FROM state").fetchone()[0])
            (released,) = db.execute(
                "SELECT count(*) FROM outbox WHERE attempt = 0 AND t BETWEEN 1 AND ?", (site.job.rounds,)
            ).fetchone()
            rows = db.execute(
                "SELECT sender, max(t), at FROM heard WHERE attempt = 0 GROUP BY sender"
            ).fetchall()
            heard: dict[int, tuple[int, float | None]] = {  # what comes after the last is no round
                int(sender): (min(int(t), site.job.rounds), float(at)) for sender, t, at in rows
            }
            at_edge = _at_edge(db, site)
            silent = {int(j): float(at) for j, at in db.execute("SELECT sender, since FROM silent")}
    if (job, name) != (site.job.hash, site.name):
        whose = "another site" if job == site.job.hash else "another job"
        raise WrongFiles(f"{site.database}: belongs to {whose}.")
    numbers = {name: site.job.names.index(name) for name in site.neighbours}
    return Status(
        site=site.name,
        job=site.job.name,
        simulated=site.job.simulated,
        released=released,
        completed=completed,
        rounds=site.job.rounds,
        neighbours=tuple(
            Neighbour(name, *heard.get(j, (0, None)), silent.get(j), j in at_edge)
            for name, j in numbers.items()
        ),
        epsilon=certificate.epsilon if released else 0.0,
        budget=site.file.budget.epsilon,
        delta=site.file.budget.delta,
        colluding=certificate.run.colluding,
        epsilon_against=certificate.against if released else (),
        finished=(finished := (site.state / STATEMENT).exists()),
        network=_current(network or read_seen(site.state), site.name, completed, finished),
    )


@contextmanager
def _opened(site: Site) -> Iterator[sqlite3.Connection]:
    """The file of a site, to be read; whatever is wrong with it is a wrong file."""
    path = site.database
    check_place(path)
    if not path.exists():
        raise SiteError(f"{path}: not there yet; the site has not been started.")
    with wrong_ledger_as(path), ledger_errors():
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'site'").fetchone() is None:
                raise WrongFiles(
                    f"{path}: is empty, or no file of a site; a site that is started begins anew."
                )
            check_form(db, path, FORMAT)
            yield db
        finally:
            db.close()


def _at_edge(db: sqlite3.Connection, site: Site) -> set[int]:
    """Whose last vector has a number at the edge of the range; of masked messages nobody can say that."""
    if site.job.masked:
        return set()
    rows = db.execute(
        "SELECT sender, max(t), frame FROM heard WHERE attempt = 0 AND t BETWEEN 1 AND ? GROUP BY sender",
        (site.job.rounds,),
    )
    largest, clip = 8 * site.job.dimension, site.job.penalty.clip
    return {
        int(j) for j, _, data in rows if reaches_edge(to_vector(decode(data, largest=largest).message), clip)
    }


def stage_of(t: int, rounds: int) -> str:
    """What a site does in round t, in words."""
    if t < 1:
        return "in the opening"
    return f"in round {t}" if t <= rounds else "at the end"


def _current(network: NetworkSeen, own: str, completed: int, finished: bool) -> NetworkSeen:
    """`network`, unless this site has gone on since it was written."""
    mine = network.of(own)
    stale = mine is None or 0 < mine.round <= completed
    return NetworkSeen() if finished or stale else network


def completed_rounds(site: Site) -> int:
    """How many rounds are complete; 0 before the first, and before the site's file is there."""
    if not site.database.exists():
        return 0
    db = sqlite3.connect(f"{site.database.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        row = db.execute("SELECT t FROM state").fetchone()
    except sqlite3.Error:
        return 0  # not begun yet
    finally:
        db.close()
    return 0 if row is None else int(row[0])


def _line(neighbour: Neighbour) -> str:
    heard = (
        "not heard yet" if neighbour.at is None else f"heard in round {neighbour.heard}, {_ago(neighbour.at)}"
    )
    silent = "" if neighbour.silent_since is None else f"; silent since {_clock(neighbour.silent_since)}"
    edge = "; sends values at the edge of the range" if neighbour.at_edge else ""
    return f"  {neighbour.name}: {heard}{silent}{edge}"


def _ago(at: float) -> str:
    return f"{max(0, round(time.time() - at))} s ago"


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
