"""What a data-protection officer asks first, answered from a certificate: a line for each question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..privacy.accounting.shown import rounded_up, shown_delta
from ..privacy.certificate import masked_words
from ..privacy.certificate.certificate import Certificate

_MANY = 12  # names that are listed
_PLACES = {
    "process": "in one process, which held the records of all sites and could see them",
    "folders": "each site's in a folder of its own, on one machine",
    "network": "each site's at the site itself",
    "simulated": "nowhere in particular: the sites were simulated in one process",
    "planned": "no records were read",
}
NOT_COVERED = (
    "other runs on the same records (their costs add up)",
    "how long things took",
    "whatever a site published besides, such as a score on its own records",
    "who may read the records where they are kept",
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
        "how to check it": told.get("verify", "taciturn certify certificate.json"),
    }
    return {question: answer for question, answer in answers.items() if answer}


def took_part(certificate: Certificate) -> str:
    """The sites by name, with how many records or persons each has."""
    noun = f"{certificate.run.unit}s"
    said = _listed([f"{facts.name} ({facts.samples:,} {noun})" for facts in certificate.sites])
    rest = certificate.run.sites - len(certificate.sites)
    return f"{said}; {rest} more, of which this certificate says nothing" if rest else said


def covers(certificate: Certificate) -> str:
    """The unit of privacy, in words."""
    if certificate.run.unit == "person":
        return "one person, with all records that carry their name in this run"
    return "one record at one site; a person with several records is protected less"


def cost(certificate: Certificate) -> str:
    """epsilon and delta, or that there is no bound."""
    if not math.isfinite(certificate.epsilon):
        return "no bound: epsilon is infinite"
    rounds = "one round" if certificate.rounds == 1 else f"all {certificate.rounds} rounds together"
    delta = shown_delta(certificate.delta)
    return f"epsilon = {rounded_up(certificate.epsilon)} at delta = {delta}, for {rounds}"


def holds_against(certificate: Certificate) -> str:
    """Whom the promise is about."""
    run = certificate.run
    if run.noise == "none" or not math.isfinite(certificate.epsilon):
        return "nobody"
    who = masked_words.observer(run) if run.masked else "controls all the other sites"
    said = f"whoever sees everything that was sent, {who} and knows everything but that one {run.unit}"
    ran = {"process": "process", "folders": "machine"}.get(run.where)
    return f"{said}; not against whoever ran the {ran}" if ran else said


def _listed(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_MANY])
    return f"{shown} and {len(words) - _MANY} more" if len(words) > _MANY else shown
