"""The head of a report: the result, and what qualifies it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.summary import three_sentences
from .data import Mark
from .html.numbers import power, written

_SIMULATED = (
    "Anyone who knows the seed can repeat the noise, so this protects nobody. The figures say what the same "
    "run would cost with secret noise."
)
_IDEALISED = "The figures assume that every site finds the exact minimiser; its error is not covered."
_MASKED = "The figures account for rounding and floating-point error."
_COVERED = "The figures include the cost of the solver's remaining error."
_REAL = "The noise came from a secret source and cannot be repeated."


def headline(certificates: Mapping[str, Certificate]) -> str:
    """For one run the three sentences of its statement; for several, what each cost one record or person."""
    if len(certificates) == 1:
        return "\n\n".join(three_sentences(next(iter(certificates.values()))))
    delta = next(iter(certificates.values())).delta
    bounded = {name: one.epsilon for name, one in certificates.items() if math.isfinite(one.epsilon)}
    unbounded = [name for name in certificates if name not in bounded]
    said = []
    if bounded:
        costs = sorted(bounded, key=bounded.__getitem__)
        shown = costs if len(costs) <= 4 else [costs[0], costs[-1]]
        words = [f"{written(bounded[name], 'bound')} with {name}" for name in shown]
        spread = ", ".join(words) if shown is costs else f"{words[0]} to {words[1]}"
        whole = all(_whole(certificates[name]) for name in bounded)
        what = "All rounds and all sites together" if whole else "The rounds and sites that were counted"
        units = {certificates[name].run.unit for name in bounded}
        unit = units.pop() if len(units) == 1 else "record"  # the weaker promise, where they differ
        said.append(f"{what} cost any one {unit} at most ε = {spread}, at δ = {power(delta)}.")
    if unbounded:
        said.append(f"No guarantee: {'; '.join(unbounded)}.")
    return " ".join(said)


def _whole(certificate: Certificate) -> bool:
    run = certificate.run
    return certificate.rounds == run.rounds and len(certificate.sites) == run.sites


_PROCESS = "It held the records of all sites; the figures are about what it released."
_LARGE = "δ is above one over the number of records: a method that publishes one record would satisfy it."


def marks(certificates: Mapping[str, Certificate]) -> list[Mark]:
    """Simulated or real, idealised or covered, and other warnings for the reader."""
    runs = {name: certificate.run for name, certificate in certificates.items()}
    private = {name: run for name, run in runs.items() if run.noise != "none"}
    found = _either(
        [name for name, run in runs.items() if run.simulated],
        list(runs),
        "Simulated",
        _SIMULATED,
        "Real",
        _REAL,
    )
    held = [name for name, run in runs.items() if run.where == "process"]
    if held:
        found.append(Mark("One process", _only(held, list(runs)) + _PROCESS, warn=False))
    large = [name for name, certificate in certificates.items() if certificate.large_delta]
    if large:
        found.append(Mark("Large delta", _only(large, list(runs)) + _LARGE))
    if private:
        idealised = [name for name, run in private.items() if run.idealised]
        masked = all(run.masked for run in private.values())
        calm = ("Rounding covered", _MASKED) if masked else ("Solver error covered", _COVERED)
        found += _either(idealised, list(private), "Idealised", _IDEALISED, *calm)
    if len(private) < len(runs):
        bare = [name for name in runs if name not in private]
        found.append(Mark("Not private", f"{_only(bare, list(runs))}No noise was added: ε is infinite."))
    told = dict.fromkeys(mark for run in runs.values() for mark in run.marks)
    return found + [Mark("Note", mark[:1].upper() + mark[1:] + ".") for mark in told]


def _either(some: list[str], everyone: list[str], yes: str, why: str, no: str, why_not: str) -> list[Mark]:
    """The mark of the runs in `some`, or the reassuring one if `some` is empty."""
    return [Mark(yes, _only(some, everyone) + why)] if some else [Mark(no, why_not, warn=False)]


def _only(some: list[str], everyone: list[str]) -> str:
    return "" if len(some) == len(everyone) else f"{_list_words(some)}: "


def _list_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
