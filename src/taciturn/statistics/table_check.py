"""check: show the owner of a table how well the table fits a schema. It spends no budget and writes no file.

The result is computed from the rows without noise, so only the owner of the rows may see it. For each column
`check` counts cells that fit the schema; cells outside of the public range, which a fit moves to the nearer
end of the range; cells that cannot be read or have an undeclared category; and missing cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.formatting import format_given
from ..core.notebook import draw_bars, facts_table
from ..core.types import Array
from ..data.tables.cell_counts import CellCounts, count_cells, count_column
from ..data.tables.clipping import is_sparse, row_norms
from ..data.tables.column_parsing import is_blank, parse, read_numbers
from ..data.tables.column_types import Boolean, Category, Date, Number
from ..data.tables.encoder import BoundedEncoder
from ..data.tables.schema import Schema, public_columns
from ..data.tables.table_inputs import take_columns
from ..estimators.labels import places, public_labels
from ..estimators.noise_check import noise_over_signal
from ..objective.rows import FARTHEST
from ..privacy.certificate.summary import count

OWNER_ONLY = "for the owner of these rows only: the counts have no noise, so never share them"
_CELLS = 12  # the number of bars of a histogram
_CLASSES = 12  # if the labels have more different values than this, they may be numbers
_NARROW = 0.05  # warn if 90% of the cells lie within this share of the range: then the column hardly varies


@dataclass(frozen=True, eq=False)
class CheckedColumn:
    """One checked column: how many cells fit the schema, a histogram of the cells, and warnings.

    heights : the number of rows of each category, or the counts of a histogram: over the public range or,
        without a schema, over the range of the rows.
    troubles : the warnings about this column, one line each.
    """

    counts: CellCounts
    heights: tuple[int, ...]
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class TableCheck:
    """The result of `check`: how well a table fits a schema. Only the owner of the rows may see it.

    columns : one entry for every column of the schema, then one for the label.
    rows, zeros : the number of rows, and the number of rows that become zeros and have no effect on a fit.
    clipped : the number of rows that a fit scales down to `data_norm`; 0 if there is a schema.
    noise : the norm of the noise divided by the norm of a strong signal, at this budget and number of rows.
        If this ratio is above 1, a model is little better than chance.
    support : a text that says whether there are enough rows.
    troubles : all warnings that the owner should read before a fit, one line each.
    """

    columns: tuple[CheckedColumn, ...]
    rows: int
    zeros: int
    clipped: int
    noise: float
    support: str
    troubles: tuple[str, ...]

    def __repr__(self) -> str:
        return f"TableCheck({self.rows} rows, {len(self.columns)} columns, {len(self.troubles)} troubles)"

    def __str__(self) -> str:
        return "\n".join([f"({OWNER_ONLY})", *self.lines()])

    def lines(self) -> list[str]:
        """The lines of the report: the table of counts, whether there are enough rows, and the warnings."""
        width = max(len("column"), *(len(column.counts.name) for column in self.columns))
        shown = [f"  {'column':{width}} {'fit':>9} {'moved':>9} {'unknown':>9} {'missing':>9}"]
        for c in (column.counts for column in self.columns):
            shown.append(f"  {c.name:{width}} {c.fit:>9} {c.moved:>9} {c.unknown:>9} {c.missing:>9}")
        support = [] if self.support in self.troubles else [f"  {self.support}"]
        return [*shown, *support, *(f"  WARNING {line}" for line in self.troubles)]

    def _repr_html_(self) -> str:
        facts, pictures = {}, {}
        for column in self.columns:
            c = column.counts
            facts[c.name] = f"{c.fit} fit, {c.moved} moved, {c.unknown} unknown, {c.missing} missing"
            ends = (0, len(column.heights) - 1) if c.moved else ()  # the outer bars contain the moved cells
            pictures[c.name] = draw_bars(column.heights, ends, label=c.name)
        facts["rows"] = f"{self.rows}, of which {self.zeros} become zeros and {self.clipped} are scaled down"
        if self.support not in self.troubles:
            facts["enough rows?"] = self.support
        for k, line in enumerate(self.troubles, start=1):
            facts[f"warning {k}"] = line
        return facts_table("Check", facts, f"Nothing was spent. This is {OWNER_ONLY}.", pictures=pictures)


def check(
    table: Any,
    schema: Schema | Mapping[str, Any] | None = None,
    y: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    target_scale: float | None = None,
    missing: str = "row",
    data_norm: float = 1.0,
    epsilon: float = 1.0,
    delta: float | None = 1e-5,
    sites: int = 5,
    colluding: int | None = None,
    total_rows: int | None = None,
) -> TableCheck:
    """Check which values fit a schema, and whether there are enough rows for this epsilon.

    Run it before a fit. It spends no budget. The result is computed from the rows without noise, so only the
    owner of the rows may see it.

    Parameters
    ----------
    table : the rows, as for `BoundedEncoder`; or a plain array of numbers, without a schema.
    schema : the public facts about the columns. With None, `table` is checked as the X of a fit.
    y : the labels or targets of the rows.
    classes, target_scale, missing, data_norm : as for the estimator or `BoundedEncoder`.
    epsilon, delta, sites, colluding : the intended budget, as for the estimator.
    total_rows : the number of rows of all sites together, if `table` belongs to one of several sites.

    Examples
    --------
    >>> import taciturn as tt
    >>> schema = tt.data.Schema.of(age=(0, 110), ward=["medical", "surgical"])
    >>> found = tt.check({"age": [31, 250, None], "ward": ["medical", "surgical", "icu"]}, schema)
    >>> found.columns[0].counts.moved, found.zeros
    (1, 1)
    """
    label = None if y is None else _label(y, classes, target_scale)
    if y is None and (classes is not None or target_scale is not None):
        raise ParameterError("`classes` and `target_scale` describe `y`; give `y`, or leave them out.")
    budget = {"epsilon": epsilon, "delta": delta, "sites": sites, "colluding": colluding}
    return examine(
        table, schema, label, missing=missing, data_norm=data_norm, total_rows=total_rows, **budget
    )


def examine(
    table: Any,
    schema: Schema | Mapping[str, Any] | None,
    label: tuple[CheckedColumn, NDArray[np.bool_]] | None,
    *,
    missing: str,
    data_norm: float,
    total_rows: int | None,
    **budget: Any,
) -> TableCheck:
    """`check`, with the label given as (the checked label column, a mask of the rows without a label)."""
    X, columns = _features(table, schema, missing, data_norm)
    zeros, rows = ~X.any(axis=1), len(X)
    if label is not None:
        if len(label[1]) != rows:
            raise ParameterError(f"`y` must contain one entry per row, {rows}; got {len(label[1])}.")
        columns, zeros = [*columns, label[0]], zeros | label[1]
    troubles = [line for column in columns for line in column.troubles]
    lost, clipped = int(zeros.sum()), int(np.sum(row_norms(X) > data_norm * (1 + 1e-9)))
    if 10 * lost > rows:
        troubles.append(f"{lost} of {rows} rows become zeros and have no effect")
    if 10 * clipped > rows:
        troubles.append(
            f"{clipped} of {rows} rows have a norm above data_norm = {data_norm:g} and are clipped to it; "
            "scale the columns by public bounds, as BoundedEncoder does"
        )
    total = rows if total_rows is None else checks.whole("total_rows", total_rows, least=max(rows, 1))
    noise, support = _support(max(total, 1), X.shape[1], **budget)
    if noise > 1:
        troubles.append(support)
    return TableCheck(tuple(columns), rows, lost, clipped, noise, support, tuple(troubles))


def _features(
    table: Any, schema: Schema | Mapping[str, Any] | None, missing: str, data_norm: float
) -> tuple[Array, list[CheckedColumn]]:
    """(X, columns): the rows as a fit would use them, and the checked columns."""
    checks.positive("data_norm", data_norm)
    if schema is None:
        if missing != "row":
            raise ParameterError("`missing` has no effect without a `schema`; leave it out.")
        try:
            X = np.asarray(table.toarray() if is_sparse(table) else table, dtype=np.float64)
        except (TypeError, ValueError):  # NumPy's own error would quote a cell
            X = np.empty(0)
        if X.ndim != 2 or X.shape[1] == 0 or not np.isfinite(X).all():
            raise ParameterError(
                "`table` must contain rows of finite numbers if there is no `schema`. With texts or missing "
                "values, give a `schema`."
            )
        counts = [CellCounts(f"column {k}", len(X), 0, 0, 0) for k in range(X.shape[1])]
        bars = [tuple(np.histogram(values, _CELLS)[0].tolist()) for values in X.T]
        return X, [CheckedColumn(*pair) for pair in zip(counts, bars, strict=True)]
    encoder = BoundedEncoder(schema, data_norm=data_norm, missing=missing)
    X = encoder.fit(table).transform(table)
    public = public_columns(schema)
    raw, parsed = take_columns(public.names, table), parse(public, table)
    counts = count_cells(public, raw)
    return X, [_column(f, c, parsed[f.name]) for f, c in zip(public, counts, strict=True)]


def _column(field: Number | Category | Date | Boolean, counts: CellCounts, values: Array) -> CheckedColumn:
    """Check one column of a schema; `values` are its parsed cells."""
    troubles = [counts.losses()] if counts.many_lost else []
    if isinstance(field, Category):
        heights = np.bincount(values[values >= 0], minlength=len(field.values))
        return CheckedColumn(counts, tuple(heights.tolist()), tuple(troubles))
    low, high = 0.0, 1.0
    if isinstance(field, Date):
        low, high = float(field.start), float(field.start + field.days)
    elif isinstance(field, Number):
        low, high = field.low, field.high
    known = np.clip(values[~np.isnan(values)], low, high)
    heights, _ = np.histogram(known, 2 if isinstance(field, Boolean) else _CELLS, (low, high))
    if isinstance(field, Number) and not field.log and len(known):
        used = float(np.subtract(*np.quantile(known, [0.95, 0.05]))) / (high - low)
        if used < _NARROW:
            troubles.append(
                f"`{field.name}`: nine tenths of the cells lie within {100 * used:.2g}% of the range, so a "
                "model hardly sees their differences; declare a narrower range, or set `log`, and base the "
                "choice on public facts"
            )
    return CheckedColumn(counts, tuple(heights.tolist()), tuple(troubles))


def _label(
    y: Any, classes: Sequence[Any] | None, target_scale: float | None
) -> tuple[CheckedColumn, NDArray[np.bool_]]:
    """(the label as a checked column, a mask of the rows without a valid label)."""
    values = np.asarray(y).ravel()
    rows = len(values)
    if target_scale is not None:
        return _target(values, checks.positive("target_scale", target_scale))
    blank = np.fromiter(map(is_blank, values), dtype=bool, count=rows)
    known = public_labels(classes) if classes is not None else np.unique(values[~blank])
    at = np.where(blank, -1, places(known, np.where(blank, known[0], values))) if len(known) else -1 - blank
    heights = np.bincount(at[at >= 0], minlength=len(known))
    unknown = int(np.sum(at < 0)) - int(blank.sum())
    counts = CellCounts("label", int(heights.sum()), 0, unknown, int(blank.sum()))
    troubles = [counts.losses()] if counts.many_lost else []
    if len(known) > _CLASSES and classes is None:
        troubles.append(f"the labels have {len(known)} values; if they are numbers, give `target_scale`")
    elif np.count_nonzero(heights) < 2:
        troubles.append("fewer than two classes occur among the labels, so a model has nothing to separate")
    return CheckedColumn(counts, tuple(heights.tolist()[: 4 * _CLASSES]), tuple(troubles)), at < 0


def _target(values: Array, scale: float) -> tuple[CheckedColumn, NDArray[np.bool_]]:
    """Like `_label`, for a numeric target; its histogram shows |target| / scale."""
    counts = count_column(Number("target", -1e300, 1e300), values)
    found = read_numbers(values)
    with np.errstate(over="ignore"):
        signed = np.clip(found[np.isfinite(found)] / scale, -FARTHEST, FARTHEST)  # as in a fit
    known = np.abs(signed)
    heights, _ = np.histogram(known, _CELLS)
    troubles = [counts.losses()] if counts.many_lost else []
    typical = float(np.median(known)) if len(known) else 1.0
    if not 0.1 <= typical <= 10:
        troubles.append(
            f"the median magnitude of a target is {typical:.2g} times `target_scale`; set `target_scale` to "
            "the magnitude of a typical target, from public knowledge"
        )
    elif len(known) and (apart := float(np.median(np.abs(signed - np.median(signed))))) < 0.1:
        troubles.append(
            f"the median distance of the targets from their median is {apart:.2g} times `target_scale`; "
            "subtract a public centre from the targets, and set `target_scale` to the typical distance"
        )
    return CheckedColumn(counts, tuple(heights.tolist()), tuple(troubles)), ~np.isfinite(found)


def _support(
    rows: int, dimension: int, *, epsilon: float, delta: float | None, sites: int, colluding: int | None
) -> tuple[float, str]:
    """(noise divided by signal, a text that says whether there are enough rows)."""
    checks.whole("sites", sites, least=2)
    if epsilon != math.inf:
        checks.positive("epsilon", epsilon)
    if colluding is not None:
        checks.among_sites("colluding", colluding, sites)
    delta = checks.usual_delta(delta, rows, insisted=True)
    budget = (
        f"epsilon {format_given(epsilon)}, {rows:,} rows at {sites} sites, and {count(dimension, 'column')}"
    )
    noise = noise_over_signal(rows, dimension, sites=sites, colluding=colluding, epsilon=epsilon, delta=delta)
    if noise <= 0.2:
        return noise, f"enough rows: with {budget}, the noise is about {noise:.2f} of a strong signal"
    needed, fewer = math.ceil(rows * noise / 0.2), int(dimension * 0.2 / noise)
    columns = f", or {count(fewer, 'column')}," if fewer else ""
    advice = f"about {needed:,} rows{columns} would be enough"
    if noise <= 1:
        return noise, f"few rows: with {budget}, the noise is about {noise:.2f} of a strong signal; {advice}"
    return noise, f"too few rows: with {budget}, the noise is about {noise:.2g} times the signal; {advice}"
