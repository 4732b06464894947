"""The texts at the top of a report: headline, marks, and the brief.

A certificate states the facts of a run and its privacy cost; all texts are computed from certificates. A mark
is a short label, such as "Simulated", with an explanation. The brief answers the questions of a
data-protection officer, each in one line.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..core.formatting import format_cost, format_delta, join_words
from ..privacy.certificate import masked_words
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.summary import three_points
from ..privacy.ledger.pricing import LEAK
from .data import Mark
from .html.numbers import power, written

_MANY = 12  # lists show at most this many names
_PLACES = {
    "process": "in one process, which held the records of all sites and could see them",
    "folders": "in one folder for each site, on one machine",
    "network": "each site kept its own records",
    "simulated": "in one process that simulated all sites",
    "planned": "no records were read",
}
NOT_COVERED = (
    "other runs on the same records (their costs add up)",
    "timing: how long computations and messages took",
    "anything else that a site published, such as a score on its own records",
    "access to the records where they are stored",
)


def brief(certificate: Certificate, about: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The questions of the brief, each with its answer.

    about : facts that are not in the certificate: `date`, `learnt` (the quantity that was learnt),
        `features` (names of columns) and `verify` (the command that checks the certificate).
    """
    told = dict(about or {})
    answers = {
        "date": told.get("date"),
        "what was learnt": told.get("learnt"),
        "from which columns": _listed(told.get("features", ())) or f"{certificate.run.dimension} numbers",
        "who took part": took_part(certificate),
        "where the records were": _PLACES.get(certificate.run.where),
        "what the guarantee protects": covers(certificate),
        "what it cost": cost(certificate),
        "it holds against": holds_against(certificate),
        "not covered": "; ".join(NOT_COVERED),
        "how to check it": told.get("verify", "taciturn verify certificate.json"),
    }
    return {question: answer for question, answer in answers.items() if answer}


def took_part(certificate: Certificate) -> str:
    """The sites by name, with the number of records or persons of each."""
    noun = f"{certificate.run.unit}s"
    said = _listed([f"{facts.name} ({facts.samples:,} {noun})" for facts in certificate.sites])
    rest = certificate.run.sites - len(certificate.sites)
    return f"{said}; {rest} more, which this certificate does not cover" if rest else said


def covers(certificate: Certificate) -> str:
    """The unit of privacy, in words."""
    if certificate.run.unit == "person":
        return "one person, with all records under their id in this run"
    return "one record at one site; a person with several records is protected less"


def bound_on_rows(certificate: Certificate) -> str:
    """The bound on the norm of a row, and whether the bound is public, in words."""
    source = LEAK if LEAK in certificate.run.marks else "a public bound"
    return f"rows of norm at most {certificate.run.data_norm:g} ({source})"


def cost(certificate: Certificate) -> str:
    """The cost in words: epsilon and delta, or "no bound"."""
    if not math.isfinite(certificate.epsilon):
        return "no bound: epsilon is infinite"
    planned = certificate.run.rounds
    rounds = "one round" if planned == 1 else f"all {planned} rounds together"
    delta = format_delta(certificate.delta)
    said = f"epsilon = {format_cost(certificate.epsilon)} at delta = {delta}, for {rounds}"
    if not masked_words.rests_on_masks(certificate.run):
        return said
    return said + masked_words.holds_while(certificate.run.colluding, certificate.epsilon_against(None))


def holds_against(certificate: Certificate) -> str:
    """The attacker against whom the guarantee holds, in words."""
    run = certificate.run
    if run.noise == "none" or not math.isfinite(certificate.epsilon):
        return "no attacker"
    known, who = masked_words.KNOWN[run.unit], masked_words.observer(run)
    said = f"an attacker who knows {known}, sees everything that was sent, and {who}"
    ran = {"process": "process", "folders": "machine"}.get(run.where)
    return f"{said}; not against the person who ran the {ran}" if ran else said


def _listed(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_MANY])
    return f"{shown} and {len(words) - _MANY} more" if len(words) > _MANY else shown


