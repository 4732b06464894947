"""The tables of a report, which show the numbers of its charts, its network and its settings.

They are for readers who cannot see the charts, or whose browser runs no scripts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..data import Accounting, Chart, NetworkMap
from .numbers import written

_ROWS = 120  # the largest number of rounds in a table; the JSON has all rounds
_ENTRIES = 24  # lists in the settings show at most this many entries


class NumberTable(NamedTuple):
    """A table: its name, its caption, its columns as (label, whether it is numeric), and its rows."""

    summary: str
    caption: str
    columns: list[tuple[str, bool]]
    rows: list[list[str]]


def by_round(chart: Chart) -> NumberTable:
    """One row per round. Each run has one column, and two more columns if its curve has a range."""
    rounds = sorted({t for curve in chart.curves for t in curve.rounds})
    step = max(1, math.ceil(len(rounds) / _ROWS))
    shown = [t for k, t in enumerate(rounds) if k % step == 0 or k == len(rounds) - 1]
    columns, head = [], [("round", True)]
    for curve in chart.curves:
        parts = {"": curve.mean, ", lowest": curve.low, ", highest": curve.high}
        for word, part in parts.items():
            if len(part):
                head.append((curve.name + word, True))
                columns.append(dict(zip(curve.rounds, part, strict=True)))
    rows = [
        [str(t), *(digits(column[t], chart.format) if t in column else "" for column in columns)]
        for t in shown
    ]
    thinned = f", every {step} rounds" if step > 1 else ""
    if len({len(curve.rounds) for curve in chart.curves}) > 1:
        thinned += "; empty after the last round of a run"
    return NumberTable(f"{chart.title}: the numbers", f"{chart.label}{thinned}", head, rows)


def by_site(accounting: Accounting, names: Sequence[str]) -> NumberTable:
    """One row per site, one column per run."""
    rows = [
        [name, *(digits(_entry(costs.totals, i), "bound") for costs in accounting.sites)]
        for i, name in enumerate(names)
    ]
    head = [("site", False), *((costs.name, True) for costs in accounting.sites)]
    return NumberTable(f"Totals by site, {accounting.short}: the numbers", accounting.chart.label, head, rows)


def count_totals(accounting: Accounting) -> int:
    """The number of known totals, over all sites and runs."""
    return sum(not math.isnan(total) for costs in accounting.sites for total in costs.totals)


def network(graph: NetworkMap) -> NumberTable:
    """One row per site: its neighbours, and its number of records if that number is known."""
    near: list[list[int]] = [[] for _ in graph.names]
    for i, j in graph.edges:
        near[i].append(j)
        near[j].append(i)
    rows = [
        [name, *map(str, graph.samples[i : i + 1]), ", ".join(graph.names[j] for j in sorted(near[i]))]
        for i, name in enumerate(graph.names)
    ]
    records = [("records", True)] if len(graph.samples) else []
    head = [("site", False), *records, ("neighbours", False)]
    return NumberTable("Sites and links: the list", "Neighbours of each site", head, rows)


def flat_facts(values: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Nested settings as pairs of name and text; a name without a text is a heading."""
    parts = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    yield from ((_words(str(key)), _text(value)) for key, value in values.items() if key not in parts)
    for key, part in parts.items():
        yield _words(str(key)), None
        yield from ((path, _text(entry)) for path, entry in _flat(part))


def digits(value: float | None, form: str = "plain") -> str:
    """A number with six significant digits, or an upper bound ("bound") as `written` rounds it.

    >>> digits(0.369123456), digits(2.96912341, "bound")
    ('0.369123', '2.97')
    """
    if form == "bound" or value is None or not math.isfinite(value):
        return written(value, "bound")
    return f"{value:#.6g}".removesuffix(".")


def _entry(values: Sequence[float], i: int) -> float | None:
    return values[i] if i < len(values) else None


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{_words(str(key))}, ")
        else:
            yield before + _words(str(key)), value


def _words(key: str) -> str:
    return key.replace("_", " ")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "∞" if math.isinf(value) else repr(value).removesuffix(".0")
    if isinstance(value, Mapping):
        return "; ".join(f"{_words(str(key))}: {_text(entry)}" for key, entry in value.items()) or "none"
    if isinstance(value, list | tuple):
        shown = ", ".join(_text(entry) for entry in value[:_ENTRIES])
        rest = len(value) - _ENTRIES
        return (shown + (f", … ({rest} more)" if rest > 0 else "")) or "none"
    return str(value)
