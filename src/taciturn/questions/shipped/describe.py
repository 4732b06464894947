"""The kind of question "describe": means, deviations, quantiles, histograms and missing values of columns.

Each column gives one table of counts: a histogram over its public range, or over its public categories. A
cell of the table is a bin, a category, or the separate count of missing and unreadable values. With `by`,
each column gives one table for each group. All tables of all sites are added up in one noisy sum. From the
answer, an analyst can choose ranges and correct a schema without seeing a row.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Key

from ...core.errors import ParameterError
from ...core.types import Array
from ...data.tables.column_types import Boolean, Category, Field
from ...jobfile.job_format import Text
from ...jobfile.toml_fields import LISTED
from ..estimates import Spread
from ..question import CountsQuestion, NoisyCounts, PublicTable, SiteTable
from .description import ColumnDescription, PrivateDescription, describe_column, edges_of

_YES_NO = ("no", "yes")


class Describe(CountsQuestion):
    """The keys of a question of kind "describe" in a job file.

    columns : columns of the schema; all by default.
    by : a category or boolean column of the schema: every column is also described for each value of `by`.
    bins : the number of bins for a number or a date. More bins show more detail, with more noise.
    level : the confidence level of all intervals.
    """

    kind: ClassVar[str] = "describe"
    columns: Annotated[tuple[Text, ...], LISTED] | None = Key(default=None, min_length=1)
    by: Text | None = None
    bins: int = Key(default=20, ge=2, le=10_000)
    level: float = Key(default=0.95, gt=0, lt=1)

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        group = grouping(public, self.by)
        names = [field.name for field in self.fields(public)]
        return (*names, *([] if group is None or group.name in names else [group.name]))

    def fields(self, public: PublicTable) -> tuple[Field, ...]:
        """The columns that are described."""
        return public.fields(self.columns, "columns")

    def lengths(self, public: PublicTable) -> tuple[int, ...]:
        group = grouping(public, self.by)
        groups = 1 if group is None else cells_in(group, self.bins)
        return tuple(groups * cells_in(field, self.bins) for field in self.fields(public))

    def cells(self, public: PublicTable, table: SiteTable) -> NDArray[np.int32]:
        fields, group = self.fields(public), grouping(public, self.by)
        each = np.empty((table.rows, len(fields)), dtype=np.int32)
        for k, field in enumerate(fields):  # one column at a time, to save memory
            each[:, k] = cells_of(field, table.parsed([field])[field.name], self.bins)
        if group is None:
            return each
        place = cells_of(group, table.parsed([group])[group.name], self.bins)
        for k, field in enumerate(fields):
            each[:, k] += (place * cells_in(field, self.bins)).astype(np.int32)
        return each

    def estimate(self, public: PublicTable, found: NoisyCounts) -> PrivateDescription:
        fields, groups = self.fields(public), groups_of(grouping(public, self.by))
        folded = [
            table.reshape(-1, cells_in(f, self.bins)) for f, table in zip(fields, found.tables, strict=True)
        ]
        sigma = found.sigma * float(np.sqrt(len(folded[0])))
        spread = Spread(sigma, found.units, self.level)
        columns = {
            field.name: describe_column(field, self.bins, table.sum(axis=0) if groups else table[0], spread)
            for field, table in zip(fields, folded, strict=True)
        }
        by = {
            name: self._group([table[k] for table in folded], fields, found.sigma)
            for k, name in enumerate(groups)
        }
        return PrivateDescription(columns, found.units, found, by, self.by or "")

    def _group(
        self, tables: list[Array], fields: tuple[Field, ...], sigma: float
    ) -> dict[str, ColumnDescription]:
        """The description of one group. The number of its units is estimated from its tables."""
        size = max(float(np.mean([table.sum() for table in tables])), 1.0)
        spread = Spread(sigma, max(round(size), 1), self.level, estimated=True)
        pairs = zip(fields, tables, strict=True)
        return {field.name: describe_column(field, self.bins, table, spread) for field, table in pairs}


def grouping(public: PublicTable, by: str | None) -> Category | Boolean | None:
    """The column `by` of the schema, whose values name the groups; None without `by`."""
    if by is None:
        return None
    (field,) = public.fields([by], "by")
    if not isinstance(field, Category | Boolean):
        raise ParameterError(f"`by` must be a category or a boolean of the schema; got {by!r}.")
    return field


def groups_of(field: Category | Boolean | None) -> tuple[str, ...]:
    """The names of the groups. The tables have one more group: units whose group is unreadable."""
    return () if field is None else field.values if isinstance(field, Category) else _YES_NO


def cells_in(field: Field, bins: int) -> int:
    """The number of cells of a column's table. The last cell counts values that cannot be read."""
    return (len(groups_of(field)) if isinstance(field, Category | Boolean) else bins) + 1


def cells_of(field: Field, values: Array, bins: int) -> NDArray[np.int64]:
    """The number of the cell of every value."""
    last = cells_in(field, bins) - 1
    if isinstance(field, Category):
        return np.where(values < 0, last, values).astype(np.int64)
    lost = np.isnan(values)
    known = np.where(lost, 0.0, values)
    if isinstance(field, Boolean):
        place = known.astype(np.int64)
    else:
        place = np.clip(np.searchsorted(edges_of(field, bins), known, side="right") - 1, 0, bins - 1)
    return np.where(lost, last, place).astype(np.int64)
