"""A model card in Markdown: what the model is, and what NIST SP 800-226 asks of a claim of privacy, answered.

The order of the questions is that of the publication's pyramid: the parameters on top, then the algorithm,
then what it is deployed on. Every answer follows from the certificate's facts; what they do not say is left
to whoever publishes the model, and marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..errors import ParameterError
from ..privacy.accounting.shown import odds, rounded_up, shown_delta
from ..privacy.certificate import grounds
from ..privacy.certificate.certificate import Certificate
from .brief import NOT_COVERED, brief, covers, holds_against

YOURS = "*to be filled in by whoever publishes the model*"


def model_card(certificate: Certificate, about: Mapping[str, Any] | None = None) -> str:
    """The card; `about` as for `from_certificates`, and `name`."""
    if certificate.run.loss.counting:
        raise ParameterError("`--card` needs the certificate of a model; this one is of counts.")
    told = dict(about or {})
    parts = [
        f"# {told.get('name') or 'Model card'}",
        certificate.statement(),
        "## At a glance",
        _table({name.capitalize(): answer for name, answer in brief(certificate, told).items()}),
        "## The model",
        _table(_model(certificate, told)),
        "## The questions of NIST SP 800-226",
        *(f"**{question}** {answer}" for question, answer in answers(certificate).items()),
        "## The promise holds if",
        "\n".join(f"- {condition}" for condition in grounds.conditions(certificate)),
        "## It rests on",
        "\n".join(f"- {theorem}" for theorem in grounds.theorems(certificate)),
        f"Made by taciturn {certificate.run.versions.get('taciturn', '')} from the certificate alone.",
    ]
    return "\n\n".join(parts) + "\n"


def answers(certificate: Certificate) -> dict[str, str]:
    """Question -> answer, from the top of the pyramid to its base."""
    run = certificate.run
    return {
        "What are the privacy parameters?": _parameters(certificate),
        "What is the unit of privacy?": f"{covers(certificate).capitalize()}.",
        "Which data sets are neighbours?": f"Bounded: {run.relation}.",
        "Which mechanism?": f"{run.noise} noise, method {run.method!r}; {grounds.status(certificate)}.",
        "How do several releases compose?": f"{certificate.rounds} rounds are counted together by the "
        f"{certificate.accountant or 'no'} accountant; other runs on the same records come on top.",
        "Is the sensitivity bounded without the data?": f"Yes: rows of norm at most {run.data_norm:g}, by "
        "public bounds; longer rows are clipped.",
        "Who must be trusted (the threat model)?": f"It holds against {holds_against(certificate)}.",
        "Is the randomness fit for it?": _randomness(certificate),
        "What of floating-point arithmetic?": _floats(certificate),
        "Side channels?": "Timing, message sizes and the number of solver steps are not covered.",
        "Utility and bias?": "Neither was measured on the records: a score on them would be a release of its "
        f"own. Small groups lose most to noise. {YOURS.capitalize()}",
        "Data collection, security and access?": f"Outside the certificate: {YOURS}",
        "What is not covered?": "; ".join(NOT_COVERED).capitalize() + ".",
    }


def _parameters(certificate: Certificate) -> str:
    if not math.isfinite(certificate.epsilon):
        return "None: epsilon is infinite."
    factor = rounded_up(math.exp(min(certificate.epsilon, 700.0)))
    return (
        f"epsilon = {rounded_up(certificate.epsilon)}, delta = {shown_delta(certificate.delta)}: "
        f"nothing seen becomes more likely, or less, by more than a factor of {factor}, but for a chance of "
        f"{odds(certificate.delta)}."
    )


def _randomness(certificate: Certificate) -> str:
    if certificate.run.planned:
        return "No run took place."
    if certificate.run.simulated:
        return "No: the noise came from a seed and can be replayed. This run protects nobody."
    return "The noise came from a cryptographic source of the operating system and cannot be replayed."


def _floats(certificate: Certificate) -> str:
    run = certificate.run
    if run.integers or run.masked:
        return "What was released are whole numbers, and their last noise was drawn exactly."
    return "Released values are treated as real numbers." + " The exact minimiser is assumed." * run.idealised


def _model(certificate: Certificate, told: Mapping[str, Any]) -> dict[str, str]:
    return {
        "What it predicts": str(told.get("learnt", YOURS)),
        "Kind": f"linear, {certificate.run.dimension} numbers, {certificate.run.outputs} output(s)",
        "Intended use": YOURS,
        "Not meant for": YOURS,
    }


def _table(rows: Mapping[str, str]) -> str:
    lines = [f"| {name} | {answer.replace('|', '/')} |" for name, answer in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])
