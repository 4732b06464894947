"""PrivateDescription: describes the columns of a table, like Table 1 of a medical paper.

All figures are estimated from noisy histograms of the columns, over the rows of all sites.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.notebook import Drawing, draw_bars
from ...core.types import Array
from ...data.tables.column_types import Boolean, Category, Date, Field, Number
from ..answer import PrivateAnswer
from ..estimates import Estimate, Spread, clean
from ..question import NoisyCounts

_DRAWN = 60  # a picture shows at most this many columns; the table shows all columns
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False, repr=False)
class ColumnDescription:
    """The description of one column, estimated from noisy counts.

    readable : the share of units with a value that can be read and that the schema declares.
    shares : the share of each category, or of each bin of the histogram, among all units.
    edges : the edges of the bins; for a date, the ordinals of days (`datetime.date.fromordinal`).
    mean, sd, quantiles : statistics of the readable values, clipped to the public range. None for
        categories and booleans.
    units : the number of records (or persons): public for the whole table, an estimate for a group.
    """

    field: Field
    readable: Estimate
    shares: dict[str, Estimate]
    edges: Array | None = None
    mean: Estimate | None = None
    quantiles: dict[float, Estimate] | None = None
    sd: Estimate | None = None
    units: float = 0.0

    @property
    def name(self) -> str:
        return self.field.name

    def __repr__(self) -> str:
        return f"{self.name}: {self.line()}"

    @property
    def ends(self) -> tuple[str, str]:
        """The ends of the public range as text; empty for categories and booleans."""
        if self.edges is None:
            return "", ""
        tell = _day if isinstance(self.field, Date) else "{:.4g}".format
        return tell(self.edges[0]), tell(self.edges[-1])

    def line(self) -> str:
        """The description in one line."""
        return f"{self.values()}; readable {_percent(self.readable)}"

    def values(self) -> str:
        """Mean, standard deviation and quantiles, or the shares of the categories."""
        if self.mean is None or self.quantiles is None or self.sd is None:
            return "; ".join(f"{v} {_percent(e)}" for v, e in self.shares.items())
        tell = _day if isinstance(self.field, Date) else "{:.4g}".format
        spots = ", ".join(f"{q:.0%} {tell(e.value)}" for q, e in self.quantiles.items())
        mean = f"mean {tell(self.mean.value)} ({tell(self.mean.low)} to {tell(self.mean.high)})"
        return f"{mean}; SD {self.sd}; quantiles {spots}"

    def facts(self) -> dict[str, Any]:
        """The description as plain JSON values."""
        found: dict[str, Any] = {"units": self.units, "readable": vars(self.readable)}
        found["shares"] = {name: vars(share) for name, share in self.shares.items()}
        if self.mean is not None and self.sd is not None and self.quantiles is not None:
            found |= {"mean": vars(self.mean), "sd": vars(self.sd)}
            found["quantiles"] = {f"{q:g}": vars(spot) for q, spot in self.quantiles.items()}
        return found


@dataclass(frozen=True, eq=False, repr=False)
class PrivateDescription(PrivateAnswer):
    """The columns of a table, described from one release; for example `description["age"].mean`.

    groups : for each value of the column `by`, the same columns, described for the units with that value.
    """

    columns: Mapping[str, ColumnDescription]
    units: int
    released: NoisyCounts
    groups: Mapping[str, Mapping[str, ColumnDescription]] = field(default_factory=dict)
    by: str = ""

    @property
    def title(self) -> str:
        groups = f", for all and by {self.by}" if self.by else ""
        return (
            f"Private description of {len(self.columns)} columns of {self.units:,} {self.unit_name}{groups}"
        )

    def __getitem__(self, name: str) -> ColumnDescription:
        return self.columns[name]

    def __iter__(self) -> Iterator[ColumnDescription]:
        return iter(self.columns.values())

    def __repr__(self) -> str:
        return f"PrivateDescription({len(self.columns)} columns, {self.certificate})"

    def table(self) -> list[list[str]]:
        heads = [f"all ({self.units:,})"]
        heads += [f"{name} (about {_size(found):,.0f})" for name, found in self.groups.items()]
        rows = [["column", "", *heads]]
        for name, column in self.columns.items():
            each = [column, *(found[name] for found in self.groups.values())]
            rows += _lines(name, each)
        return rows

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"units": self.units, "noise": self.released.sigma}
        found["columns"] = {name: column.facts() for name, column in self.columns.items()}
        if self.by:
            found["by"] = self.by
            found["groups"] = {
                group: {name: column.facts() for name, column in columns.items()}
                for group, columns in self.groups.items()
            }
        return found

    def notebook(self) -> tuple[dict[str, str], dict[str, str]]:
        pictures = {
            column.name: draw_bars([share.value for share in column.shares.values()], label=column.name)
            for column in self
        }
        return {column.name: column.line() for column in self}, pictures

    def plot(self) -> Drawing:
        """One small histogram for each of the first 60 columns, with the interval of every bar."""
        from ..pictures import Bars, draw_histograms

        charts = []
        for name, column in list(self.columns.items())[:_DRAWN]:
            each = {"all": column} | {group: found[name] for group, found in self.groups.items()}
            shown = each if len(each) == 1 else {key: each[key] for key in self.groups}
            shares = {k: list(c.shares.values()) for k, c in shown.items()}
            charts.append(Bars(name, shares, list(column.shares), column.edges, column.ends))
        return draw_histograms(charts, self.title)


def edges_of(field: Number | Date, bins: int) -> Array:
    """The edges of the bins of a column."""
    if isinstance(field, Date):
        return np.linspace(field.start, field.start + field.days, bins + 1)
    if field.log:
        return field.low + np.expm1(np.linspace(0.0, np.log1p(field.high - field.low), bins + 1))
    return np.linspace(field.low, field.high, bins + 1)


def describe_column(field: Field, bins: int, counts: Array, spread: Spread) -> ColumnDescription:
    """The description of one column from its noisy counts."""
    each = np.eye(len(counts), dtype=bool)
    share = functools.partial(spread.share, counts)
    readable = share(~each[-1])
    if isinstance(field, Category | Boolean):
        names = field.values if isinstance(field, Category) else ("no", "yes")
        shares = {name: share(each[k]) for k, name in enumerate(names)}
        return ColumnDescription(field, readable, shares, units=spread.units)
    edges = edges_of(field, bins)
    tell = _day if isinstance(field, Date) else "{:.4g}".format
    shares = {f"{tell(edges[k])} to {tell(edges[k + 1])}": share(each[k]) for k in range(bins)}
    mean, quantiles = _mean(counts, edges, spread), _quantiles(counts, edges, spread)
    sd = _deviation(counts, edges, spread)
    return ColumnDescription(field, readable, shares, edges, mean, quantiles, sd, spread.units)


def _mean(counts: Array, edges: Array, spread: Spread) -> Estimate:
    """The mean, with each value moved to the midpoint of its bin. The interval allows for these moves."""
    low, high = float(edges[0]), float(edges[-1])
    half = float(np.sum(clean(counts[:-1], 1) * np.diff(edges) / 2))
    found = spread.mean(counts, (edges[1:] + edges[:-1]) / 2, least=low, most=high, width=half)
    return Estimate((low + high) / 2, low, high) if math.isnan(found.value) else found


def _deviation(counts: Array, edges: Array, spread: Spread) -> Estimate:
    """The standard deviation, with each value moved to the midpoint of its bin.

    If the root mean square of these moves is h, they change the standard deviation by at most h.
    """
    widest, middles = float(edges[-1] - edges[0]) / 2, (edges[1:] + edges[:-1]) / 2
    known = float(counts[:-1].sum())
    mean = float(np.sum(counts[:-1] * middles)) / known if known > 0 else 0.0
    moved = spread.mean(counts, (middles - mean) ** 2, most=widest**2)
    if math.isnan(moved.value):
        return Estimate(widest / 2, 0.0, widest)
    half = float(np.sqrt(np.sum(clean(counts[:-1], 1) * (np.diff(edges) / 2) ** 2)))
    root = [float(np.sqrt(bound)) for bound in (moved.value, moved.low, moved.high)]
    return Estimate(root[0], max(root[1] - half, 0.0), min(root[2] + half, widest))


def _quantiles(counts: Array, edges: Array, spread: Spread) -> dict[float, Estimate]:
    """Quantiles from the shares below each edge; the ends of an interval are edges of bins.

    The q-quantile is in the bin in which the share of smaller values passes q. So the lower end is the start
    of the first bin at whose end this share may have reached q, given noise and sampling error. The upper end
    is the end of the last bin at whose start this share may still be at most q.
    """
    kept, cells = clean(counts[:-1], 1), len(edges) - 1
    shares = np.concatenate([[0.0], np.cumsum(kept)])
    known = max(float(counts[:-1].sum()), spread.sigma)
    below = np.concatenate([[0.0], np.cumsum(counts[:-1])]) / known
    part = np.clip(below, 0.0, 1.0)
    number = np.arange(cells + 1)  # the number of bins below each edge; each bin has its own noise
    noise = spread.sigma**2 * (number * (1 - part) ** 2 + (cells - number) * part**2) / known**2
    found = {}
    for q in QUANTILES:
        off = spread.z * np.sqrt(noise + q * (1 - q) / known)
        off[[0, -1]] = 0.0
        value = float(np.interp(q, shares, edges))
        low = edges[int(np.argmax(below[1:] + off[1:] >= q))]
        high = edges[cells - int(np.argmax((below[:-1] - off[:-1] <= q)[::-1]))]
        found[q] = Estimate(min(max(value, low), high), float(low), float(high))
    return found


def _lines(name: str, each: list[ColumnDescription]) -> list[list[str]]:
    """The lines of one column in the printed table. A line has an entry for all units and for each group."""
    first = each[0]
    missing = ["", "missing", *(_percent(_rest(column.readable)) for column in each)]
    if first.mean is None:
        shares = [["", value, *(_percent(column.shares[value]) for column in each)] for value in first.shares]
        return [[name, *shares[0][1:]], *shares[1:], missing]
    tell = _day if isinstance(first.field, Date) else "{:.4g}".format

    def cell(found: Estimate | None) -> str:
        if found is None:
            return ""
        return f"{tell(found.value)} ({tell(found.low)} to {tell(found.high)})"

    lines = [[name, "mean", *(cell(column.mean) for column in each)]]
    lines.append(["", "SD", *(str(column.sd) for column in each)])
    for q in QUANTILES:
        lines.append(["", f"{q:.0%} quantile", *(cell((column.quantiles or {})[q]) for column in each)])
    return [*lines, missing]


def _rest(share: Estimate) -> Estimate:
    return Estimate(1 - share.value, 1 - share.high, 1 - share.low)


def _size(columns: Mapping[str, ColumnDescription]) -> float:
    return next(iter(columns.values())).units


def _day(number: float) -> str:
    return dt.date.fromordinal(round(number)).isoformat()


def _percent(share: Estimate) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
