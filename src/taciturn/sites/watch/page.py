"""The status page: plain HTML on loopback that reloads itself; what one site knows of the whole network."""

from __future__ import annotations

import html
import time
from collections.abc import Callable

from ...core.formatting import format_cost, format_delta, format_given
from .serving import HTML, JSON, Answer, Pages
from .status import Status, stage_of

MOST = 200  # sites in the table

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ max-width: 44rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; }}
tr {{ border-bottom: 1px solid #8888; }}
progress {{ width: 100%; }}
.held {{ border-left: .3rem solid; padding-left: .8rem; }}
</style></head><body>
<h1>{title}</h1>
{held}<p>{stage}</p><progress aria-label="rounds" max="{rounds}" value="{completed}"></progress>
<p>epsilon {shown} spent in this job, at delta {delta}{against}<br>{account}</p>
<progress aria-label="epsilon" max="{budget}" value="{epsilon}"></progress>
<table><thead><tr><th>site</th><th>heard</th><th>is</th><th>waits for</th></tr></thead>
<tbody>{rows}</tbody></table>{more}
<p>For sites that are not neighbours, this page shows what the neighbours report.</p>
</body></html>
"""


def page(status: Status) -> str:
    """A status as a page of its own."""
    names = _names(status)
    held = status.held_up()
    stage = "finished" if status.finished else f"round {status.completed} of {status.rounds} complete"
    return _PAGE.format(
        title=html.escape(f"{status.site} in {status.job}") + (" (simulated)" if status.simulated else ""),
        stage=stage,
        rounds=status.rounds,
        completed=status.completed,
        epsilon=status.epsilon,
        shown=format_cost(status.epsilon),
        account=html.escape(status.account_line()),
        budget=format_given(status.budget),
        delta=format_delta(status.delta),
        against=html.escape(status.against),
        held=f'<p class="held">{html.escape(held[0].upper() + held[1:])}.</p>\n' if held else "",
        rows="".join(_row(status, name) for name in names[:MOST]),
        more=f"<p>and {len(names) - MOST} more</p>" if len(names) > MOST else "",
    )


def pages(read: Callable[[], Status]) -> Pages:
    """`/` is the page, `/status.json` the facts."""
    return {
        "/": lambda: Answer(200, HTML, page(read())),
        "/status.json": lambda: Answer(200, JSON, read().to_json() + "\n"),
    }


def _names(status: Status) -> list[str]:
    """Those who hold up the run first, then this site, its neighbours, and all others that are known."""
    known = [
        *status.network.blockers,
        status.site,
        *(neighbour.name for neighbour in status.neighbours),
        *(entry.name for entry in status.network.sites),
    ]
    return list(dict.fromkeys(known))


def _row(status: Status, name: str) -> str:
    heard = {neighbour.name: neighbour for neighbour in status.neighbours}.get(name)
    entry = status.network.of(name)
    marks = ["this site"] * (name == status.site)
    marks += ["holds up the run"] * (name in status.network.blockers)
    if heard is not None and heard.silent_since is not None:
        marks.append("silent")
    cells = [
        f"<strong>{html.escape(name)}</strong>" + "".join(f"<br>{mark}" for mark in marks),
        "" if heard is None or not heard.heard else f"round {heard.heard}",
        "" if entry is None else f"{stage_of(entry.round, status.rounds)}<br>{_age(entry.at)}",
        "" if entry is None else html.escape(", ".join(entry.waits_for)),
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _age(at: float) -> str:
    return f"{max(0, round(time.time() - at))} s ago"
