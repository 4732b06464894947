"""A model card in Markdown: facts about a model, and answers to the questions of NIST SP 800-226.

That publication explains how to evaluate a claim of differential privacy. Its questions are first about the
parameters, then about the algorithm, then about the deployment. The answers come from the certificate of the
model, which states the privacy cost. The publisher of the model must add the answers that are not in
the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..core.errors import ParameterError
from ..core.formatting import format_cost, format_delta, format_odds
from ..core.templates import fill
from ..privacy.certificate import assumptions
from ..privacy.certificate.certificate import Certificate
from ..privacy.ledger.pricing import LEAK
from .brief import NOT_COVERED, bound_on_rows, brief, covers, holds_against

YOURS = "*to be filled in by the publisher of the model*"


def model_card(certificate: Certificate, about: Mapping[str, Any] | None = None) -> str:
    """The model card. `about` may contain `name`, and the keys of `about` in `from_certificates`."""
    if certificate.run.loss.counting:
        raise ParameterError(
            "`--card` needs the certificate of a model, but this is the certificate of counts."
        )
    told, run = dict(about or {}), certificate.run
    glance = {
        name.capitalize(): answer.replace("|", "/") for name, answer in brief(certificate, told).items()
    }
    return fill(
        __package__,
        "card.md",
        title=told.get("name") or "Model card",
        statement=certificate.statement(),
        glance="\n".join(["| | |", "|---|---|", *(f"| {name} | {said} |" for name, said in glance.items())]),
        learnt=str(told.get("learnt", YOURS)).replace("|", "/"),
        dimension=str(run.dimension),
        outputs=str(run.outputs),
        yours=YOURS,
        answers="\n\n".join(f"**{asked}** {said}" for asked, said in answers(certificate).items()),
        conditions="\n".join(f"- {condition}" for condition in assumptions.conditions(certificate)),
        theorems="\n".join(f"- {theorem}" for theorem in assumptions.theorems(certificate)),
        version=run.versions.get("taciturn", ""),
    )


def answers(certificate: Certificate) -> dict[str, str]:
    """The questions of NIST SP 800-226 with their answers, in the order of that publication."""
    run = certificate.run
    return {
        "What are the privacy parameters?": _parameters(certificate),
        "What is the unit of privacy?": f"{covers(certificate).capitalize()}.",
        "Which data sets are neighbours?": f"Bounded: {run.relation}.",
        "Which mechanism?": f"{run.noise} noise, method {run.method!r}; {assumptions.status(certificate)}.",
        "How do several releases compose?": f"{certificate.rounds} rounds are counted together (accountant: "
        f"{certificate.accountant or 'none'}); the costs of other runs on the same records add up.",
        "Is the sensitivity bounded without the data?": f"{'No' if LEAK in run.marks else 'Yes'}: "
        f"{bound_on_rows(certificate)}; rows with a larger norm are clipped.",
        "Who must be trusted (the threat model)?": f"The claim holds against {holds_against(certificate)}.",
        "Is the randomness suitable?": _randomness(certificate),
        "How is floating-point arithmetic handled?": _floats(certificate),
        "Side channels?": "Timing, message sizes and the number of solver steps are not covered.",
        "Utility and bias?": "Neither was measured on the records: such a score would be another "
        f"release. Noise has the largest effect on small groups. {YOURS.capitalize()}",
        "Data collection, security and access?": f"The certificate does not cover these: {YOURS}",
        "What is not covered?": "; ".join(NOT_COVERED).capitalize() + ".",
    }


def _parameters(certificate: Certificate) -> str:
    if not math.isfinite(certificate.epsilon):
        return "None: epsilon is infinite."
    factor = format_cost(math.exp(min(certificate.epsilon, 700.0)))
    return (
        f"epsilon = {format_cost(certificate.epsilon)}, delta = {format_delta(certificate.delta)}: "
        f"the probability of anything visible changes by a factor of at most {factor}, except for a chance "
        f"of {format_odds(certificate.delta)}."
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
        return "The released values are whole numbers, and their last noise was drawn exactly."
    return "Released values are treated as real numbers." + " The exact minimiser is assumed." * run.idealised
