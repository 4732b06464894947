"""The check-up: can this site take part, whom can it reach, and what will it cost? Nothing is spent by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...privacy.certificate.certificate import Certificate
from ...privacy.certificate.numbers import rounded_up
from ..rounds.driver import greeting
from ..rounds.prepare import Ready
from ..wire.form import CHECK, HELLO
from ..wire.mailbox import Mailbox
from ..wire.probe import probe
from ..wire.refusals import Refusals
from ..wire.session import Session
from ..wire.waiting import Waiting

STAY = 0.6  # seconds for the neighbours to ask in their turn


@dataclass(frozen=True)
class Finding:
    """One line of a check-up."""

    good: bool
    text: str


def costs(ready: Ready) -> list[Finding]:
    """What the whole run will cost, against the budget."""
    job, rounds = ready.site.job, ready.run.rounds
    forecast, budget = ready.forecast(), ready.budget.epsilon
    cost = f"epsilon {rounded_up(forecast.epsilon)} at delta {job.delta:g}{_against(forecast)}"
    text = f"all {rounds} rounds cost {cost}; the budget is {budget:g}"
    findings = [Finding(forecast.epsilon <= budget, text)]
    if not findings[0].good:
        paid = ready.affordable()
        findings.append(
            Finding(False, f"the budget pays for {paid} of {rounds} rounds; the site would stop there")
        )
    if job.simulated:
        findings.append(
            Finding(True, "the job has a seed: its noise can be replayed, so nothing here is private")
        )
    findings += [Finding(True, f"outside the paper's theorems: {gap}") for gap in ready.gaps()]
    return findings


def _against(forecast: Certificate) -> str:
    """Of a masked job: whom its figure holds against, and what is left if more work together."""
    run = forecast.run
    if not run.masked or run.colluding is None:
        return ""
    worst = rounded_up(forecast.epsilon_against(None))
    return f" while at most {run.colluding} of the other sites work together, {worst} if all of them do"


def neighbours(ready: Ready, seconds: float, found: Callable[[Finding], None]) -> bool:
    """Meet every neighbour on the network, with its name, its key and the same job; True if all were met.

    Two sites can check each other while neither has started. What is exchanged is a frame of no run.
    """
    site, refusals = ready.site, Refusals()
    mailbox = Mailbox(ready.form, site.name, ready.trust, refusals, HELLO, attempt=CHECK)
    missing = site.neighbours
    with Session(site, mailbox, refusals) as session:
        session.keep(HELLO, greeting(ready))

        def absent() -> list[str]:
            return [name for name in mailbox.missing() if name in site.neighbours]

        def ask(names: Sequence[str]) -> None:
            for name in names:
                session.ask(name, HELLO)

        waiting = Waiting(
            seconds,
            mailbox.wait,
            lambda: session.links,
            lambda names, since: None,
            lambda name: "",
            quiet=True,
        )
        waiting.until(absent, ask, "hello", longest=0.25)
        missing = tuple(absent())
        time.sleep(STAY)
        for name in site.neighbours:
            found(_met(ready, name, name in missing, session.connected(), refusals))
    return not missing


def _met(ready: Ready, name: str, missing: bool, connected: set[str], refusals: Refusals) -> Finding:
    if not missing:
        return Finding(True, f"{name}: reached, with its own certificate and the same job")
    refused = [kind for sender, kind in refusals.counts() if sender == name]
    if refused:
        return Finding(False, f"{name}: reached, and refused ({', '.join(refused)}); see the line above")
    if name in connected:
        return Finding(False, f"{name}: connected, but it does not say which job it holds")
    dials = ready.site.dials()
    if name not in dials:
        return Finding(False, f"{name}: has not called this site; is it started?")
    return Finding(
        False, f"{name}: {probe(ready.site, name, dials[name]) or 'answers TLS, and does not connect'}"
    )
