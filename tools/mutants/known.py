"""The known survivors and their reasons, from survivors.toml; docs/mutants.md shows them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .operators import Mutant
from .targets import ROOT, SOURCE

FILE = Path(__file__).with_name("survivors.toml")
PAGE = ROOT / "docs" / "mutants.md"
_BEGIN, _END = "<!-- survivors -->\n", "<!-- end of survivors -->"


@dataclass(frozen=True)
class Survivor:
    """A fault that no test detects: in a line of this file that contains `line`, `new` replaces `old`."""

    path: str
    line: str
    old: str
    new: str
    reason: str

    def is_it(self, mutant: Mutant, text: str) -> bool:
        here = text.splitlines()[mutant.line - 1]
        same = (self.path, self.old, self.new) == (mutant.path, mutant.old, mutant.new)
        return same and self.line in here

    def still_there(self) -> bool:
        """Whether the file still has such a line."""
        file = ROOT / SOURCE / self.path
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return any(self.line in line and self.old.splitlines()[0] in line for line in lines)


def known() -> list[Survivor]:
    """All known survivors."""
    with FILE.open("rb") as file:
        return [Survivor(**entry) for entry in tomllib.load(file).get("survivor", [])]


def table(survivors: Sequence[Survivor]) -> str:
    """The survivors as a Markdown table."""
    rows = ["| file | line | fault | why no test detects it |", "|---|---|---|---|"]
    for one in sorted(survivors, key=lambda one: (one.path, one.line)):
        fault = f"`{one.old}` → " + (f"`{one.new}`" if one.new else "nothing")
        rows.append(f"| `{one.path}` | `{one.line.replace('|', chr(92) + '|')}` | {fault} | {one.reason} |")
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The text of docs/mutants.md with the current table."""
    before, rest = text.split(_BEGIN)
    return before + _BEGIN + "\n" + table(known()) + "\n" + _END + rest.split(_END)[1]
