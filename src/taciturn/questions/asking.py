"""The class `Asking`: all questions of one job. They share one run, one privacy budget and one certificate.

A question asks for a statistic that sites compute together, such as a description of columns. `Asking` turns
all questions into one method, which computes noisy sums over the rows of all sites. All sites see the totals
of these sums, and `Asking` turns the totals into one answer for each question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.canonical import plain
from ..core.errors import ParameterError
from ..core.types import Array
from ..data.tables.column_types import Number
from ..methods.base import Network, OwnRounds
from ..methods.sums.program import SumTables
from ..methods.sums.several import Several
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.released import Released
from .answer import PrivateAnswer
from .question import PublicTable, Question, SiteTable, Spending, Totals

RESULT_FORMAT = "taciturn-result/1"


@dataclass(frozen=True, eq=False)
class Asking:
    """The questions of one job. One run on the same tables answers all of them.

    public : public facts about the tables, such as their schema.
    spending : the privacy budget of the whole job.
    """

    questions: tuple[Question, ...]
    public: PublicTable
    spending: Spending

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that the questions need, each once."""
        return tuple(dict.fromkeys(name for one in self.questions for name in one.reads(self.public)))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of `reads` that the schema declares as numbers.

        The result is empty if the job has no schema, or if a question reads cells with another schema.
        """
        if self.public.schema is None or any(one.by_other_schema for one in self.questions):
            return ()
        known = {field.name for field in self.public.schema if isinstance(field, Number)}
        return tuple(name for name in self.reads if name in known)

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks, which are short warnings, that the questions add to the certificate."""
        return tuple(dict.fromkeys(mark for one in self.questions for mark in one.marks(self.public)))

    def method(self) -> OwnRounds:
        """The method that answers all questions. Each question has its `share` of the budget."""
        methods = [one.method(self.public, self.spending) for one in self.questions]
        if len(methods) == 1:
            return methods[0]
        alone = [one.kind for one, method in zip(self.questions, methods, strict=True) if not _joins(method)]
        if alone:
            raise ParameterError(
                f"`kind` {alone[0]!r} must be the only question of its job. "
                "Ask the other questions in another job."
            )
        return Several(tuple(methods), tuple(one.share for one in self.questions), *self.spending)  # type: ignore[arg-type]

    def tables(self, network: Network) -> SumTables:
        """The sums of the run, with their bounds and noise. All of this follows from public facts alone."""
        prepared: Any = self.method().prepare(network)
        tables: SumTables = prepared.tables
        return tables

    def document(
        self, answers: Sequence[PrivateAnswer], totals: Array, run: dict[str, Any]
    ) -> dict[str, Any]:
        """The content of result.json: the answers, all released totals, and facts about the run."""
        pairs = zip(self.questions, answers, strict=True)
        return {
            "format": RESULT_FORMAT,
            "answers": plain([{"kind": question.kind, **answer.facts()} for question, answer in pairs]),
            "totals": totals.tolist(),
            **run,
        }

    def rows(self, table: SiteTable) -> Any:
        """The rows of one site, as the method needs them; a tuple if there are several questions."""
        found = tuple(one.rows(self.public, table) for one in self.questions)
        return found[0] if len(found) == 1 else found

    def answers(self, tables: SumTables, result: Array, certificate: Certificate) -> list[PrivateAnswer]:
        """The answer to every question. `result` is an array of all released numbers."""
        programs, values = (tables.program,), [result]
        ends: Sequence[int] = (tables.rounds,)
        if len(self.questions) > 1:
            programs, values, ends = (
                tables.program.programs,
                tables.program.split(result),
                tables.program.ends,
            )
        found = []
        for k, one in enumerate(self.questions):
            sums = tables.sums[ends[k - 1] if k else 0 : ends[k]]
            totals = Totals(programs[k], sums, tables.pairs.sites, tables.units, np.asarray(values[k]))
            found.append(replace(one.answer(self.public, totals), stated=certificate))
        return found


def _joins(method: Any) -> bool:
    return hasattr(method, "part")


def released_as(tables: SumTables, result: Array) -> Released:
    """The kind, the shape and the SHA-256 of the released numbers, which the certificate contains."""
    return Released.of("counts" if tables.program.loss.counting else "totals", result)
