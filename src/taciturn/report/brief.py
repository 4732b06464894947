"""Answers to a data-protection officer's first questions, from a certificate: a line for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.formatting import format_cost, format_delta
from ..privacy.certificate import masked_words
from ..privacy.certificate.certificate import Certificate

_MANY = 12  # names that are listed
_PLACES = {
    "process": "in one process, which held the records of all sites and could see them",
    "folders": "in one folder for each site, on one machine",
    "network": "each site kept its own records",
    "simulated": "in one process that simulated all sites",
    "planned": "no records were read",
}
NOT_COVERED = (
    "other runs on the same records (their costs add up)",
    "how long things took",
    "anything else that a site published, such as a score on its own records",
    "access to the records where they are stored",
)


def brief(certificate: Certificate, about: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Question -> answer; `about` may say `date`, `learnt`, `features` and `verify`, the command."""
    told = dict(about or {})
    answers = {
        "date": told.get("date"),
        "what was learnt": told.get("learnt"),
        "from which columns": _listed(told.get("features", ())) or f"{certificate.run.dimension} numbers",
        "who took part": took_part(certificate),
        "where the records were": _PLACES.get(certificate.run.where),
        "one promise covers": covers(certificate),
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


def cost(certificate: Certificate) -> str:
    """epsilon and delta, or that there is no bound."""
    if not math.isfinite(certificate.epsilon):
        return "no bound: epsilon is infinite"
    planned = certificate.run.rounds
    rounds = "one round" if planned == 1 else f"all {planned} rounds together"
    delta = format_delta(certificate.delta)
    said = f"epsilon = {format_cost(certificate.epsilon)} at delta = {delta}, for {rounds}"
    if not certificate.run.masked or not masked_words.rests_on_masks(certificate.run):
        return said
    return said + masked_words.holds_while(certificate.run.colluding, certificate.epsilon_against(None))


def holds_against(certificate: Certificate) -> str:
    """The attacker against whom the promise holds."""
    run = certificate.run
    if run.noise == "none" or not math.isfinite(certificate.epsilon):
        return "nobody"
    who = masked_words.observer(run) if run.masked else "controls all the other sites"
    said = (
        f"an attacker who sees everything that was sent, {who} and knows everything but that one {run.unit}"
    )
    ran = {"process": "process", "folders": "machine"}.get(run.where)
    return f"{said}; not against the person who ran the {ran}" if ran else said


def _listed(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_MANY])
    return f"{shown} and {len(words) - _MANY} more" if len(words) > _MANY else shown
