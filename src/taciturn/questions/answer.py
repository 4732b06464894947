"""PrivateAnswer: the base class of answers, such as a description of columns or a regression.

An answer is computed from the noisy totals that the sites released. It can be shown as text, CSV, HTML or
JSON.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Any

from ..core.errors import CertificateError
from ..core.notebook import Drawing, Picture, facts_table
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.summary import cost_line

WORSE = "worse than a constant prediction"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PrivateAnswer(ABC):
    """The answer to one question. It is computed from released totals alone, so it costs no extra privacy.

    stated : the certificate. It states the privacy cost of the job, that is, of all questions that were asked
        together. None if this answer is only a part of another answer, such as the score of one group.
    """

    stated: Certificate | None = None

    @property
    def certificate(self) -> Certificate:
        """The certificate of the whole job, including its other questions."""
        if self.stated is None:
            raise CertificateError(
                "this answer has no certificate of its own: it is part of another answer. "
                "Use the certificate of that answer."
            )
        return self.stated

    @property
    def unit_name(self) -> str:
        """The name of what the answer counts: "records" or "persons"; "units" if there is no certificate."""
        return "units" if self.stated is None else f"{self.stated.run.unit}s"

    @property
    @abstractmethod
    def title(self) -> str:
        """The heading above the answer."""

    @abstractmethod
    def table(self) -> list[list[str]]:
        """The table as strings: first a line with the column heads, then one line per result."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The answer as plain JSON values, with all digits."""

    def plot(self) -> Picture | Drawing | None:
        """A plot of the answer; None if this kind of answer has no plot."""
        return None

    def text(self) -> str:
        """The table in aligned columns, for a terminal."""
        rows = self.table()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join([self.title, *lines])

    def note(self) -> str:
        """The privacy cost of the whole job in one line; empty if the answer has no certificate."""
        return "" if self.stated is None else cost_line(self.stated)

    def csv(self) -> str:
        """The table as CSV."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows(self.table())
        return file.getvalue()

    def html(self) -> str:
        """The table as HTML, with the statement of the certificate below the table."""
        said = self.note() if self.stated is None else self.stated.statement()
        return f"<div>{self._html_table()}{_paragraphs(said)}</div>"

    def _html_table(self) -> str:
        head, *rows = self.table()
        cell = "padding:.15em .8em;text-align:left;vertical-align:top"
        names = "".join(f'<th scope="col" style="{cell}">{escape(name)}</th>' for name in head)
        lines = "".join(
            "<tr>" + "".join(f'<td style="{cell}">{escape(entry)}</td>' for entry in row) + "</tr>"
            for row in rows
        )
        title = f'<p style="font-weight:600">{escape(self.title)}</p>'
        return f"{title}<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the facts from `notebook` (or the table), and the privacy cost."""
        cost = self.note()
        said = "" if self.stated is None else self.stated.statement()
        if (found := self.notebook()) is not None:
            return facts_table(self.title, found[0], cost, folded=said, pictures=found[1])
        more = f"<details><summary>The full statement</summary>{_paragraphs(said)}</details>" if said else ""
        return f"<div>{self._html_table()}{_paragraphs(cost)}{more}</div>"

    def notebook(self) -> tuple[dict[str, str], dict[str, str]] | None:
        """(facts, small pictures of some facts), as a notebook shows them; if None, it shows the table."""
        return None


def _paragraphs(text: str) -> str:
    return "".join(f'<p style="max-width:60em">{escape(part)}</p>' for part in text.split("\n\n") if part)
