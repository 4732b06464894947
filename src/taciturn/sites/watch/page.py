"""The status page: HTML that reloads itself and shows the network as one site sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ...core.templates import html_templates
from .serving import HTML, JSON, Answer, Pages
from .status import Status, ago, stage_of

if TYPE_CHECKING:
    from jinja2 import Template

MOST = 200  # the most sites that the table lists


def page(status: Status) -> str:
    """The page of a status. It lists sites that hold up the run, this site, its neighbours, and the rest."""
    near = {neighbour.name: neighbour for neighbour in status.neighbours}
    seen = (entry.name for entry in status.network.sites)
    names = list(dict.fromkeys([*status.network.blockers, status.site, *near, *seen]))
    return _page().render(status=status, names=names, near=near, most=MOST)


@cache
def _page() -> Template:
    templates = html_templates(__package__)
    templates.globals |= {"ago": ago, "stage_of": stage_of}
    return templates.get_template("status.html")


def pages(read: Callable[[], Status]) -> Pages:
    """The pages to serve: `/` is the status page, and `/status.json` has the same facts as JSON."""
    return {
        "/": lambda: Answer(200, HTML, page(read())),
        "/status.json": lambda: Answer(200, JSON, read().to_json() + "\n"),
    }
