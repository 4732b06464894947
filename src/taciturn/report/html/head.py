"""The first screen as HTML: marks, key numbers, contents."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ...privacy.certificate.summary import epsilon_scale
from ..data import KeyNumber, Mark, ReportData
from .numbers import written


def number(value: float | None, form: str, path: str) -> str:
    """A number that an auditor can trace: <data value=... data-path=...>."""
    full = "" if value is None else repr(float(value))
    return f'<data value="{full}" data-path="{escape(path)}">{escape(written(value, form))}</data>'


def headline(text: str) -> str:
    """The result, a paragraph for each sentence."""
    said = escape(text).replace(" = ", "&nbsp;=&nbsp;")
    return "".join(f"<p>{part}</p>" for part in said.split("\n\n"))


def scale(epsilon: float | None) -> str:
    """The epsilon of a run on a scale, with what a guess can be worth at each mark."""
    if epsilon is None:
        return ""
    return (
        f'<figure class="scale">{epsilon_scale(epsilon)}<figcaption>Smaller is safer. Below each epsilon: '
        "how often a guess between two candidates can be right. A coin is right 50% of the time."
        "</figcaption></figure>"
    )


def marks(entries: Sequence[Mark]) -> str:
    """What weakens or qualifies the claim, a line each."""
    if not entries:
        return ""
    lines = "".join(
        f'<li><span class="mark{" warn" if mark.warn else ""}">{escape(mark.label)}</span>'
        f"<span>{escape(mark.meaning)}</span></li>"
        for mark in entries
    )
    return f'<ul class="marks" aria-label="What to know first">{lines}</ul>'


def key_numbers(data: ReportData) -> str:
    """Cards for one run, a table for several."""
    if not data.key_numbers:
        return ""
    if len(data.key_numbers) == 1:
        name, entries = next(iter(data.key_numbers.items()))
        return _cards(name, entries)
    return _comparison(data)


def _cards(name: str, entries: Sequence[KeyNumber]) -> str:
    cards = ""
    for k, entry in enumerate(entries):
        path = _path(name, k)
        cards += (
            f'<div><dt>{escape(entry.label)}</dt><dd><span class="value">'
            f"{number(entry.value, entry.format, path + '/value')}</span>{_aside(entry, path)}</dd></div>"
        )
    return f'<dl class="cards">{cards}</dl>'


def _path(name: str, k: int) -> str:
    """A JSON pointer (RFC 6901)."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/key_numbers/{escaped}/{k}"


def _aside(entry: KeyNumber, path: str) -> str:
    parts = []
    shown = [written(end, entry.format) for end in (entry.low, entry.high)]
    if entry.low is not None and entry.high is not None and shown[0] != shown[1]:
        low = number(entry.low, entry.format, path + "/low")
        parts.append(f"{low} to {number(entry.high, entry.format, path + '/high')}")
    if entry.note:
        parts.append(escape(entry.note))
    return f'<span class="aside">{"; ".join(parts)}</span>' if parts else ""


def _comparison(data: ReportData) -> str:
    labels = list(dict.fromkeys(entry.label for row in data.key_numbers.values() for entry in row))
    head = "".join(f'<th class="n" scope="col">{escape(label)}</th>' for label in labels)
    body = ""
    for name, row in data.key_numbers.items():
        cells = {entry.label: _cell(entry, _path(name, k)) for k, entry in enumerate(row)}
        body += f'<tr><th scope="row"><span data-swatch="{escape(name)}"></span>{escape(name)}</th>'
        body += "".join(
            f'<td class="n" data-label="{escape(label)}"><span>{cells.get(label, "not stated")}</span></td>'
            for label in labels
        )
        body += "</tr>"
    return (
        f'<table class="compare"><thead><tr><th scope="col">Run</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _cell(entry: KeyNumber, path: str) -> str:
    return number(entry.value, entry.format, path + "/value") + _aside(entry, path)


def contents(sections: Sequence[tuple[str, str]]) -> str:
    """Links to the sections that are there."""
    links = "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title in sections)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
