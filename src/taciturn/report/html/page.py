"""render(data): a report as one self-contained HTML page; write(data, path): write it atomically."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.files import write_whole
from ...core.templates import html_templates
from ...core.versions import VERSION
from ...privacy.certificate.summary import epsilon_scale
from ..data import Accounting, ReportData
from . import number_tables as tables
from .effects import INKS, draw
from .encode import embed
from .numbers import exact, written

if TYPE_CHECKING:
    from jinja2 import Template

_SCRIPTS = ("scale.js", "frame.js", "chart.js", "network.js", "page.js")


def render(data: ReportData) -> str:
    """The report as one self-contained HTML page.

    It loads nothing and sends nothing: its content security policy admits only its own style and script.
    """
    panels, low, high = draw(data.effects)
    picture = b"" if data.illustration is None else data.illustration.png
    page = _page().render(
        data=data,
        brief={name.capitalize(): answer for name, answer in data.brief.items()},
        labels=dict.fromkeys(entry.label for row in data.key_numbers.values() for entry in row),
        scale="" if data.scale is None else epsilon_scale(data.scale),
        picture=b64encode(picture).decode("ascii"),
        panels=panels,
        low=low,
        high=high,
        site_names=lambda accounting: _site_names(data, accounting),
        json=embed(data),
        style=_asset("page.css"),
        script='(function () {\n"use strict";\n' + "\n".join(map(_asset, _SCRIPTS)) + "\n})();\n",
    )
    return page.lstrip()


def write(data: ReportData, path: str | os.PathLike[str]) -> Path:
    """Write the page; a reader sees the old file or the whole new one. Folders are made as needed."""
    return write_whole(Path(path), render(data))


@cache
def _page() -> Template:
    templates = html_templates(__package__)
    templates.filters |= {
        "digits": tables.digits,
        "exact": exact,
        "fingerprint": _fingerprint,
        "pointer": _pointer,
        "written": written,
    }
    templates.globals |= {"flat_facts": tables.flat_facts, "inks": INKS, "tables": tables, "version": VERSION}
    return templates.get_template("page.html")


def _site_names(data: ReportData, accounting: Accounting) -> list[str]:
    """The network's names, and numbers for sites beyond them: runs may differ in size."""
    known = data.network.names if data.network is not None else ()
    most = max((len(costs.totals) for costs in accounting.sites), default=0)
    return [*known, *(f"site {i}" for i in range(len(known), most))]


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _fingerprint(text: str) -> str:
    """The form in which a content security policy names a script."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _pointer(name: str, k: int) -> str:
    """The JSON pointer (RFC 6901) of the k-th key number of a run."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/key_numbers/{escaped}/{k}"
