"""The kind of question "survival": Kaplan-Meier curves and life tables by group, and the log-rank test.

All of them are estimated from one noisy table of counts. Each unit (a record, or a person) is counted in one
cell of the table: (group, event or censored, time interval). One table needs less noise than several. A unit
with an unreadable time or event is counted in a separate cell and left out of the curves.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Key

from ...core.errors import ParameterError
from ...core.types import Array
from ...data.tables.column_parsing import read_numbers
from ...data.tables.column_types import Boolean, Number
from ...jobfile.job_format import Text
from ...jobfile.toml_fields import LISTED
from ..question import CountsQuestion, NoisyCounts, PublicTable, SiteTable
from .describe import cells_of, grouping, groups_of
from .survival_curves import PrivateSurvival, estimate_curves


class Survival(CountsQuestion):
    """The keys of a question of kind "survival" in a job file.

    time : a numeric column of the schema that has low = 0 and no `log`: how long each unit was observed. A
        unit that was observed beyond the end of this range counts as censored at the end of the range.
    event : a boolean column of the schema: whether the event ended the observation (true), or censoring.
    by : a category or boolean column of the schema, to get a curve for each value, and a log-rank test.
    bins : the number of time intervals, of equal length.
    times : instead of `bins`, the ends of the intervals, increasing up to the end of the range of `time`.
    level : the confidence level of all bands.
    """

    kind: ClassVar[str] = "survival"
    time: Text
    event: Text
    by: Text | None = None
    bins: int = Key(default=24, ge=2, le=10_000)
    times: Annotated[tuple[float, ...], LISTED] | None = Key(default=None, min_length=2)
    level: float = Key(default=0.95, gt=0, lt=1)

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        time, event = self._columns(public)
        self.edges(public)
        group = grouping(public, self.by)
        return (time.name, event.name, *([] if group is None else [group.name]))

    def _columns(self, public: PublicTable) -> tuple[Number, Boolean]:
        (time,), (event,) = public.fields([self.time], "time"), public.fields([self.event], "event")
        if not isinstance(time, Number) or time.low != 0 or time.log:
            raise ParameterError(
                "`time` must name a numeric column of the schema that has low = 0 and no `log`; "
                f"got {self.time!r}."
            )
        if not isinstance(event, Boolean):
            raise ParameterError(
                f"`event` must be the name of a boolean column of the schema; got {self.event!r}."
            )
        return time, event

    def edges(self, public: PublicTable) -> Array:
        """0 and the ends of the intervals."""
        last = self._columns(public)[0].high
        if self.times is None:
            return np.linspace(0.0, last, self.bins + 1)
        edges = np.array([0.0, *self.times])
        if (np.diff(edges) <= 0).any() or edges[-1] != last or "bins" in self.model_fields_set:
            raise ParameterError(
                f"`times` must increase from a number above 0 to {last:g}, the end of the range of "
                f"`{self.time}`, and `bins` must be left out; got {self.times}."
            )
        return edges

    def _groups(self, public: PublicTable) -> int:
        group = grouping(public, self.by)
        return 1 if group is None else len(groups_of(group)) + 1

    def lengths(self, public: PublicTable) -> tuple[int, ...]:
        return (self._groups(public) * (2 * len(self.edges(public))),)

    def cells(self, public: PublicTable, table: SiteTable) -> NDArray[np.int64]:
        time, event = self._columns(public)
        edges, group = self.edges(public), grouping(public, self.by)
        known = table.parsed([time, event, *([] if group is None else [group])])
        given = read_numbers(table.columns[time.name])
        lost = np.isnan(known[time.name]) | np.isnan(known[event.name])
        bins = len(edges) - 1
        place = np.clip(np.searchsorted(edges, np.nan_to_num(known[time.name]), side="left") - 1, 0, bins - 1)
        censored = (np.nan_to_num(known[event.name]) == 0) | (given > time.high)
        cell = np.where(censored & (given >= time.high), 2 * bins, place + bins * censored)
        cell = np.where(lost, 2 * bins + 1, cell).astype(np.int64)
        if group is not None:
            cell = cell + cells_of(group, known[group.name], 2) * (2 * bins + 2)
        return np.asarray(cell[:, None])

    def estimate(self, public: PublicTable, found: NoisyCounts) -> PrivateSurvival:
        edges, group = self.edges(public), grouping(public, self.by)
        tables = found.tables[0].reshape(self._groups(public), -1)
        return estimate_curves(found, tables, edges, groups_of(group), self.level, self.by or "")
