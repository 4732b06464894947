"""The status of a site, read from its state file during or after a run, as text and as a page."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from ...core.errors import LedgerError, SiteError, WrongFiles
from ...core.formatting import format_at_least, format_cost, format_delta, format_given
from ...core.templates import html_templates
from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.masked_words import holds_while
from ...privacy.ledger import chain
from ..files.database import check_form, check_place, wrong_ledger_as
from ..files.site import Site
from ..rounds.store import FORMAT, STATEMENT, charged_ledger, open_to_read, read_facts
from ..state.account import AccountSeen, open_account
from ..wire.whereabouts import NetworkSeen, clock, read_seen
from .serving import HTML, JSON, Answer, Pages

MOST = 200  # the most sites that the page lists


@dataclass(frozen=True)
class Neighbour:
    """One neighbour: the round and time of its last message, and since when this site waits for the next."""

    name: str
    heard: int
    at: float | None
    silent_since: float | None


@dataclass(frozen=True)
class Status:
    """The status of a site during or after its job. `released` counts its charged messages."""

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
    account: AccountSeen | None = None

    @property
    def left(self) -> float:
        """The epsilon that the account has left for another job; for a rehearsal, the rest of its budget."""
        return max(0.0, self.budget - self.epsilon) if self.account is None else self.account.left

    @property
    def against(self) -> str:
        """For a job of method "masked", the assumption about colluding sites, as text; else empty."""
        return holds_while(self.colluding, self.epsilon_against[-1]) if self.epsilon_against else ""

    def to_json(self) -> str:
        """The status as one line of JSON."""
        return json.dumps(asdict(self) | {"left": self.left})

    @property
    def stage(self) -> str:
        """The progress of the run, as text."""
        return "finished" if self.finished else f"round {self.completed} of {self.rounds} complete"

    @property
    def spent(self) -> str:
        """The cost of this job so far, as text."""
        return f"epsilon {format_cost(self.epsilon)} spent in this job, at delta {format_delta(self.delta)}"

    def lines(self) -> list[str]:
        """The status as lines of text."""
        simulated = ", simulated" if self.simulated else ""
        return [
            f"{self.site} in job {self.job}{simulated}: {self.stage}, {self.released} released",
            f"{self.spent}{self.against}",
            self.account_line(),
            *([] if self.account is None else [f"  in {self.account.place}"]),
            *(_line(neighbour) for neighbour in self.neighbours),
            *self.further(),
        ]

    def account_line(self) -> str:
        """What is left in the account, as text."""
        if self.account is not None:
            return self.account.line()
        return f"{format_at_least(self.left)} left of {format_given(self.budget)}; a rehearsal has no account"

    def further(self) -> list[str]:
        """What neighbours report about other sites, and which sites delay the run, as lines of text."""
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
        """The sites that hold up the run, in one line; empty if there are none."""
        own = self.network.of(self.site)
        if own is None or not own.waits_for:
            return ""
        since = f"since {clock(self.network.since)}"
        direct, blockers = ", ".join(own.waits_for), ", ".join(self.network.blockers)
        if not blockers:
            return f"waits for {direct} {since}, and these sites wait for each other: check their links"
        if set(self.network.blockers) == set(own.waits_for):
            return f"waits for {direct} {since}"
        return f"waits for {direct} {since}; held up by {blockers}"


def read_status(site: Site, network: NetworkSeen | None = None) -> Status:
    """Read the status from a site's state file, which is not changed.

    network : what is known about the other sites; by default, what the state folder says about them.
    """
    path = site.database
    check_place(path)
    if not path.exists():
        raise SiteError(f"{path} does not exist yet: the site has not been started.")
    with wrong_ledger_as(path), open_to_read(path) as db:
        if not chain.exists(db):
            raise WrongFiles(
                f"{path} has no ledger. If it is empty, the next start fills it; if not, move it away."
            )
        check_form(db, path, FORMAT)
        bodies, head = chain.verify_rows(db)
        facts = read_facts(bodies[0])
        whose, charged = (bodies[0]["job"], bodies[0]["name"]), bodies[1:]
        completed = _completed(db)
        ledger = charged_ledger(*facts, charged, head)
    if whose != (site.job.hash.hex(), site.name):
        other = "another site" if whose[0] == site.job.hash.hex() else "another job"
        raise WrongFiles(f"{path} belongs to {other}.")
    certificate = Certificate.from_ledger(ledger, delta=site.file.budget.delta)
    finished = (site.state / STATEMENT).exists()
    known = network or read_seen(site.state)
    current = _current(known, site.name, completed, finished)
    own = current.of(site.name)
    waits = () if own is None else own.waits_for
    return Status(
        site=site.name,
        job=site.job.name,
        simulated=site.job.simulated,
        released=len(charged),
        completed=completed,
        rounds=site.job.rounds,
        neighbours=tuple(
            Neighbour(name, heard, at, current.since if name in waits else None)
            for name in site.neighbours
            for heard, at in [known.heard.get(name, (0, None))]
        ),
        epsilon=certificate.charged_epsilon if charged else 0.0,
        budget=site.file.budget.epsilon,
        delta=site.file.budget.delta,
        colluding=certificate.run.colluding,
        epsilon_against=certificate.against if charged else (),
        account=None if (account := open_account(site)) is None else account.seen(),
        finished=finished,
        network=current,
    )


def _completed(db: sqlite3.Connection) -> int:
    """The last round that is complete: its total is on disk."""
    rows = db.execute("SELECT key FROM records WHERE key LIKE 'total/%'")
    return max((int(str(key)[6:]) for (key,) in rows), default=0)


def stage_of(t: int, rounds: int) -> str:
    """The stage of a site that works on round t, as text. At the start, before round 1, the sites connect."""
    if t < 1:
        return "at the start"
    return f"in round {t}" if t <= rounds else "at the end"


def _current(network: NetworkSeen, own: str, completed: int, finished: bool) -> NetworkSeen:
    """`network` if it is up to date; else an empty `NetworkSeen`.

    It is out of date once this site has finished, or has completed the round in which `network` sees it.
    """
    mine = network.of(own)
    stale = mine is None or 0 < mine.round <= completed
    return NetworkSeen() if finished or stale else network


def completed_rounds(site: Site) -> int:
    """How many rounds are complete; 0 before round 1 is complete, and before the state file exists."""
    try:
        with open_to_read(site.database) as db:
            return _completed(db)
    except LedgerError:
        return 0  # the site has not created the file or its tables yet


def _line(neighbour: Neighbour) -> str:
    heard = (
        "not heard yet" if neighbour.at is None else f"heard in round {neighbour.heard}, {ago(neighbour.at)}"
    )
    silent = "" if neighbour.silent_since is None else f"; silent since {clock(neighbour.silent_since)}"
    return f"  {neighbour.name}: {heard}{silent}"


def ago(at: float) -> str:
    """How long ago the time `at` of the wall clock was, as text."""
    return f"{max(0, round(time.time() - at))} s ago"


def pages(read: Callable[[], Status]) -> Pages:
    """The pages to serve: `/` is the status page, and `/status.json` has the same facts as JSON."""
    return {
        "/": lambda: Answer(200, HTML, page(read())),
        "/status.json": lambda: Answer(200, JSON, read().to_json() + "\n"),
    }


def page(status: Status) -> str:
    """A page that reloads itself. First come the sites that hold up the run, then this site, then others."""
    near = {neighbour.name: neighbour for neighbour in status.neighbours}
    seen = (entry.name for entry in status.network.sites)
    names = list(dict.fromkeys([*status.network.blockers, status.site, *near, *seen]))
    facts = {"status": status, "names": names, "near": near, "most": MOST}
    return html_templates(__package__).get_template("status.html").render(facts, ago=ago, stage_of=stage_of)
