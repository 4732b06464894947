"""Short texts about a certificate: what the sites did together, and what the result can reveal.

An (epsilon, delta) guarantee limits how well an attacker can tell two neighbouring tables apart. A guess
between two equally likely tables is right with probability at most (e^epsilon + delta) / (1 + e^epsilon).
"""

from __future__ import annotations

import math

from ...core.formatting import format_cost, format_delta, format_given
from ...core.notebook import draw_scale
from ..facts import RunFacts
from . import masked_words
from .claims import Claims

_LAST = {"record": "the target record", "person": "the records of the target person"}
SCALE = (0.1, 1.0, 3.0)
EVERYDAY = "The United States published the tables about persons from its 2020 census at epsilon 17.14."


def three_points(claims: Claims) -> list[str]:
    """Three points: what was done, what an attacker can guess from it, and guesses at other epsilons."""
    done = " ".join(who(claims.run).split())
    run = claims.run
    if len(claims.sites) < run.sites:
        done += f" This certificate covers {len(claims.sites)} of the {run.sites} sites."
    if not _bounded(claims):
        noise = "no noise" if run.noise == "none" else "too little noise for any guarantee"
        return [done, f"The run added {noise}. Nothing limits what an attacker can learn about one person."]
    sees, known = masked_words.seen(run), masked_words.KNOWN[run.unit]
    controls, last = masked_words.observer(run), _LAST[run.unit]
    means = "To control a site means to know its records and its noise, and to choose what it contributes. "
    means = "" if controls == masked_words.NO_SITE else means
    reveals = (
        f"Suppose an attacker knows {known}. The attacker sees {sees}, and {controls}. {means}Given two "
        f"equally likely candidates for {last}, the attacker picks the right one at most "
        f"{right_guesses(claims.epsilon, claims.delta)} of the time (epsilon = "
        f"{format_cost(claims.epsilon)}); a coin toss is right 50% of the time."
    )
    steps = [
        f"{right_guesses(epsilon)} of the time at epsilon = {format_given(epsilon)}" for epsilon in SCALE
    ]
    others = f"For comparison, the attacker is right at most {steps[0]}, {steps[1]} and {steps[2]}."
    return [done, reveals, f"{others} {EVERYDAY}"]


def cost_line(claims: Claims) -> str:
    """The cost in one line."""
    run = claims.run
    kind = "SIMULATED, so the run protects nobody. " if run.simulated else "PLANNED. " if run.planned else ""
    if not _bounded(claims):
        return f"{kind}Cost: no limit; epsilon is infinite."
    figures = f"epsilon = {format_cost(claims.epsilon)} at delta = {format_delta(claims.delta)}"
    return f"{kind}Cost to any one {run.unit}: {figures}."


def five_lines(claims: Claims) -> list[str]:
    """Five lines: what was done, what is protected, the cost, the meaning of the cost, the assumptions."""
    run, unit = claims.run, claims.run.unit
    done = " ".join(who(run).split())
    if not _bounded(claims):
        return [done, cost_line(claims)]
    home = masked_words.home(run)
    rests = f"nothing about the sites: the attacker may control every site except {home}."
    if masked_words.rests_on_masks(run):
        worst = format_cost(claims.epsilon_against(None))
        controls = masked_words.observer(run)
        rests = f"the attacker {controls}. If the attacker controls all but one site, epsilon is {worst}."
    counted = claims.rounds if claims.form == 1 else run.rounds  # epsilon counts all planned rounds
    rounds = "in one round" if counted == 1 else f"all {counted} rounds together"
    return [
        f"Done: {done}",
        f"Covered: any one {unit} (the target {unit}), against an attacker who knows everything about "
        f"every other {unit}.",
        f"{cost_line(claims).removesuffix('.')}, {rounds}.",
        f"Meaning: a guess between two candidates for one {unit} is right at most "
        f"{right_guesses(claims.epsilon, claims.delta)} of the time; a coin is right 50%.",
        f"Assumes: {rests}",
    ]


def right_guesses(epsilon: float, delta: float = 0.0) -> str:
    """The largest share of right guesses between two candidates, as a percentage rounded up.

    >>> right_guesses(1.0), right_guesses(1.0, 0.1), right_guesses(0.0), right_guesses(30.0)
    ('73.2%', '75.8%', '50%', '100%')
    """
    other = math.exp(-epsilon)
    chance = min((1.0 + delta * other) / (1.0 + other), 1.0)
    return f"{math.ceil(1000 * chance * (1 - 1e-15)) / 10:g}%"


def epsilon_scale(epsilon: float) -> str:
    """An SVG picture of epsilon on a scale; below each mark is the share of right guesses."""
    ticks = {mark: right_guesses(mark) for mark in (*SCALE, 10.0)}
    return draw_scale(epsilon, ticks, label=f"this run: epsilon {format_cost(epsilon)}")


def _bounded(claims: Claims) -> bool:
    return claims.run.noise != "none" and math.isfinite(claims.epsilon)


def who(run: RunFacts) -> str:
    """Which sites did what together, and where their records were."""
    sites, inside, together, done = count(run.sites, "site"), *_done(run)
    if run.where == "process":
        return f"""One process held the records of all {sites} and {inside}. The person who ran this process
            could see every record."""
    if run.where == "simulated":
        return f"One process simulated {sites} that {together}."
    if run.where == "folders" and not (run.loss.counting or run.loss.programmed):
        return f"""{sites} on one machine trained one model together. Each site was a process that read the
            records in its own folder."""
    return f"{sites} {done}."


def _done(run: RunFacts) -> tuple[str, str, str]:
    """Three phrases: what one process did; what sites do (present tense); what sites did (past tense)."""
    if run.loss.counting:
        tables = "one table" if run.dimension == 1 else count(run.dimension, "table")
        made, apart = f"{tables} of counts from", "without pooling them"
        return (
            f"made {made} them",
            f"make {made} their records {apart}",
            f"made {made} their records together {apart}",
        )
    if run.loss.programmed:
        sums = count(run.rounds, "sum")
        return (
            f"computed {sums} over them to answer questions",
            f"compute {sums} over their records to answer questions, without pooling the records",
            f"computed {sums} over their records to answer questions, without pooling the records",
        )
    model = "one model together without pooling their records"
    return "trained one model for them", f"train {model}", f"trained {model}"


def count(number: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
