"""Parts of `taciturn site check`: what the job costs, whether it is approved, which neighbours answer.

A table's account is the file that records what all jobs on the table have cost. The check charges nothing.
A neighbour is a site to which the job gives this site a direct link.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

from ...core.errors import SiteError, TaciturnError
from ...core.formatting import format_at_least, format_cost, format_delta, format_given
from ...privacy.certificate.masked_words import holds_while
from ..protocol.events import Event
from ..protocol.frames import size_cap
from ..rounds.prepare import PreparedSite
from ..state.account import Account, open_account
from ..state.approval import decide, question, what_for
from ..transport.zenoh import ZenohLinks
from ..wire.config import largest_payload
from ..wire.probe import Probes, probe
from ..wire.refusals import Refusals
from ..wire.zenoh_log import NAMELESS
from .own import Finding

STAY = 5.0  # the most seconds that this site stays connected after its check, for checks by its neighbours
BETWEEN = 0.05  # seconds to wait for an event before this site checks its links again


def costs(ready: PreparedSite) -> list[Finding]:
    """Findings about the cost of the run, the account, the approval, and the gaps to the paper's theorems."""
    account = open_account(ready.site)
    findings = _rehearsal(ready) if account is None else _account(ready, account)
    gaps = ready.site.job.settings.gaps(ready.site.settings)
    return [*findings, *(Finding(True, f"outside the paper's theorems: {gap}") for gap in gaps)]


def _account(ready: PreparedSite, account: Account) -> list[Finding]:
    """Findings about the account and the approval. If the approval is missing, the check does not fail."""
    try:
        account.check_place()
        planned, seen = ready.planned(), account.seen()
        asked = question(ready.site, planned)
    except TaciturnError as error:
        return [Finding(False, f"account: {error}")]
    try:
        left = format_at_least(account.can_pay(planned, what_for(ready.site)))
    except TaciturnError as error:
        return [Finding(True, seen.line()), Finding(False, f"account: {error}")]
    cost = f"epsilon {format_cost(asked.epsilon)} at delta {format_delta(asked.delta)}"
    rounds = "the one round costs" if asked.rounds == 1 else f"all {asked.rounds} rounds cost"
    new = "" if account.place.exists() else f"; a new account will be created at {account.place}"
    decision = decide(ready.site, planned, account, log=False)
    return [
        Finding(True, f"{rounds} {cost} for any one {asked.unit}, {asked.against}"),
        Finding(True, seen.line()),
        Finding(True, f"account: can pay for this job; one more job may then cost at most {left}{new}"),
        Finding(True, f"approval: {decision.why}", note=not decision.allowed),
    ]


def _rehearsal(ready: PreparedSite) -> list[Finding]:
    """Findings about a job with a seed, which is never private: what it would cost without the seed."""
    seed = "the job has a seed: anyone can reproduce its noise; nothing is private, and nothing is charged"
    rounds, forecast, budget = ready.run.rounds, ready.forecast(), ready.budget.epsilon
    at = format_delta(ready.budget.delta)
    against = holds_while(forecast.run.colluding, forecast.epsilon_against(None))
    cost = f"epsilon {format_cost(forecast.epsilon)} at delta {at}{against}"
    text = f"without a seed, all {rounds} rounds would cost {cost}; the budget is {format_given(budget)}"
    findings = [Finding(forecast.epsilon <= budget, text, note=True), Finding(True, seed, note=True)]
    if not findings[0].good:
        findings.append(Finding(False, "the budget does not pay for the job; the site would not start"))
    return findings


def neighbours(
    ready: PreparedSite,
    seconds: float,
    watch: Callable[[Refusals], AbstractContextManager[None]] = lambda refusals: nullcontext(),
) -> list[Finding]:
    """Check that every neighbour answers with its name, its key and the same job.

    This check exchanges no message of the run, so two sites can check each other before the run. `watch`
    returns a context manager, entered before the site connects, that listens to Zenoh's own log.
    """
    refusals = Refusals()
    with watch(refusals):
        try:
            return _meet(ready, seconds, refusals)
        except SiteError as error:
            why = "is this site already running, or is another check of it running?"
            return [Finding(False, f"{str(error).rstrip('.')}; {why}")]


def _meet(ready: PreparedSite, seconds: float, refusals: Refusals) -> list[Finding]:
    """Exchange encryption keys with every neighbour. The signed answer of a neighbour names its job.

    A neighbour answers only while `taciturn site run` or `taciturn site check` is running there.
    """
    site, names = ready.site, ready.site.job.names
    near, events = {names.index(name) for name in site.neighbours}, queue.Queue[Event]()
    largest = size_cap(largest_payload(site.job))
    with ZenohLinks(site, ready.identity, ready.trust, refusals, events.put, largest) as links:
        links.listen()

        def absent() -> list[str]:
            return [names[i] for i in sorted(near - links.met)]

        def wait(longest: float, enough: Callable[[], bool]) -> None:
            end = time.monotonic() + longest
            while not enough() and time.monotonic() < end:
                links.look()
                with suppress(queue.Empty):
                    events.get(timeout=BETWEEN)

        with Probes(site, absent, min(1.0, seconds / 2)) as probes:
            wait(seconds, lambda: links.met >= near)
        wait(min(STAY, seconds), lambda: links.met <= links.answered)  # neighbours may still need an answer
        seen = Seen(links.connected(), refusals.counts(), probes.found)
        return [_met(ready, names[i], i not in links.met, seen) for i in sorted(near)]


class Seen(NamedTuple):
    """The connected neighbours; refusals by sender and kind; the fault of each probed neighbour, or None."""

    connected: set[str]
    refused: dict[tuple[str, str], int]
    probed: dict[str, str | None]

    def kinds(self, sender: str) -> str:
        """Why messages or connections of one sender were refused: the kinds of refusals, as text."""
        return ", ".join(kind for who, kind in self.refused if who == sender)


def _met(ready: PreparedSite, name: str, missing: bool, seen: Seen) -> Finding:
    if not missing:
        return Finding(True, f"{name}: reached, with its own certificate and the same job")
    if refused := seen.kinds(name):
        return Finding(False, f"{name}: reached, but refused ({refused}); see the log line above")
    if name in seen.connected:
        return Finding(False, f"{name}: connected, but it does not state its job")
    wrong = seen.probed.get(name, "")
    if name in ready.site.dials():
        if wrong == "":
            wrong = probe(ready.site, name, ready.site.dials()[name])
        return Finding(False, f"{name}: {wrong or 'answers TLS, but does not connect'}")
    if nameless := seen.kinds(NAMELESS):
        return Finding(False, f"{name}: not connected; a client was refused ({nameless}), see above")
    if wrong is None:
        order = "are the `[[sites]]` of both jobs in the same order? Later sites connect to earlier ones"
        job = f"the hash of this job is {ready.site.job.hash.hex()[:16]}"
        return Finding(False, f"{name}: listens, but does not connect to this site: {order}; {job}")
    return Finding(False, f"{name}: has not connected to this site; has it been started?")
