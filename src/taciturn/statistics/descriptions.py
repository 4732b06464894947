"""private_description: counts, means, histograms and quantiles of a table, from one masked sum.

Each column is one table of counts over a public range or public categories, with a place for cells that are
missing or cannot be read. So bounds can be chosen, and a schema mended, without a look at a row.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from .. import checks
from ..data.tables.columns import parse
from ..data.tables.fields import Boolean, Category, Date, Field, Number
from ..data.tables.schema import Schema
from ..notebook import facts_table
from ..privacy.certificate.certificate import Certificate
from ..types import Array
from .counting import Cells, CountWishes, NoisyCounts, release_counts
from .estimates import Estimate, Spread, clean

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_YES_NO = ("no", "yes")


@dataclass(frozen=True, eq=False, repr=False)
class ColumnDescription:
    """One column, as far as noise lets it be known.

    readable : the share of cells that hold a value; the rest is missing, unreadable or undeclared.
    shares : of each category, or of each cell of the histogram, among all units.
    edges : of the histogram; for a date in days since year 1 (`datetime.date.fromordinal`).
    mean, quantiles : of the values that can be read, each moved into the public range; None for categories.
    """

    field: Field
    readable: Estimate
    shares: dict[str, Estimate]
    edges: Array | None = None
    mean: Estimate | None = None
    quantiles: dict[float, Estimate] | None = None

    @property
    def name(self) -> str:
        return self.field.name

    def __repr__(self) -> str:
        return f"{self.name}: {self.line()}"

    def line(self) -> str:
        """The column in one line."""
        known = f"readable {_percent(self.readable)}"
        if self.mean is None or self.quantiles is None:
            return "; ".join([*(f"{v} {_percent(e)}" for v, e in self.shares.items()), known])
        tell = _day if isinstance(self.field, Date) else "{:.4g}".format
        spots = ", ".join(f"{q:.0%} {tell(e.value)}" for q, e in self.quantiles.items())
        mean = f"mean {tell(self.mean.value)} ({tell(self.mean.low)} to {tell(self.mean.high)})"
        return f"{mean}; quantiles {spots}; {known}"


@dataclass(frozen=True, eq=False, repr=False)
class PrivateDescription:
    """A table's columns, described from one release; `description["age"].mean` and so on."""

    columns: Mapping[str, ColumnDescription]
    units: int
    certificate: Certificate
    released: NoisyCounts

    def __getitem__(self, name: str) -> ColumnDescription:
        return self.columns[name]

    def __iter__(self) -> Iterator[ColumnDescription]:
        return iter(self.columns.values())

    def __repr__(self) -> str:
        return f"PrivateDescription({len(self.columns)} columns, {self.certificate})"

    def _repr_html_(self) -> str:
        facts = {column.name: column.line() for column in self}
        return facts_table("Private description", facts, self.certificate.statement())


def private_description(
    table: Any,
    schema: Schema | Mapping[str, tuple[float, float]],
    *,
    epsilon: float,
    delta: float = 1e-5,
    site: Any = None,
    person: Any = None,
    sites: int = 5,
    colluding: int | None = None,
    bins: int = 20,
    level: float = 0.95,
    large_delta: bool = False,
    ledger: str | PathLike[str] | None = None,
    random_state: int | None = None,
) -> PrivateDescription:
    """Describe private columns before training, under one (epsilon, delta) for all of them together.

    Everything comes from one masked sum of counts. It is charged to the `Budget` it is in, if it is in one.

    Parameters
    ----------
    table : a DataFrame, a mapping of columns, a structured array, or rows in the schema's order.
    schema : what is public: a `Schema`, or generous ranges, {"age": (0, 150)}. Values outside are moved to
        the nearer end, where they are seen.
    bins : cells of a number's or date's range; more of them tell more and are noisier.
    epsilon, delta, site, person, sites, colluding, large_delta, level, ledger, random_state : as in
        `private_score`. The noise grows with the square root of the number of columns.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> ages = np.random.default_rng(0).uniform(20, 80, 5000)
    >>> found = tt.private_description({"age": ages}, {"age": (0, 150)}, epsilon=0.5, random_state=0)
    >>> bool(found["age"].mean.low < ages.mean() < found["age"].mean.high)
    True
    """
    wishes = CountWishes(epsilon, delta, site, person, sites, colluding, large_delta, ledger, random_state)
    bins = checks.whole("bins", bins, least=2)
    Spread(1.0, 1, level).z  # noqa: B018 - a level that makes no sense is told before anything is spent
    if not isinstance(schema, Schema):
        schema = Schema(tuple(Number(name, low, high) for name, (low, high) in schema.items()))
    fields = [replace(one, fill=None) if isinstance(one, Number) else one for one in schema]
    parsed = parse(Schema(tuple(fields)), table)
    cells = np.column_stack([_cells(field, parsed[field.name], bins) for field in fields])
    lengths = tuple(_length(field, bins) for field in fields)
    found = release_counts(cells, lengths, wishes, "private_description")
    spread = Spread(found.sigma, found.units, level)
    columns = {
        field.name: _describe(field, counts, bins, spread)
        for field, counts in zip(fields, found.tables, strict=True)
    }
    return PrivateDescription(columns, found.units, found.certificate, found)


