"""The driver runs one real site from its first round to its last. A stopped site continues where it was.

The protocol in `sites/protocol/` decides. One thread hands the protocol one event after another, and carries
out the effects: records and charges go to disk, keys into memory that a power cut erases, and frames (signed
messages) to Zenoh. A frame is sent only once everything that it depends on is on disk.
"""

from __future__ import annotations

import logging
import os
import queue
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from ...core.errors import (
    BudgetExceeded,
    Contradiction,
    NeighbourFailed,
    ParameterError,
    RunOver,
    SiteError,
    StateLost,
    TaciturnError,
    WrongFiles,
)
from ...objective.solver.threads import one_blas_thread
from ..files.kit import write_readme
from ..files.site import Site
from ..protocol.events import (
    Ask,
    Effect,
    Event,
    FinishAsked,
    Finished,
    Heard,
    Hold,
    Leave,
    Note,
    Reason,
    SendFrame,
    Started,
    Stop,
    Stored,
    StoreFailed,
    StoreRecords,
    Tick,
)
from ..protocol.frames import FrameRefused, contradict, decode, size_cap
from ..protocol.machine import SiteProtocol
from ..state.account import Account, open_account
from ..state.volatile_keys import VolatileMemory, open_volatile
from ..transport.zenoh import ZenohLinks
from ..wire.refusals import Refusals
from ..wire.revocations import RevocationFiles
from ..wire.whereabouts import Whereabouts
from .charging import admit, charge_first
from .ending import SiteResult, check_start, end_run, recall, without_secrets
from .evidence import state_released, take_back_results, write_proof
from .prepare import PreparedSite
from .store import SiteStore
from .waiting import WaitingRoom

log = logging.getLogger("taciturn.site")
STAY = 60.0  # the most seconds for which the proof (two contradictory frames) is sent to the neighbours
SETTLE = 5.0  # seconds to look for a site that signed two contradictory frames
AGAIN = 0.5  # seconds between two broadcasts of the proof
BY_SIGNATURE = ("certificate", "name", "signature")  # `PreparedSite.setup` has counted these refusals already
_ERRORS: dict[Reason, type[TaciturnError]] = {
    Reason.LEFT_ALONE: NeighbourFailed,
    Reason.CONTRADICTION: Contradiction,
    Reason.DISAGREEMENT: NeighbourFailed,
    Reason.IMPOSSIBLE: Contradiction,
    Reason.COPY: StateLost,
    Reason.BUDGET: BudgetExceeded,
    Reason.DISK: SiteError,
    Reason.ABORTED: RunOver,
}


def run_site(
    ready: PreparedSite,
    *,
    step: Callable[[int], None] = lambda steps: None,
    watch: Callable[[Refusals], AbstractContextManager[None]] = lambda refusals: nullcontext(),
    show: Callable[[SiteDriver], AbstractContextManager[None]] | None = None,
    without: frozenset[str] | None = None,
    newest: bool = False,
) -> SiteResult:
    """Take part in the job until its end.

    step : called with the number of newly completed rounds.
    watch, show : functions that return context managers. The first one listens to Zenoh's own log, the second
        one serves the status page.
    without : end the run early, once all sites except these agree.
    newest : the owner confirms that no newer copy of the moved or restored state folder exists.

    Raises `SiteError` if the site cannot continue, for example because a neighbour is silent or the disk is
    full. Nothing is lost: the next call continues with the same round and the same bytes. After `StateLost`,
    the owner must act before the run can continue; `RunOver` and `Contradiction` end the run for good.
    """
    site, account = ready.site, open_account(ready.site)
    if newest and ready.prepared.padded:
        raise ParameterError(
            "`--newest-state` must be left out for a masked job: such a job continues safely from any state."
        )
    absent = None if without is None else _absent(site, without)
    admit(ready, account)
    facts: dict[str, Any] = {"job": site.job.hash, "name": site.name, "run": ready.run}
    with SiteStore(site.database, **facts, facts=ready.facts, budget=ready.budget) as store:
        write_readme(site.state)
        admit(ready, account, store)
        unmoved = check_start(ready, store, account, newest=newest)
        memory = open_volatile(site.volatile, site.database) if ready.prepared.padded else None
        refusals = Refusals()
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        setup = ready.setup(refusals, mark=store.reached[1], paid=not unmoved)
        protocol = recall(ready, store, setup, {} if memory is None else memory.read())
        if memory is None and unmoved:
            protocol.volatile.update(without_secrets(protocol))
        if site.job.simulated:
            log.warning(
                "this is a rehearsal: anyone can reproduce the noise from the seed, so nothing is private"
            )
        if protocol.completed[1] < protocol.method.rounds:
            ready.warm_up()
        whereabouts = Whereabouts(site.number, site.job.names)
        with (
            one_blas_thread(),
            watch(refusals),
            ZenohLinks(
                site,
                ready.identity,
                ready.trust,
                refusals,
                events.put,
                size_cap(setup.largest),
                whereabouts.told,
            ) as links,
        ):
            room = WaitingRoom(site, protocol, links, whereabouts)
            revoked = RevocationFiles(site, ready.trust.authorities)
            driver = SiteDriver(ready, store, memory, links, protocol, events, account, room, revoked, step)
            links.listen()
            with nullcontext() if show is None else show(driver):
                return driver.run(absent)


