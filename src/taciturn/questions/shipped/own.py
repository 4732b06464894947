"""The kind of question "program": a user's own program, installed at every site.

A program asks for several sums over the rows of all sites, one after the other. Its public half sees the
noisy totals so far and chooses the next sum; its private half computes what one row adds to this sum. A job
names the program and the SHA-256 of its file.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field as Key

from ...core.errors import ParameterError
from ...core.types import Array
from ...data.tables.column_types import Category, Field
from ...jobfile.job_format import Text
from ...jobfile.toml_fields import LISTED
from ...methods.programs.own_program import OwnProgram, Program, UnitRows
from ..answer import PrivateAnswer
from ..question import PublicTable, Question, SiteTable, Spending, Totals
from .apart import ProgramApart, load_program, plain_value


@dataclass(frozen=True, eq=False, repr=False)
class ProgramResult(PrivateAnswer):
    """The result of a program, all noisy totals that it received, and the privacy cost."""

    value: Any
    totals: tuple[Array, ...]
    name: str = "program"

    @property
    def title(self) -> str:
        return f"Result of {self.name}"

    def __repr__(self) -> str:
        return f"ProgramResult({self.value!r}, {self.certificate})"

    def table(self) -> list[list[str]]:
        named = self.value if isinstance(self.value, Mapping) else {"result": self.value}
        return [["", "value"], *([str(name), f"{found}"] for name, found in named.items())]

    def facts(self) -> dict[str, Any]:
        return {"value": plain_value(self.value), "totals": [total.tolist() for total in self.totals]}


class ProgramQuestion(Question):
    """A question that a `Program` answers. The program gets the rows of the table as numbers."""

    columns: Annotated[tuple[Text, ...], LISTED] | None = Key(default=None, min_length=1)

    @abstractmethod
    def program(self) -> Program:
        """The public half of the program."""

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        return () if public.schema is None else tuple(one.name for one in self.fields(public))

    def fields(self, public: PublicTable) -> tuple[Field, ...]:
        """The columns of the schema from which a row of numbers is made."""
        return public.fields(self.columns, "columns")

    def width(self, public: PublicTable) -> int:
        """The number of entries of a row: one for each declared value of a category, else one per column."""
        if public.schema is None:
            return public.width or 1
        return sum(len(one.feature_names) for one in self.fields(public))

    def method(self, public: PublicTable, spending: Spending) -> OwnProgram:
        return OwnProgram(self.program(), *spending, columns=self.width(public))

    def rows(self, public: PublicTable, table: SiteTable) -> UnitRows:
        if table.array is not None:
            return table.unit_rows(table.array)
        fields = self.fields(public)
        parsed = table.parsed(fields)
        return table.unit_rows(np.column_stack([_numbers(one, parsed[one.name]) for one in fields]))

    def answer(self, public: PublicTable, totals: Totals) -> ProgramResult:
        half = totals.program
        ends = np.cumsum([step.length for step in half.plan])[:-1]
        name = getattr(half.program, "name", type(half.program).__name__)
        return ProgramResult(half.replay(totals.values), tuple(np.split(totals.values, ends)), name)


class AskProgram(ProgramQuestion):
    """The keys of a question of kind "program" in a job file.

    program : "package.module:Class", a `taciturn.Program` that is installed at every site.
    sha256 : the digest of the module's file, so that all sites run the same program.
    columns : columns of the schema, in this order; all by default. A category becomes one number for each
        value.
    settings : public keyword arguments for the class.
    installed : whether the program also has a private half in Python. That code sees the rows, so the owner
        of the rows must trust it.

    The public half runs in a separate process that has no rows.
    """

    kind: ClassVar[str] = "program"
    name: str = Key(alias="program", pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    sha256: str = Key(pattern="^[0-9a-f]{64}$")
    settings: dict[str, Any] = Key(default_factory=dict)
    installed: bool = False

    @property
    def digest(self) -> str:
        return self.sha256

    def program(self) -> Program:
        private = load_program(self.name, self.sha256, self.settings).private if self.installed else None
        if self.installed and private is None:
            raise ParameterError(
                f"`installed` must be left out: {self.name} has no function `private`, only expressions."
            )
        return ProgramApart(self.name, self.sha256, self.settings, private)

    def marks(self, public: PublicTable) -> tuple[str, ...]:
        return (UNCHECKED,) if self.installed else ()


UNCHECKED = "an installed private half in Python computed what each row adds: purity not checked"


def _numbers(field: Field, values: Array) -> Array:
    if isinstance(field, Category):
        return np.asarray(values[:, None] == np.arange(len(field.values)), dtype=np.float64)
    return np.asarray(values, dtype=np.float64)[:, None]
