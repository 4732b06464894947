"""The driver: one real site from its first round to its last, resumed wherever it was stopped.

ask what the neighbours know      opening.py: nothing that this site does not
meet everybody                    with the same job; nothing is spent before
f = the node's next vector        (solve, noise, round)
commit charge, bytes and state    one transaction, on disk before the first send
publish                           the same bytes after any restart
hear every neighbour              pushed, or pulled if missed
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ...admm.averaging import network_average
from ...admm.node import Node, NodeState, loop
from ...errors import BudgetExceeded, Contradiction, SiteError, StateLost
from ...objective.solver.threads import one_blas_thread
from ...privacy.release import Release, drive
from ...types import Array
from ..files.arrivals import Arrivals
from ..files.templates import write_readme
from ..wire.form import CHECK, FINISH, HELLO
from ..wire.frame import reaches_edge, size_cap, to_message, to_vector
from ..wire.mailbox import Caught, Forgotten, Letter, Mailbox
from ..wire.refusals import Refusals
from ..wire.session import Session
from .account import check_account, pay, settle
from .early_end.finishing import check_absent, early_mailbox, finish, said_before
from .early_end.words import Completed, Finishing, Why
from .ending import SiteResult, end, last_vectors, resumes_at
from .evidence import find_proof, stop_for
from .exchange import Exchange
from .masked.part import MaskedPart
from .masked.rounds import MaskedRounds
from .masked.store import MaskedMemory, MaskedStore
from .opening import be_vouched_for, meet, recall, seal_release
from .prepare import Ready
from .store import SavedRound, SiteStore
from .warming import warm_up

log = logging.getLogger("taciturn.site")


def run_site(
    ready: Ready,
    *,
    step: Callable[[int], None] = lambda steps: None,
    watch: Callable[[Refusals], AbstractContextManager[None]] = lambda refusals: nullcontext(),
    show: Callable[[Exchange], AbstractContextManager[None]] | None = None,
    without: frozenset[str] | None = None,
    newest: bool = False,
) -> SiteResult:
    """Take part in the job until its end; `step` is told how many rounds were completed.

    `watch` is entered before the site goes on the network: the place to listen to Zenoh's own log. `show` is
    entered once it is there: the place to tell whoever watches this site how it fares. `without`, where it is
    given, ends the run here, by agreement of all sites but these. `newest` insists that a state folder which
    was moved is the newest that there was.

    Raises `SiteError` where the site cannot go on: a silent neighbour, a full disk. Nothing is lost by that;
    calling it again goes on from the same round with the same bytes. `StateLost` and `Contradiction` end the
    run for good.
    """
    with open_store(ready, newest=newest) as store:
        resumed, refusals, proof = store.resume(), Refusals(), find_proof(ready)
        check_account(ready, store)
        at = resumes_at(ready, store, resumed)
        if resumed.state.t < ready.run.rounds:
            warm_up(ready)
        mailbox = Mailbox(ready.form, ready.site.name, ready.trust, refusals, at)
        with (
            Arrivals(ready.site.state, len(ready.site.job.names), size_cap(ready.form.cap)) as arrivals,
            one_blas_thread(),
            watch(refusals),
            Session(ready.site, mailbox, refusals) as session,
        ):
            exchange = Exchange(ready, store, mailbox, session)
            exchange.resume(resumed.state.t)
            mailbox.remember(arrivals.read())
            mailbox.arrived = arrivals.note
            store.moved |= is_behind(ready, mailbox, resumed)
            arrivals.begin(0 if newest else doubted(ready, store, resumed, arrivals))
            session.vouches = lambda name: not store.moved and knows(ready, mailbox, name, arrivals.doubt)
            session.early = early_mailbox(exchange)
            session.keep(HELLO, greeting(ready), attempt=CHECK)
            session.listen()
            with nullcontext() if show is None else show(exchange):
                try:
                    if proof is not None:
                        raise proof
                    return _run_or_finish(rounds_of(exchange, step), resumed, without)
                except (Caught, Forgotten) as trouble:
                    return stop_for(trouble, exchange)


def doubted(ready: Ready, store: SiteStore[Any], resumed: SavedRound[Any], arrivals: Arrivals) -> int:
    """Up to which round a neighbour may have sent frames that this site has lost; 0 if none.

    None goes on after the round that this site released last by more than one. What came in before is lost
    where the machine lost power, and where the state was put back, even if somebody vouched for it meanwhile.
    """
    if store.frame(HELLO) is None or (arrivals.whole and not store.moved):
        return arrivals.doubt
    return min(said_so_far(resumed) + 1, ready.run.rounds)


def knows(ready: Ready, mailbox: Mailbox, name: str, t: int) -> bool:
    """Whether this site holds the frame of round t of a neighbour, or a later one; of round 0 always."""
    newest = mailbox.newest(name)
    return t == 0 or (newest is not None and ready.open_frame(newest).t >= t)


def said_so_far(resumed: SavedRound[Any]) -> int:
    """The last round that was released."""
    return int(resumed.state.t) + (resumed.frame is not None)


def is_behind(ready: Ready, mailbox: Mailbox, resumed: SavedRound[Any]) -> bool:
    """Whether a neighbour has gone on from a frame of this site that its file does not hold any more."""
    said = said_so_far(resumed)
    newest = (mailbox.newest(name) for name in ready.site.neighbours)
    return any(ready.open_frame(data).t > said + 1 for data in newest if data is not None)


def greeting(ready: Ready) -> bytes:
    """What a site shows to a neighbour that only checks: its job, in no run."""
    return ready.seal(HELLO, bytes(ready.form.size(HELLO)), attempt=CHECK)


def rounds_of(exchange: Exchange, step: Callable[[int], None]) -> Rounds | MaskedRounds:
    """The rounds of the job's method."""
    ready, store = exchange.ready, exchange.store
    if isinstance(ready.node, MaskedPart) and isinstance(store, MaskedStore):
        return MaskedRounds(ready, ready.node, store, exchange, step)
    return Rounds(ready, store, exchange, step)


