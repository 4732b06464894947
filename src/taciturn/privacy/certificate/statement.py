"""A certificate in paragraphs that a data-protection officer can read: plain words, nothing left out."""

from __future__ import annotations

import math

from ..accounting.shown import odds, rounded_up, shown_delta
from ..costs import float_delta
from ..facts import PLANNED, RunFacts
from . import masked_words
from .claims import Claims

_WHERE = {
    "penalty": "inside the computation (penalty perturbation)",
    "dual": "inside the computation (dual variable perturbation)",
    "primal": "to what was computed (primal variable perturbation)",
    "masked": "to every share of a sum (discrete Gaussian noise on masked sums)",
}
_UNKNOWN = {
    "record": "every record but one. Had that one record been replaced by another",
    "person": "every record but those of one person. Had all records of that person been replaced by others",
}
_COVERED = {
    "record": """The figures protect one record at one site; a person with several records is protected
        less.""",
    "person": """The figures protect one person with all records that carry their name in this run; whoever
        is in it under two names is protected less.""",
}
_WEAK = 10.0  # an epsilon above this deserves a warning


def statement(claims: Claims) -> str:
    """Whether it is real, what was done, what it cost, what the figures include, and what they leave out."""
    parts = (
        _pretence(claims.run),
        _done(claims),
        _cost(claims),
        _reality(claims.run),
        _limits(claims.run),
    )
    return "\n\n".join(" ".join(part.split()) for part in parts if part)


def _pretence(run: RunFacts) -> str:
    """What is said before anything else of a run that protects nobody."""
    if run.planned:
        return "PLANNED: no run took place; this is what a run with these settings would be and cost."
    if not run.simulated:
        return ""
    return """SIMULATED: the random numbers can be replayed by whoever knows the seed, so this run protects
        nobody; the figures say what the same run would cost with secret noise."""


def _done(claims: Claims) -> str:
    run, rounds = claims.run, claims.rounds
    times = "one round" if rounds == 1 else f"each of {_count(rounds, 'round')}"
    said = f"{_who(run)} In {times} {_messages(run)}."
    if len(claims.sites) < run.sites:
        names = ", ".join(facts.name for facts in claims.sites[:5])
        said += f" This statement covers {len(claims.sites)} of the {run.sites} sites: {names}."
    if rounds < run.rounds:
        said += f""" {_count(run.rounds, "round")} were planned; the figures count the rounds that were
            charged, and hold only if the decision to stop did not depend on what had been sent."""
    return said


def _who(run: RunFacts) -> str:
    """Who trained, and who held whose records meanwhile."""
    sites = _count(run.sites, "site")
    if run.loss.counting:
        return _who_counted(run, sites)
    if run.where == "process":
        return f"""One process, which held the records of all {sites}, trained one model for them: whoever
            ran it could see every record."""
    if run.where == "simulated":
        return f"One process simulated {sites} that train one model together without pooling their records."
    if run.where == "folders":
        return f"""{sites} on one machine, each a process that read the records in its own folder, trained
            one model together."""
    return f"{sites} trained one model together without pooling their records."


def _who_counted(run: RunFacts, sites: str) -> str:
    """The same where nothing was learnt but counts."""
    tables = _count(run.dimension, "table")
    if run.where == "process":
        return f"""One process, which held the records of all {sites}, counted them in {tables}: whoever ran
            it could see every record."""
    if run.where == "simulated":
        return f"One process simulated {sites} that count their records in {tables} without pooling them."
    return f"{sites} counted their records in {tables} together without pooling them."


