"""The check-up: can this site take part, whom can it reach, and what will it cost? Nothing is spent by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from ...errors import SiteError
from ...privacy.accounting.shown import rounded_up, shown_delta
from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.masked_words import holds_while
from ..rounds.account import foresee
from ..rounds.driver import greeting
from ..rounds.prepare import Ready
from ..rounds.whereabouts import Whereabouts
from ..wire.form import CHECK, HELLO
from ..wire.mailbox import Mailbox
from ..wire.probe import Probes, probe
from ..wire.refusals import Refusals
from ..wire.session import Session
from ..wire.waiting import Waiting
from ..wire.zenoh_log import NAMELESS
from .findings import Finding

STAY = 5.0  # seconds at most for the neighbours to meet this site in their turn


def costs(ready: Ready) -> list[Finding]:
    """What the whole run will cost, against the budget."""
    job, rounds = ready.site.job, ready.run.rounds
    forecast, budget = ready.forecast(), ready.budget.epsilon
    at = shown_delta(ready.budget.delta)
    cost = f"epsilon {rounded_up(forecast.epsilon)} at delta {at}{_against(forecast)}"
    text = f"all {rounds} rounds cost {cost}; the budget is {budget:g}"
    findings = [Finding(forecast.epsilon <= budget, text)]
    if not findings[0].good:
        paid = ready.affordable()
        findings.append(
            Finding(False, f"the budget pays for {paid} of {rounds} rounds; the site would stop there")
        )
    findings += [Finding(good, text) for good, text in foresee(ready)]
    if job.simulated:
        findings.append(
            Finding(True, "the job has a seed: its noise can be replayed, so nothing here is private")
        )
    findings += [Finding(True, f"outside the paper's theorems: {gap}") for gap in ready.gaps()]
    return findings


def _against(forecast: Certificate) -> str:
    """Of a masked job: whom its figure holds against, and what is left if more work together."""
    return holds_while(forecast.run.colluding, forecast.epsilon_against(None)) if forecast.run.masked else ""


def neighbours(
    ready: Ready,
    seconds: float,
    found: Callable[[Finding], None],
    watch: Callable[[Refusals], AbstractContextManager[None]] = lambda refusals: nullcontext(),
) -> bool:
    """Meet every neighbour on the network, with its name, its key and the same job; True if all were met.

    Two sites can check each other while neither has started. What is exchanged is a frame of no run. `watch`
    is as in `run_site`.
    """
    refusals = Refusals()
    findings: list[Finding] = []
    with watch(refusals):
        try:
            findings = _meet(ready, seconds, refusals)
        except SiteError as error:
            why = "does this site run already, or is it checked twice at once?"
            findings.append(Finding(False, f"{str(error).rstrip('.')}; {why}"))
    for finding in findings:
        found(finding)
    return all(finding.good for finding in findings)


def _meet(ready: Ready, seconds: float, refusals: Refusals) -> list[Finding]:
    site = ready.site
    mailbox = Mailbox(ready.form, site.name, ready.trust, refusals, HELLO, attempt=CHECK)
    where = Whereabouts(site.number, site.job.names)
    with Session(site, mailbox, refusals) as session:
        session.keep(HELLO, greeting(ready))
        session.where, session.told = where.pack, where.told
        session.listen()

        def absent() -> list[str]:
            return [name for name in mailbox.missing() if name in site.neighbours]

        def ask(names: Sequence[str]) -> None:
            for name in names:
                session.ask(name, HELLO)

        def needing() -> list[str]:
            """Who has not met this site yet, although it was met."""
            met, known = set(site.neighbours) - set(absent()), where.known()
            numbers = {name: site.job.names.index(name) for name in met}
            return [n for n, j in numbers.items() if j not in known or site.number in known[j].waits_for]

        def wait(longest: float) -> Waiting:
            look = lambda names, since: where.be(HELLO, absent())  # noqa: E731
            ways = (mailbox.wait, lambda: session.links, lambda names, since: None, lambda name: "")
            return Waiting(longest, *ways, quiet=True, look=look)

        with Probes(site, absent, min(1.0, seconds / 2)) as probes:
            wait(seconds).until(absent, ask, "hello", longest=0.25)
        missing = absent()
        where.be(HELLO, missing)
        last = wait(min(STAY, seconds))
        last.until(needing, lambda names: session.ask_where(), "until it met this site", longest=0.25)
        seen = Seen(session.connected(), refusals.counts(), probes.found)
        return [_met(ready, name, name in missing, seen) for name in site.neighbours]


class Seen(NamedTuple):
    """Who is on the line, what was refused, and what probes of those who are missing found."""

    connected: set[str]
    refused: dict[tuple[str, str], int]
    probed: dict[str, str | None]

    def kinds(self, sender: str) -> str:
        """What was refused of one sender."""
        return ", ".join(kind for who, kind in self.refused if who == sender)


def _met(ready: Ready, name: str, missing: bool, seen: Seen) -> Finding:
    if not missing:
        return Finding(True, f"{name}: reached, with its own certificate and the same job")
    if refused := seen.kinds(name):
        return Finding(False, f"{name}: reached, and refused ({refused}); see the line above")
    if name in seen.connected:
        return Finding(False, f"{name}: connected, but it does not say which job it holds")
    wrong = seen.probed.get(name, "")
    if name in ready.site.dials():
        if wrong == "":
            wrong = probe(ready.site, name, ready.site.dials()[name])
        return Finding(False, f"{name}: {wrong or 'answers TLS, and does not connect'}")
    if nameless := seen.kinds(NAMELESS):
        return Finding(False, f"{name}: did not get in; somebody was refused ({nameless}), see above")
    if wrong is None:
        order = "are the `[[sites]]` of both jobs in the same order? The later calls the earlier"
        job = f"this job is {ready.site.job.hash.hex()[:16]}"
        return Finding(False, f"{name}: listens, and does not call this site: {order}; {job}")
    return Finding(False, f"{name}: has not called this site; is it started?")
