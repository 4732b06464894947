"""Marks: warnings for the reader of a certificate. A mark must not look like a stated cost."""

from __future__ import annotations

import re

from ..core.errors import ParameterError

PLANNED = "computed from settings alone; no run took place"
ABORTED = "the solver failed and the run ended. This may depend on the data, and no bound here covers it"
NOT_PROVEN = "not proven by taciturn: the author of the method states the cost of one round"
_WEIGHTED = (
    "rows are weighted by class, with public weights: ",
    "rows count by their class, by public numbers: ",  # in certificates of earlier releases
)
_CUT_OFF = re.compile(
    r"(an earlier run|a run before this one) was cut off in round \d+ of \d+, with epsilon = [\w.+-]+ at "
    r"delta = [\w.+-]+ on record(\. This cost comes in addition|: that comes on top)"  # format 1
)
_CLAIM = re.compile(r"epsilon|delta|\beps\b|[εδ=]|differential", re.IGNORECASE)
_FIGURE = re.compile(r"(epsilon|delta|\beps|ε|δ)\s*([=:<≤≈]|is\b|of\b)+\s*[\d.]", re.IGNORECASE)


def check_mark(mark: str) -> None:
    """Raise if a mark looks like a stated cost: if it contains a number or a word such as epsilon.

    The fixed marks of taciturn are allowed. A mark that states public class weights may contain numbers.
    """
    if mark in (PLANNED, ABORTED, NOT_PROVEN) or _CUT_OFF.fullmatch(mark):
        return
    numbers = not mark.startswith(_WEIGHTED) and any(sign.isnumeric() for sign in mark)
    if numbers or _CLAIM.search(mark):
        raise ParameterError(
            f"`marks` must not look like a stated cost: no numbers, no 'epsilon'; got {mark!r}."
        )


def check_name(name: str) -> None:
    """Raise if the name of a site looks like a cost, such as 'epsilon = 1'. 'delta' alone is allowed."""
    if _FIGURE.search(name):
        raise ParameterError(f"`name` of a site must not look like a stated cost; got {name!r}.")