def _cost(claims: Claims) -> str:
    run, epsilon, delta = claims.run, claims.epsilon, shown_delta(claims.delta)
    if run.noise == "none":
        return """No random noise was added, so nothing limits what can be learnt about a person from what was
            sent: epsilon is infinite. Treat everything that was sent as personal data."""
    said = f"Random noise was added {_WHERE[run.method]} before anything {_left(run)}."
    if math.isinf(epsilon):
        return said + " It is too little for any guarantee: epsilon is infinite."
    who = masked_words.observer(run) if run.masked else "controls all the other sites"
    said += f""" Suppose someone sees everything that was ever sent, {who} and knows {_UNKNOWN[run.unit]},
        nothing this observer could see or compute would have become more likely, or less likely, by more
        than a factor of {_factor(epsilon)}, but for a chance of at most {odds(claims.delta)}. In the
        language of differential privacy: epsilon = {rounded_up(epsilon)} at delta = {delta}, for all rounds
        together. Smaller is safer: at epsilon = 0 nothing about a single {run.unit} could be learnt."""
    if claims.large_delta:
        said += f""" LARGE DELTA: {delta} is above 1 in {claims.units:,}, the number of {run.unit}s.
            Publishing one of them as it is would keep to it."""
    if run.masked:
        said += " " + masked_words.trust(claims)
    if epsilon > _WEAK:
        said += f" An epsilon above {_WEAK:g} is, by itself, little protection."
    if math.isfinite(claims.pure_epsilon):
        said += f" {_exception(run)}, epsilon = {rounded_up(claims.pure_epsilon)}."
    if run.masked:
        return said
    worst = next(facts for facts in claims.sites if facts.site == claims.worst_site)
    return f"""{said} The figure is that of the least protected site, {worst.name}, with
        {_count(worst.samples, run.unit)} and {_count(worst.degree, "neighbour")}."""


def _exception(run: RunFacts) -> str:
    if not run.integers:
        return "With no exception at all (delta = 0)"
    return f"But for a chance of {rounded_up(float_delta(run))}, which drawing noise in floats leaves"


def _reality(run: RunFacts) -> str:
    if run.noise == "none":
        return ""
    if run.masked:
        return f"""The noise is made of whole numbers, drawn exactly, and what {_leaves(run)} are whole
            numbers: the figures include the rounding before, and what floats may stray."""
    if run.idealised:
        return """IDEALISED: the figures assume that each site computes exactly. A computer does not, and
            no further noise was added to cover the difference, so they are no guarantee for what was really
            sent."""
    said = f"""A computer solves each site's problem only up to an error, here at most {run.tol:g}; the
        figures include what that error costs."""
    if run.integers:
        said += f""" What {_leaves(run)} are whole numbers, and the last noise is made of whole numbers, drawn
        exactly: the figures hold for the very bits that were {_gone(run)}."""
    return said


def _limits(run: RunFacts) -> str:
    said = " ".join(f"NOTE: {mark}." for mark in run.marks if mark != PLANNED)
    if run.noise == "none":
        return said
    return (
        said
        + f""" {_COVERED[run.unit]}
        They cover what was sent and whatever is computed from it, not how long it took, nor what a site
        published besides. The full list of conditions is part of this certificate."""
    )


def _messages(run: RunFacts) -> str:
    """What goes from site to site in a round."""
    inside = run.where == "process"
    if run.masked:
        first = "it made for every site" if inside else "every site sent"
        return f"""{first} whole numbers, that site's share of a sum over all sites. They are hidden behind
            masks that cancel only when all sites' messages are added up: nobody sees a share, everybody sees
            the sum"""
    if inside:
        return f"""it made for every site {_lists(run)}, computed from the records of that site and from what
            its neighbours had passed on, and passed it on to them"""
    return f"""every site sent its neighbours {_lists(run)}, computed from its own records and from what it
        had received"""


def _left(run: RunFacts) -> str:
    return "was passed on to another site" if run.where == "process" else "left a site"


def _leaves(run: RunFacts) -> str:
    return "is passed on" if run.where == "process" else "leaves a site"


def _gone(run: RunFacts) -> str:
    return "passed on" if run.where == "process" else "sent"


def _lists(run: RunFacts) -> str:
    one = f"a list of {_count(run.dimension, 'number')}"
    return one if run.outputs == 1 else f"{_count(run.outputs, 'list')}, one per class, each {one}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _factor(epsilon: float) -> str:
    """exp(epsilon), never below it, in words that stay readable."""
    if epsilon < _WEAK:
        return rounded_up(math.exp(epsilon))
    return f"10 to the power of {math.ceil(epsilon / math.log(10))}"
