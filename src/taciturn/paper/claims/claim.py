"""Claim: a claim of the paper, the numbers that we measured, and a verdict with its reason."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from ...core.formatting import join_words


class Verdict(StrEnum):
    """The verdict on a claim."""

    holds = "holds"
    in_part = "holds in part"
    fails = "does not hold"


@dataclass(frozen=True)
class Claim:
    """One claim, the numbers that we measured, and the verdict that follows from the numbers.

    key : a short name, which does not change between versions.
    where : the place in the paper, or "ours" for a claim that is not in the paper.
    says : the claim, rephrased.
    measured : the numbers, in a sentence.
    why : the explanation of the numbers.
    """

    key: str
    where: str
    says: str
    measured: str
    verdict: Verdict
    why: str
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The claim as JSON values."""
        return asdict(self) | {"verdict": self.verdict.value, "numbers": dict(self.numbers)}


def claim(key: str, checks: Iterable[bool], numbers: Mapping[str, Any] | None = None, **shown: Any) -> Claim:
    """The claim `key`. Its texts are in claims.toml; numbers replace the {names} in the texts.

    checks : the claim holds if all of these conditions are true.
    numbers : the measured numbers, for the texts and for the field `numbers` of the claim.
    shown : further numbers, for the texts only.
    """
    words, numbers = _words()[key], numbers or {}
    measured, why = (words[name].format(**numbers, **shown) for name in ("measured", "why"))
    return Claim(key, words["where"], words["says"], measured, judge(list(checks)), why, numbers)


@cache
def _words() -> dict[str, dict[str, str]]:
    return tomllib.loads(resources.files(__package__).joinpath("claims.toml").read_text("utf-8"))


def judge(checks: list[bool]) -> Verdict:
    """The verdict from the checks: "holds" if all are true, "holds in part" if some are true.

    >>> judge([True, True]).value, judge([True, False]).value, judge([False]).value
    ('holds', 'holds in part', 'does not hold')
    """
    if all(checks):
        return Verdict.holds
    return Verdict.in_part if any(checks) else Verdict.fails


class Listed(list[float]):
    """A list of numbers. A format string applies to each number and joins them with commas and "and".

    >>> f"{Listed([0.123456, 2, 3]):.3g}"
    '0.123, 2 and 3'
    """

    def __format__(self, form: str) -> str:
        return join_words([format(value, form) for value in self])
