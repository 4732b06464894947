"""The statement of a certificate: the whole guarantee in paragraphs that a data-protection officer can read.

`Claims` are the facts of a run and the numbers that follow from them. `marks` are warnings that the run added
to its facts.
"""

from __future__ import annotations

import math

from ...core.formatting import format_cost, format_delta, format_odds
from ..costs import float_delta
from ..facts import PLANNED, RunFacts
from . import masked_words
from .claims import Claims
from .summary import count, three_points

_WHERE = {
    "penalty": "inside the computation (penalty perturbation)",
    "dual": "inside the computation (dual variable perturbation)",
    "primal": "to what was computed (primal variable perturbation)",
    "own": "by a method that is not part of taciturn",
    "masked": "to each site's share of every sum",
}
_REPLACED = {
    "record": "If the target record were replaced by another",
    "person": "If all records of the target person were replaced by others",
}
_COVERED = {
    "record": """The figures hold for one record at one site; a person with several records is protected
        less.""",
    "person": """The figures hold for one person with all records under their id in this run; a person
        with two ids is protected less.""",
}
_WEAK = 10.0  # the statement warns if epsilon is above this number


def statement(claims: Claims) -> str:
    """The statement: whether the run is real, its messages, its cost, and the limits of the figures."""
    parts = (
        _pretence(claims.run),
        " ".join(three_points(claims)),
        _done(claims),
        _cost(claims),
        _reality(claims.run),
        _limits(claims.run),
    )
    return "\n\n".join(" ".join(part.split()) for part in parts if part)


def _pretence(run: RunFacts) -> str:
    """The first sentence if the run gives no protection (a simulation) or did not take place (a plan)."""
    if run.planned:
        return """PLANNED: no run took place. This statement describes what a run with these settings would
            do and cost."""
    if not run.simulated:
        return ""
    return """SIMULATED: anyone who knows the seed can repeat the random noise, so this run protects nobody.
        The figures say what the same run would cost with secret noise."""


def _done(claims: Claims) -> str:
    run, rounds = claims.run, claims.rounds
    times = "one round" if rounds == 1 else f"each of {count(rounds, 'round')}"
    said = f"In {times} {_messages(run)}."
    if run.moments:
        said = f"""In the first {run.moments} of {count(rounds, "round")} the sites released noisy second
            moments of their rows, which show how the columns vary together. In each of the other rounds
            {_messages(run)}."""
    if len(claims.sites) < run.sites:
        names = ", ".join(facts.name for facts in claims.sites[:5])
        said += f" This statement covers {len(claims.sites)} of the {run.sites} sites: {names}."
    return said + masked_words.attempts(run) + _stopped(claims)


def _stopped(claims: Claims) -> str:
    """For a run that ended early: the epsilon that always holds, and the condition of the smaller epsilon."""
    run = claims.run
    if not 0 < claims.rounds < run.rounds:
        return ""
    said = f" {count(run.rounds, 'round')} were planned."
    if claims.form == 1:
        return (
            said
            + """ The figures count the rounds that were charged, and hold only if the decision to stop
            did not depend on what had been sent."""
        )
    if run.noise == "none" or math.isinf(claims.charged_epsilon):
        return said
    fewer = f"epsilon = {format_cost(claims.charged_epsilon)} at delta = {format_delta(claims.delta)}"
    why = """The figures are for the whole planned run, because the decision to stop may have depended on the
        messages."""
    if math.isinf(claims.epsilon):
        why = """The cost of the rounds that did not take place is not recorded. So no figure holds for every
            reason to stop."""
    return f"{said} {why} If the decision to stop did not depend on the messages, {fewer} holds."