def _run_or_finish(
    rounds: Rounds | MaskedRounds, resumed: SavedRound[Any], without: frozenset[str] | None
) -> SiteResult:
    """To the last round; or to an early end, for somebody's budget or because all that are left agreed."""
    exchange = rounds.exchange
    wanted = said_before(exchange) if without is None else Finishing(Why.AGREED, without)
    if wanted is not None and exchange.store.frame(exchange.ready.form.done) is None:
        check_absent(exchange.ready.site, wanted.absent)
        if not exchange.store.early_frames(FINISH):  # whoever has said it releases nothing more
            recall(exchange, wanted.absent)
        try:
            if wanted.why is Why.BUDGET:
                _finish_spent(rounds, "the budget does not pay for another round.")
            return finish(exchange, rounds, wanted)
        except Completed as other:
            log.warning("%s has completed the run, so this site does too; nothing more is released", other)
    try:
        return _run(rounds, resumed)
    except Finishing as early:
        return finish(exchange, rounds, early)
    except BudgetExceeded as spent:
        _finish_spent(rounds, str(spent))


def _finish_spent(rounds: Rounds | MaskedRounds, spent: str) -> NoReturn:
    """End the run for all because of this site's budget, and say so."""
    try:
        result = finish(rounds.exchange, rounds, Finishing(Why.BUDGET))
    except (StateLost, Contradiction):
        raise
    except SiteError as error:
        raise BudgetExceeded(f"{spent} {error}") from error
    raise BudgetExceeded(f"{spent} The run ended there for all; results in {result.folder}.")


def _run(rounds: Rounds | MaskedRounds, resumed: SavedRound[Any]) -> SiteResult:
    exchange, ready = rounds.exchange, rounds.ready
    if ready.site.job.simulated:
        log.warning("this is a rehearsal: all can repeat the noise of the job's seed, nothing is private")
    if resumed.state.t < ready.run.rounds:
        latest = recall(exchange)
        be_vouched_for(exchange)
        if exchange.mailbox.t == HELLO:
            letters = meet(exchange, latest, rounds.greeting())
            rounds.heard = {number: letter.data for number, letter in letters.items()}
        if resumed.state.t:
            log.info("resumed after round %d of %d", resumed.state.t, ready.run.rounds)
            rounds.step(resumed.state.t)
        pay(ready, exchange.store)
        rounds.run(resumed)
    result = end(exchange, rounds.model)
    settle(ready, exchange.store)
    return result


