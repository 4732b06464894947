"""A finding: one line of a check-up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One line of a check-up."""

    good: bool
    text: str
