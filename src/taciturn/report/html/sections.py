"""The sections of the page as HTML; `page.js` draws into the empty plots."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..data import Accounting, Chart, ReportData, Statement
from . import number_tables as tables
from .effects import effects

Section = tuple[str, str, str, str]
"""Its anchor, its name in the contents, its heading, its HTML."""

NOT_PRIVATE = (
    "Not private: computed from the sites' own records, and no guarantee covers it. "
    "Do not publish it where the records belong to real people."
)


def sections(data: ReportData) -> list[Section]:
    """The sections that have content, in reading order."""
    found = [
        ("claim", "Claim", "What may be claimed", _claim(data)),
        ("results", "Results", "What was learned", _results(data)),
        ("effects", "Columns", "What each column adds", _effects(data)),
        ("privacy", "Privacy", "What it cost in privacy", _privacy(data)),
        ("network", "Network", "The network", _network(data)),
        ("duties", "Responsibilities", "Who is responsible for what", _duties(data)),
        ("certificate", "Certificate", _heading(data), _statements(data)),
        ("settings", "Settings", "Settings", _facts(data.settings)),
        ("provenance", "Provenance", "Where the numbers come from", _facts(data.provenance)),
    ]
    return [section for section in found if section[3]]


def _effects(data: ReportData) -> str:
    return effects(data.effects, data.effects_label, data.outputs)


def _heading(data: ReportData) -> str:
    return "Conditions and theorems" if len(data.statements) == 1 else "What may be claimed"


def _claim(data: ReportData) -> str:
    """For one run: the statement, then the usual questions. For several: each claim with its grounds."""
    if len(data.statements) != 1:
        return ""
    table = tables.facts({name.capitalize(): answer for name, answer in data.brief.items()})
    asked = f'<div class="brief">{table}</div>' if data.brief else ""
    words = _words(data.statements[0])
    return (
        f'{asked}<div class="claim"><details class="words"><summary>The full statement</summary>{words}'
        "</details></div>"
    )


def _words(statement: Statement) -> str:
    return "".join(f'<p class="words">{escape(part)}</p>' for part in statement.text.split("\n\n"))


_DUTIES = (
    "Who decided that these records may be used for this purpose, and on which legal basis?",
    "Who chose epsilon and delta, and who agreed to them?",
    "From which public source do the ranges and categories of the columns come?",
    "Who keeps the account of what has been spent on these records, and who may read it?",
    "Who may read the records where they are kept?",
    "Who operates each site, and whom do the others call if it stops?",
    "Who answers a person who asks what was done with their records?",
    "How long are the model and the certificate kept, and who deletes them?",
)


def _duties(data: ReportData) -> str:
    """Questions that no certificate can answer, with room for the answers."""
    if len(data.statements) != 1:
        return ""
    rows = "".join(f'<tr><th scope="row">{escape(question)}</th><td></td></tr>' for question in _DUTIES)
    return (
        '<p class="lead">No certificate can answer these questions. Print this page and fill them in.</p>'
        f'<table class="facts duties"><tbody>{rows}</tbody></table>'
    )


def _illustration(data: ReportData) -> str:
    picture = data.illustration
    if picture is None:
        return ""
    source = b64encode(picture.png).decode("ascii")
    return (
        f'<figure><img class="picture" alt="{escape(picture.description)}" '
        f'src="data:image/png;base64,{source}"></figure>'
    )


def _results(data: ReportData) -> str:
    if not data.charts:
        return _illustration(data)
    paired = len(data.names) == 1 and len(data.charts) > 1
    alone = len(data.charts) % 2  # of an odd number the first is drawn across both columns
    figures = "".join(
        _figure(f"charts.{k}", chart, "half" if paired and k >= alone else "full")
        for k, chart in enumerate(data.charts)
    )
    open_to = [chart.title for chart in data.charts if not chart.private]
    warning = ""
    if open_to:
        names = escape(", ".join(title.lower() for title in open_to))
        warning = f'<p class="note warn"><strong>{names[:1].upper()}{names[1:]}.</strong> {NOT_PRIVATE}</p>'
    return f'{_illustration(data)}{warning}<div class="grid{" two" if paired else ""}">{figures}</div>'


def _figure(place: str, chart: Chart, size: str, site_choice: str = "") -> str:
    if all(len(curve.rounds) <= 1 for curve in chart.curves):
        return _single(chart)
    note = f'<p class="remark">{escape(chart.note)}</p>' if chart.note else ""
    return (
        f'<figure data-chart="{place}"><figcaption><div class="head"><h3>{escape(chart.title)}</h3>'
        f'<div class="controls"><span class="tools"></span>{site_choice}</div></div></figcaption>'
        f"{_plot(size, f'{chart.title}. Arrow keys move from round to round; a table follows.')}"
        f'<div class="legend"></div>{note}{tables.by_round(chart)}</figure>'
    )


def _single(chart: Chart) -> str:
    """One round is a number, not a chart."""
    found = [
        f"<li>{escape(curve.name)}: <strong>{tables.digits(curve.mean[0], chart.format)}</strong> "
        f"after round {curve.rounds[0]}</li>"
        for curve in chart.curves
        if len(curve.rounds)
    ]
    note = f'<p class="remark">{escape(chart.note)}</p>' if chart.note else ""
    return (
        f'<figure class="single"><figcaption><h3>{escape(chart.title)}</h3></figcaption>'
        f'<p class="remark">{escape(chart.label)}</p><ul>{"".join(found)}</ul>{note}</figure>'
    )


def _plot(size: str, label: str) -> str:
    return (
        f'<div class="plot {size}" data-size="{size}" role="slider" tabindex="0" aria-valuenow="0" '
        f'aria-label="{escape(label)}"></div>'
    )


def _privacy(data: ReportData) -> str:
    if not data.accountings:
        return ""
    choice = "".join(
        f'<label class="choice"><input type="radio" name="accounting" value="{escape(entry.key)}"'
        f"{' checked' if k == 0 else ''}><span>{escape(entry.short)}</span></label>"
        for k, entry in enumerate(data.accountings)
    )
    control = f'<div class="controls"><fieldset><legend>Count by</legend>{choice}</fieldset></div>'
    panels = "".join(_panel(data, k, entry) for k, entry in enumerate(data.accountings))
    several = len(data.accountings) > 1
    lead = "The same releases, counted in different ways. " * several
    lead += f"{'Every' if several else 'The'} count is an upper bound, for the site that spent most."
    return f'<p class="lead">{lead}</p>{control if several else ""}{panels}'


def _panel(data: ReportData, k: int, accounting: Accounting) -> str:
    hidden = " hidden" if k else ""
    names = _site_names(data, accounting)
    unbounded = ""
    if accounting.unbounded:
        runs = "; ".join(accounting.unbounded)
        unbounded = f'<p class="note warn">No finite bound, so not drawn: {escape(runs)}.</p>'
    figures = ""
    if accounting.chart.curves:
        known = any(len(costs.by_round) for costs in accounting.sites)
        figures += _figure(f"accountings.{k}", accounting.chart, "full", _select(names) if known else "")
    if any(costs.name not in accounting.unbounded for costs in accounting.sites):
        figures += _by_site(k, accounting, names)
    return (
        f'<div class="printed" data-accounting="{escape(accounting.key)}"{hidden}>'
        f'<p class="panel-head"><strong>{escape(accounting.short)}.</strong> '
        f"{escape(accounting.meaning)}</p>{unbounded}{figures}</div>"
    )


def _by_site(k: int, accounting: Accounting, names: Sequence[str]) -> str:
    """A bar for each site; where one site is all that is known, its total is among the numbers above."""
    known = [total for costs in accounting.sites for total in costs.totals if not math.isnan(total)]
    if len(known) < 2:
        return ""
    label = f"Total of each site, {accounting.short}. Arrow keys move from site to site."
    return (
        f'<figure data-chart="sites.{k}"><figcaption><h3>Total by site</h3></figcaption>'
        f'{_plot("full", label)}<div class="legend"></div>'
        f"{tables.by_site(accounting, names)}</figure>"
    )


def _site_names(data: ReportData, accounting: Accounting) -> Sequence[str]:
    """The network's names, and numbers for sites beyond them: runs may differ in size."""
    known = data.network.names if data.network is not None else ()
    most = max((len(costs.totals) for costs in accounting.sites), default=0)
    return [*known, *(f"site {i}" for i in range(len(known), most))]