def _length(field: Field, bins: int) -> int:
    """The last cell is that of what cannot be read."""
    if isinstance(field, Category):
        return len(field.values) + 1
    return 3 if isinstance(field, Boolean) else bins + 1


def _edges(field: Number | Date, bins: int) -> Array:
    if isinstance(field, Date):
        return np.linspace(field.start, field.start + field.days, bins + 1)
    if field.log:
        return field.low + np.expm1(np.linspace(0.0, np.log1p(field.high - field.low), bins + 1))
    return np.linspace(field.low, field.high, bins + 1)


def _cells(field: Field, values: Array, bins: int) -> Cells:
    last = _length(field, bins) - 1
    if isinstance(field, Category):
        return np.where(values < 0, last, values).astype(np.int64)
    lost = np.isnan(values)
    known = np.where(lost, 0.0, values)
    if isinstance(field, Boolean):
        place = known.astype(np.int64)
    else:
        edges = _edges(field, bins)
        place = np.clip(np.searchsorted(edges, known, side="right") - 1, 0, bins - 1)
    return np.where(lost, last, place).astype(np.int64)


def _describe(field: Field, counts: Array, bins: int, spread: Spread) -> ColumnDescription:
    each = np.eye(len(counts), dtype=bool)
    readable = spread.share(counts, ~each[-1])
    if isinstance(field, Category | Boolean):
        names = field.values if isinstance(field, Category) else _YES_NO
        shares = {name: spread.share(counts, each[k]) for k, name in enumerate(names)}
        return ColumnDescription(field, readable, shares)
    edges = _edges(field, bins)
    tell = _day if isinstance(field, Date) else "{:.4g}".format
    shares = {f"{tell(edges[k])} to {tell(edges[k + 1])}": spread.share(counts, each[k]) for k in range(bins)}
    mean, quantiles = _mean(counts, edges, spread), _quantiles(counts, edges, spread)
    return ColumnDescription(field, readable, shares, edges, mean, quantiles)


def _mean(counts: Array, edges: Array, spread: Spread) -> Estimate:
    """Of the cells' middles; the interval includes how far a value may be from its own."""
    low, high = float(edges[0]), float(edges[-1])
    known = float(counts[:-1].sum())
    if known <= 2 * spread.sigma * np.sqrt(len(counts)):
        return Estimate((low + high) / 2, low, high)
    middles = (edges[1:] + edges[:-1]) / 2
    value = float(np.sum(counts[:-1] * middles)) / known
    gradient = np.append((middles - value) / known, 0.0)
    half = float(np.sum(clean(counts[:-1], 1) * np.diff(edges) / 2))
    return spread.estimate(value, gradient, counts, within=(low, high), width=half)


def _quantiles(counts: Array, edges: Array, spread: Spread) -> dict[float, Estimate]:
    """From the cleaned counts added up; ends are moved outwards by what noise and sample do to a share."""
    kept = clean(counts[:-1], 1)
    shares = np.concatenate([[0.0], np.cumsum(kept)])
    known = max(float(counts[:-1].sum()), spread.sigma)
    found = {}
    for q in _QUANTILES:
        noise = 2 * spread.sigma * np.sqrt(len(edges)) / known  # of a share, and of the sum it is taken of
        off = spread.z * float(np.hypot(noise, np.sqrt(q * (1 - q) / known)))
        value = float(np.interp(q, shares, edges))
        low = edges[max(int(np.searchsorted(shares, q - off, side="right")) - 1, 0)]
        high = edges[min(int(np.searchsorted(shares, q + off, side="left")), len(edges) - 1)]
        found[q] = Estimate(value, min(float(low), value), max(float(high), value))
    return found


def _day(number: float) -> str:
    return dt.date.fromordinal(round(number)).isoformat()


def _percent(share: Estimate) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
