"""A finding: one line of a check-up."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import one_line


@dataclass(frozen=True)
class Finding:
    """One line of a check-up; a `note` is neither in order nor wrong."""

    good: bool
    text: str
    note: bool = False

    def line(self) -> str:
        """As it is printed."""
        return f"{'FAIL' if not self.good else 'note' if self.note else 'ok  '}  {one_line(self.text)}"
