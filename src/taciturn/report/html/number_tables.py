"""The tables behind the charts, and the settings: the same numbers without a picture or a script."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ..data import Accounting, Chart, NetworkMap
from .numbers import written

_ROWS = 120  # most rounds in one table; the JSON has them all
_ENTRIES = 24  # most entries of a list among the settings


def by_round(chart: Chart) -> str:
    """A row per round, a column per run and for its range."""
    rounds = sorted({t for curve in chart.curves for t in curve.rounds})
    step = max(1, math.ceil(len(rounds) / _ROWS))
    shown = [t for k, t in enumerate(rounds) if k % step == 0 or k == len(rounds) - 1]
    columns, head = [], ""
    for curve in chart.curves:
        at = {t: k for k, t in enumerate(curve.rounds)}
        columns += [(at, part) for part in (curve.mean, curve.low, curve.high) if len(part)]
        words = ("", ", lowest", ", highest") if len(curve.low) else ("",)
        head += "".join(_th(curve.name + word) for word in words)
    body = "".join(
        f'<tr><th class="n" scope="row">{t}</th>'
        + "".join(_value(at, part, t, chart.format) for at, part in columns)
        + "</tr>"
        for t in shown
    )
    thinned = f", every {step} rounds" if step > 1 else ""
    if len({len(curve.rounds) for curve in chart.curves}) > 1:
        thinned += "; empty after the last round of a run"
    return _fold(
        f"{chart.title}: the numbers",
        f"{chart.label}{thinned}",
        f'<th class="n" scope="col">round</th>{head}',
        body,
    )


def by_site(accounting: Accounting, names: Sequence[str]) -> str:
    """A row per site, a column per run."""
    head = '<th scope="col">site</th>' + "".join(_th(costs.name) for costs in accounting.sites)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{digits(_entry(costs.totals, i), 'bound')}</td>" for costs in accounting.sites)
        + "</tr>"
        for i, name in enumerate(names)
    )
    return _fold(f"Totals by site, {accounting.short}: the numbers", accounting.chart.label, head, body)


def network(graph: NetworkMap) -> str:
    """A row per site: its neighbours, and its records if their number is public."""
    near: list[list[int]] = [[] for _ in graph.names]
    for i, j in graph.edges:
        near[i].append(j)
        near[j].append(i)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + (f'<td class="n">{graph.samples[i]}</td>' if len(graph.samples) else "")
        + f'<td class="t">{escape(", ".join(graph.names[j] for j in sorted(near[i])))}</td></tr>'
        for i, name in enumerate(graph.names)
    )
    records = _th("records") if len(graph.samples) else ""
    head = f'<th scope="col">site</th>{records}<th scope="col">neighbours</th>'
    return _fold("Sites and links: the list", "Neighbours of each site", head, body)


def facts(values: Mapping[str, Any]) -> str:
    """Nested settings as a table of two columns; the outer names become headings."""
    parts = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    rows = "".join(_fact(_words(str(key)), value) for key, value in values.items() if key not in parts)
    for key, value in parts.items():
        rows += f'<tr class="part"><th scope="colgroup" colspan="2">{escape(_words(str(key)))}</th></tr>'
        rows += "".join(_fact(path, entry) for path, entry in _flat(value))
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def digits(value: float | None, form: str = "plain") -> str:
    """Six significant digits; an upper bound as it is written everywhere.

    >>> digits(0.369123456), digits(2.96912341, "bound")
    ('0.369123', '2.97')
    """
    if form == "bound" or value is None or not math.isfinite(value):
        return written(value, "bound")
    return f"{value:#.6g}".removesuffix(".")


def _value(at: Mapping[int, int], part: Sequence[float], t: int, form: str) -> str:
    return f"<td>{digits(part[at[t]], form) if t in at else ''}</td>"


def _entry(values: Sequence[float], i: int) -> float | None:
    return values[i] if i < len(values) else None


def _th(label: str) -> str:
    return f'<th class="n" scope="col">{escape(label)}</th>'


def _fold(summary: str, caption: str, head: str, body: str) -> str:
    return (
        f'<details><summary>{escape(summary)}</summary><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(summary)}"><table class="data"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{_words(str(key))}, ")
        else:
            yield before + _words(str(key)), value


def _fact(name: str, value: Any) -> str:
    return f'<tr><th scope="row">{escape(name)}</th><td>{escape(_text(value))}</td></tr>'


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