def _select(names: Sequence[str]) -> str:
    options = "".join(f'<option value="{i}">{escape(name)}</option>' for i, name in enumerate(names))
    return (
        '<label class="switch">site <select class="site-choice"><option value="">the worst</option>'
        f"{options}</select></label>"
    )


def _network(data: ReportData) -> str:
    graph = data.network
    if graph is None:
        return ""
    sites, links = len(graph.names), len(graph.edges)
    kind = "" if graph.kind == "custom" else f", {graph.kind.replace('_', ' ')}"
    words = f"{sites} sites and {links} {'link' if links == 1 else 'links'}{kind}."
    return (
        f'<p class="lead">{escape(words)} Sites talk only along links; there is no server.</p>'
        '<figure data-chart="network.0"><figcaption class="controls">'
        f"{_select(graph.names)}</figcaption>"
        f'<div class="plot full still" data-size="full" role="img" aria-label="{escape(words)} '
        'The list below names every link."></div><div class="about" aria-live="polite"></div>'
        f"{tables.network(graph)}</figure>"
    )


def _statements(data: ReportData) -> str:
    alone = len(data.statements) == 1
    return "".join(_statement(statement, alone) for statement in data.statements)


def _statement(statement: Statement, alone: bool) -> str:
    """The words, then the lists (open where there is only one statement), then the numbers."""
    heading = "" if alone else f"<h3>{escape(statement.name)}</h3>"
    lists = ""
    for title, entries in (("It holds if", statement.conditions), ("It is based on", statement.basis)):
        if entries:
            items = "".join(f"<li>{escape(entry)}</li>" for entry in entries)
            lists += (
                f"<details{' open' if alone else ''}><summary>{title}</summary><ul>{items}</ul></details>"
            )
    numbers = ""
    if statement.numbers:
        numbers = (
            f"<details><summary>{escape(statement.name)}: the certificate's numbers</summary>"
            f'<div class="scroll">{tables.facts(statement.numbers)}</div></details>'
        )
    words = "" if alone else _words(statement)
    return f'<div class="claim">{heading}{words}{lists}{numbers}</div>' if words or lists or numbers else ""


def _facts(values: Mapping[str, Any]) -> str:
    return tables.facts(values) if values else ""