def open_store(ready: Ready, *, newest: bool = False) -> SiteStore[Any]:
    """The site's file, new or resumed; `newest` is somebody's word that it is the newest there ever was."""
    facts: dict[str, Any] = {
        "job": ready.site.job.hash,
        "name": ready.site.name,
        "schedules": ready.site.schedules,
        "run": ready.run,
        "facts": ready.facts,
        "budget": ready.budget,
    }
    if isinstance(ready.memory, MaskedMemory):
        store: SiteStore[Any] = MaskedStore(ready.site.database, memory=ready.memory, **facts)
    else:
        store = SiteStore(ready.site.database, memory=ready.memory, **facts)
    write_readme(ready.site.state)
    if newest:
        store.stay(vouched=True)
    return store


def sum_heard(letters: dict[int, Letter], dimension: int, clip: float) -> Array:
    """sum_j f_j(t), clipped to the public range, added in increasing j as every engine does; (1, d)."""
    total = np.zeros((1, dimension))
    for letter in letters.values():
        total += np.clip(letter.vector, -clip, clip)
    return total


@dataclass
class Rounds:
    """The rounds of one site: `frame` was committed and is not answered yet, `heard` are the last answers."""

    ready: Ready
    store: SiteStore[NodeState]
    exchange: Exchange
    step: Callable[[int], None]
    frame: bytes | None = None
    heard: dict[int, bytes] = field(default_factory=dict)
    at_edge: set[int] = field(default_factory=set)

    def greeting(self) -> bytes:
        """What 'hello' shows besides its nonce: nothing."""
        return b""

    def model_after(self, t: int) -> Array:
        """Only a masked run has one."""
        raise SiteError(f"the job {self.ready.site.job.name} is not of method 'masked'; it has no sums.")

    def model(self) -> Array:
        """The average of all last vectors."""
        vectors = last_vectors(self.ready, self.store)
        return network_average(np.stack([vectors[number] for number in sorted(vectors)]))

    def run(self, resumed: SavedRound[NodeState]) -> None:
        """From the round after `resumed.state` to the last."""
        ready, node, state, released = self.ready, self.ready.node, resumed.state, None
        if not isinstance(node, Node):
            raise SiteError(f"the job {ready.site.job.name} is not of method 'penalty'.")
        if resumed.frame is not None:
            self.frame = resumed.frame
            released = to_vector(ready.open_frame(resumed.frame).message)[None, :]
        last = drive(loop(node, state, commit=self.commit, released=released), self.hear)
        self.store.finish(last, self.heard)

    def commit(self, release: Release[Array, NodeState]) -> None:
        """Charge, bytes, and the state and frames that led to them: on disk, or nothing may be sent."""
        if release.charge.aborted:  # no bytes: nothing is ever sent of this round, and it is drawn no more
            self.store.abort(release.state, release.charge, self.heard)
            return
        frame = seal_release(self.exchange, release.t, to_message(release.message))
        try:
            self.store.release(release.state, release.charge, frame, self.heard)
        except BudgetExceeded:  # the run ends after the round before this
            self.store.finish(release.state, self.heard)
            raise
        self.frame = frame

    def hear(self, release: Release[Array, NodeState]) -> Array:
        """Send what was committed; what the neighbours sent, added up."""
        job = self.ready.site.job
        if self.frame is None:
            raise SiteError(f"round {release.t} was not committed; nothing may be sent.")
        letters = self.exchange.send(release.t, self.frame)
        self.frame, self.heard = None, {number: letter.data for number, letter in letters.items()}
        self.step(1)
        numbers = {job.names.index(name) for name in self.ready.site.neighbours}
        near = {n: letter for n, letter in letters.items() if n in numbers}
        self.note_edge(release.t, {n: letter.vector for n, letter in near.items()})
        return sum_heard(near, job.dimension, job.penalty.clip)

    def note_edge(self, t: int, vectors: Mapping[int, Array]) -> None:
        """Say, once for each, which site sends values at the edge of the range."""
        job = self.ready.site.job
        for n, vector in vectors.items():
            if n not in self.at_edge and reaches_edge(vector, job.penalty.clip):
                self.at_edge.add(n)
                log.warning(
                    "%s sends values at the edge of the job's range of +-%g since round %d: it drives the "
                    "model there, or is driven there itself",
                    job.names[n],
                    job.penalty.clip,
                    t,
                )