_SIMULATED = (
    "Anyone who knows the seed can repeat the noise, so the noise protects nobody. The figures say what the "
    "same run would cost with secret noise."
)
_IDEALISED = (
    "The figures assume that every site finds the exact minimiser; the solver's error is not covered."
)
_MASKED = "The figures cover the rounding of the values to whole numbers, and floating-point error."
_COVERED = "The figures include the cost of the solver's remaining error."
_REAL = "The noise came from a secret source and cannot be repeated."


def headline(certificates: Mapping[str, Certificate]) -> str:
    """The main points of one run's statement; for several runs, their epsilons (for over four, the range)."""
    if len(certificates) == 1:
        return "\n\n".join(three_points(next(iter(certificates.values()))))
    delta = next(iter(certificates.values())).delta
    bounded = {name: one.epsilon for name, one in certificates.items() if math.isfinite(one.epsilon)}
    unbounded = [name for name in certificates if name not in bounded]
    said = []
    if bounded:
        costs = sorted(bounded, key=bounded.__getitem__)
        shown = costs if len(costs) <= 4 else [costs[0], costs[-1]]
        words = [f"{written(bounded[name], 'bound')} with {name}" for name in shown]
        spread = ", ".join(words) if shown is costs else f"{words[0]} to {words[1]}"
        runs = {name: certificates[name].run for name in bounded}
        whole = all(
            (certificates[name].rounds, len(certificates[name].sites)) == (run.rounds, run.sites)
            for name, run in runs.items()
        )
        what = "All rounds and all sites together" if whole else "The rounds and sites that were counted"
        units = {run.unit for run in runs.values()}
        unit = units.pop() if len(units) == 1 else "record"  # if units differ, name the weaker guarantee
        said.append(f"{what} cost any one {unit} at most ε = {spread}, at δ = {power(delta)}.")
    if unbounded:
        said.append(f"No guarantee: {'; '.join(unbounded)}.")
    return " ".join(said)


_PROCESS = "One process held the records of all sites; the figures are about what the process released."
_LARGE = (
    "δ is larger than 1 / (number of records). At such a δ, even a method that publishes one randomly chosen "
    "record counts as private."
)


def marks(certificates: Mapping[str, Certificate]) -> list[Mark]:
    """The marks of a report: simulated or real, solver error covered or not, and warnings."""
    runs = {name: certificate.run for name, certificate in certificates.items()}
    private = {name: run for name, run in runs.items() if run.noise != "none"}

    def mark(label: str, some: list[str], meaning: str, among: Collection[str], *, warn: bool = True) -> Mark:
        """A mark about the runs `some`. Its meaning names these runs, unless they are all runs in `among`."""
        return Mark(label, meaning if len(some) == len(among) else f"{join_words(some)}: {meaning}", warn)

    if simulated := [name for name, run in runs.items() if run.simulated]:
        found = [mark("Simulated", simulated, _SIMULATED, runs)]
    else:
        found = [Mark("Real", _REAL, warn=False)]
    if held := [name for name, run in runs.items() if run.where == "process"]:
        found.append(mark("One process", held, _PROCESS, runs, warn=False))
    if large := [name for name, certificate in certificates.items() if certificate.large_delta]:
        found.append(mark("Large delta", large, _LARGE, runs))
    if idealised := [name for name, run in private.items() if run.idealised]:
        found.append(mark("Idealised", idealised, _IDEALISED, private))
    elif private:
        masked = all(run.masked for run in private.values())
        calm = ("Rounding covered", _MASKED) if masked else ("Solver error covered", _COVERED)
        found.append(Mark(*calm, warn=False))
    if bare := [name for name in runs if name not in private]:
        found.append(mark("Not private", bare, "No noise was added: ε is infinite.", runs))
    told = dict.fromkeys(text for run in runs.values() for text in run.marks)
    return found + [Mark("Note", text[:1].upper() + text[1:] + ".") for text in told]