def _absent(site: Site, absent: frozenset[str]) -> frozenset[int]:
    """The numbers of the absent sites. Links must still connect all remaining sites."""
    names = site.job.names
    for name in sorted(absent):
        if name not in names or name == site.name:
            raise ParameterError(f"`--without` must name another site of the job; got {name!r}.")
    left = [i for i, name in enumerate(names) if name not in absent]
    if not nx.is_connected(site.job.graph.to_networkx().subgraph(left)):
        raise ParameterError(
            f"`--without` must leave a network whose links connect all of its sites; without "
            f"{', '.join(sorted(absent))}, they do not."
        )
    return frozenset(names.index(name) for name in absent)


@dataclass
class SiteDriver:
    """One running site. Its own events (`soon`) are handled before those of the network (`events`)."""

    ready: PreparedSite
    store: SiteStore
    memory: VolatileMemory | None
    links: ZenohLinks
    protocol: SiteProtocol
    events: queue.SimpleQueue[Event]
    account: Account | None
    room: WaitingRoom
    revoked: RevocationFiles
    step: Callable[[int], None]
    result: SiteResult | RunOver | None = None
    timer: float = 0.0
    left: bool = False
    soon: deque[Event] = field(default_factory=deque)

    def run(self, without: frozenset[int] | None) -> SiteResult:
        """Run until the site has its result and no other site needs this site, or until it must stop."""
        done = self.protocol.completed[1]
        if done:
            log.info("resumed after round %d of %d", done, self.protocol.method.rounds)
            self.step(done)
        self.timer = time.monotonic() + self.protocol.setup.tick
        self.soon.append(Started())
        if without is not None:
            self.soon.append(FinishAsked(without))
        while not self.left:
            event = self._next()
            for effect in self.protocol.handle(event, time.monotonic(), os.urandom(32)):
                self._carry_out(effect)
            if isinstance(event, Tick):
                self._revoke()
                self.links.look()
                self.room.look()
                # set after the tick, so that received events come between ticks even if ticks are slow
                self.timer = time.monotonic() + self.protocol.setup.tick
        self.room.look(last=True)
        if isinstance(self.result, SiteResult):
            if missing := self.room.names:
                names = ", ".join(missing)
                log.warning(
                    "stopped, although %s may still need this site; if so, run the command again", names
                )
            return self.result
        raise self.result or SiteError("the site stopped without a result.")

    def _revoke(self) -> None:
        """If the revoked certificates have changed, connect again with new keys, as after a restart."""
        revocations, trust = self.revoked.read_changed(), self.ready.trust
        if revocations is None or revocations == trust.revocations:
            return
        trust.revoke(revocations)
        try:
            trust.key_of(self.ready.identity.certificate, self.ready.site.name)
        except FrameRefused as error:
            raise WrongFiles(
                f"{self.revoked.site.source}: the certificate of this site cannot be used any more: {error}. "
                "Give the site a new key and certificate, and run the same command."
            ) from error
        log.warning("the list of revoked certificates has changed: this site connects again, with new keys")
        self.links.renew(self.revoked.site)

    def _next(self) -> Event:
        """The next event: a pending event of this site, a received event, or a tick."""
        if self.soon:
            return self.soon.popleft()
        now = time.monotonic()
        if now < self.timer:  # a neighbour that sends without pause must not hold up the timer
            with suppress(queue.Empty):
                return self.events.get(timeout=self.timer - now)
        self.timer = time.monotonic() + self.protocol.setup.tick
        return Tick()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case StoreRecords():
                self._store(effect)
            case Hold(entries):
                if self.memory is not None:
                    self.memory.change(entries)
            case SendFrame(data, to):
                self.links.send(data, to)
            case Ask(to, question):
                self.links.ask(to, question)
            case Note(text, facts, warning):
                self._note(text, dict(facts), warning)
            case Finished():
                self._finish(effect)
            case Leave():
                self.left = True
            case Stop():
                self._stop(effect)

    def _finish(self, effect: Finished) -> None:
        self.result = end_run(self.ready, self.store, self.protocol, effect, account=self.account)
        if self.memory is not None:
            self.memory.wipe()

    def _store(self, effect: StoreRecords) -> None:
        try:
            if effect.releases:
                charge_first(self.ready, self.account, self.store)
            self.store.write(effect)
            if effect.releases and self.account is not None:
                self.account.marks.raise_to(self.store.id, *self.store.reached, self.store.identity)
        except BudgetExceeded as error:
            self.soon.append(StoreFailed(effect.number, str(error), budget=True))
        except (WrongFiles, StateLost):
            raise
        except TaciturnError as error:
            self.soon.append(StoreFailed(effect.number, str(error)))
        else:
            self.soon.append(Stored(effect.number))

    def _note(self, text: str, facts: dict[str, Any], warning: bool) -> None:
        if "refused" in facts:
            if facts["refused"] not in BY_SIGNATURE:
                self.links.refusals.refuse(self._name(facts["via"]), facts["refused"], text)
            return
        event = "round" if "round" in facts else "protocol"
        if event == "round":
            self.step(1)
        level = logging.WARNING if warning else logging.DEBUG if facts else logging.INFO
        log.log(level, "%s", text, extra={"facts": {"event": event, **facts}})

    # -- a run that must stop ---------------------------------------------------------------------------

    def _stop(self, effect: Stop) -> None:
        """Raise the error for the reason. For some reasons, first look for a proof, or state the releases."""
        if effect.reason is Reason.LEFT_ALONE:
            self.room.look()
            if self.room.names:
                raise NeighbourFailed(self.room.silence())
        if effect.reason is Reason.CONTRADICTION:
            self._show(effect.about, effect.evidence)
        if effect.reason in (Reason.DISAGREEMENT, Reason.IMPOSSIBLE):
            self._settle()
        text = effect.text
        if effect.reason in (Reason.COPY, Reason.IMPOSSIBLE):
            take_back_results(self.ready.site.state)
            if effect.reason is Reason.COPY:
                self.store.confirm(*self.store.reached)  # the copy may have sent more
            if effect.reason is Reason.IMPOSSIBLE:
                self.store.forbid(text)
            about = self.ready.site.name if effect.about is None else self._name(effect.about)
            text = f"{text} {state_released(self.ready, self.store, about)}."
        raise _ERRORS[effect.reason](text)

    def _name(self, site: int | None) -> str:
        return self.protocol.setup.names[self.protocol.setup.own if site is None else site]

    def _show(self, about: int | None, evidence: tuple[bytes, ...]) -> None:
        """One site signed two contradictory frames: store them, show them to neighbours, stop."""
        site, owner = self.ready.site, self._name(about)
        written = write_proof(site.state, site.job.name, owner, evidence)
        take_back_results(site.state)
        mine = owner == site.name
        t = max(decode(data, largest=len(data)).t for data in evidence)
        said = state_released(self.ready, self.store, owner, twice=t if mine else None)
        log.error("%s signed two messages (frames) that contradict each other: %s", owner, written)
        self._stay(evidence, owner)
        whose = "this site itself, or a copy of it," if mine else owner
        when = f"round {t}" if t else "the end of the run"
        raise Contradiction(
            f"{whose} signed two messages (frames) for {when} that contradict each other. Both are in "
            f"{written}; anyone who has this file can check them. {said}. The run has ended for all sites, "
            "and no model is written."
        )

    def _stay(self, evidence: tuple[bytes, ...], owner: str) -> None:
        """Send the two frames until every neighbour except the culprit has returned them, at most 60 s."""
        site = self.ready.site
        shown: dict[int, set[bytes]] = {
            site.job.names.index(name): set() for name in site.neighbours if name != owner
        }
        end = time.monotonic() + min(STAY, site.file.patience)
        again = 0.0
        while any(len(seen) < len(evidence) for seen in shown.values()) and time.monotonic() < end:
            if time.monotonic() >= again:
                again = time.monotonic() + AGAIN
                for data in evidence:
                    self.links.send(data)
            try:
                event = self.events.get(timeout=0.1)
            except queue.Empty:
                continue
            if isinstance(event, Heard) and event.data in evidence and event.via in shown:
                shown[event.via].add(event.data)
        for data in evidence:
            self.links.send(data)
        time.sleep(0.2)  # the last frames may be on their way

    def _settle(self) -> None:
        """Members have different states or sums: look for a site that signed two contradictory frames."""
        end = time.monotonic() + min(SETTLE, self.ready.site.file.patience)
        protocol = self.protocol
        while time.monotonic() < end:
            try:
                event = self.events.get(timeout=0.1)
                if not isinstance(event, Heard):
                    continue
                frame = decode(event.data, largest=protocol.setup.largest)
                held = protocol.board.get((frame.slot, frame.scope))
                if held is None or not contradict(held[0], frame):
                    continue
                protocol.setup.believe(frame)
            except (queue.Empty, FrameRefused):
                continue
            self._show(frame.sender, (held[1], event.data))