def _cost(claims: Claims) -> str:
    run, epsilon, delta = claims.run, claims.epsilon, format_delta(claims.delta)
    if run.noise == "none":
        return """No random noise was added, so nothing limits what an attacker can learn about a person from
            what was sent: epsilon is infinite. Treat everything that was sent as personal data."""
    kind = "Random noise, drawn from a discrete Gaussian distribution," if run.masked else "Random noise"
    said = f"{kind} was added {_WHERE[run.method]} before anything {_left(run)[0]}."
    if math.isinf(epsilon) and math.isfinite(claims.charged_epsilon):
        return said + " No finite epsilon is stated."
    if math.isinf(epsilon):
        return said + " This noise is too little for any guarantee: epsilon is infinite."
    said += f""" {_REPLACED[run.unit]}, the probability of anything that the attacker could see or compute
        would change by a factor of at most {_factor(epsilon)}, except for a chance of at most
        {format_odds(claims.delta)}. In the language of differential privacy: epsilon =
        {format_cost(epsilon)} at delta = {delta}, for all rounds together.
        A smaller epsilon is safer: at epsilon = 0 the attacker learns nothing about a single {run.unit}."""
    if claims.large_delta:
        said += f""" LARGE DELTA: with {claims.units:,} {run.unit}s, a delta of {delta} promises little. A
            method that publishes one {run.unit} unchanged could keep the same promise."""
    if run.masked:
        said += " " + masked_words.trust(claims)
    if epsilon > _WEAK:
        said += f" An epsilon above {_WEAK:g} gives little protection by itself."
    if math.isfinite(claims.pure_epsilon):
        said += f" {_exception(run)}, epsilon = {format_cost(claims.pure_epsilon)}."
    if run.masked:
        return said
    worst = next(facts for facts in claims.sites if facts.site == claims.worst_site)
    return f"""{said} The epsilon of {format_cost(epsilon)} is that of the least protected site: {worst.name},
        with {count(worst.samples, run.unit)} and {count(worst.degree, "neighbour")}."""


def _exception(run: RunFacts) -> str:
    if not run.integers:
        return "At delta = 0, which allows no exception"
    errors = "only covers errors of noise that was drawn in floating point"
    return f"At delta = {format_delta(float_delta(run))}, which {errors}"


def _reality(run: RunFacts) -> str:
    if run.noise == "none":
        return ""
    if run.masked:
        return f"""The noise consists of whole numbers, drawn without any rounding error, and only
            whole numbers {_left(run)[1]}. The figures also cover the rounding
            of each site's share to whole numbers, and floating-point error in its computation."""
    if run.stated is not None:
        return """NOT PROVEN BY TACITURN: the author of the method states what one round costs. The figures
            add that cost up over the rounds, and are only as reliable as that statement."""
    if run.idealised:
        return """IDEALISED: the figures assume that each site computes exactly. A computer makes small
            errors, and no noise was added to cover them. So the figures guarantee nothing about the numbers
            that were really sent."""
    said = f"""A computer solves each site's problem only up to an error, in this run at most {run.tol:g}. The
        figures include the cost of that error."""
    if run.integers:
        said += f""" Only whole numbers {_left(run)[1]}, and the noise that was added last consists of whole
        numbers, drawn without any rounding error. So the figures hold for the exact bits that were
        {_left(run)[2]}."""
    return said


def _limits(run: RunFacts) -> str:
    said = " ".join(f"NOTE: {mark}." for mark in run.marks if mark != PLANNED)
    if run.noise == "none":
        return said
    return (
        said
        + f""" {_COVERED[run.unit]}
        The figures cover what was sent and everything that is computed from it. The figures do not cover how
        long the run took, or what a site published separately. The full list of conditions is part of this
        certificate."""
    )


def _messages(run: RunFacts) -> str:
    """The messages of a round, as text."""
    inside = run.where == "process"
    if run.masked:
        if masked_words.one_process(run):
            return """the process computed a list of whole numbers for each site, called the site's share. It
                added the shares of all sites, and released only their sum. No one outside the process sees a
                share"""
        who = "all sites" if not run.attempts else "all these sites"
        return f"""{"every site" if not run.attempts else "every site that took part"} computed a list of
            whole numbers, called its share, and sent it hidden by masks. The masks cancel only when the
            messages of {who} are added up. So every site sees the sum of the shares, and no site sees the
            share of another site"""
    if inside:
        return f"""the process computed {_lists(run)} for every site, from the records of that site and from
            the numbers that its neighbours had released. It then released the result to the neighbours"""
    return f"""every site sent its neighbours {_lists(run)}. The site computed these numbers from its own
        records and from the messages that it had received"""


def _left(run: RunFacts) -> tuple[str, str, str]:
    """How to say 'is released' after 'before anything', 'only whole numbers' and 'the bits that were'."""
    if run.where == "process":
        return "left the process", "are released", "released"
    return "left a site", "leave a site", "sent"


def _lists(run: RunFacts) -> str:
    one = f"a list of {count(run.dimension, 'number')}"
    return one if run.outputs == 1 else f"{count(run.outputs, 'list')}, one per class, each {one}"


def _factor(epsilon: float) -> str:
    """exp(epsilon) as text, rounded up; a power of ten if it is large."""
    if epsilon < _WEAK:
        return format_cost(math.exp(epsilon))
    return f"10 to the power of {math.ceil(epsilon / math.log(10))}"
