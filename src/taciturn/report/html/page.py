"""render(data) makes a report as one self-contained HTML page; write(data, path) also writes it to a file.

The effect of a column is the amount that the column adds to the score of an additive model. The page shows
each effect in a small panel, drawn as SVG without a script.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.files import write_whole
from ...core.notebook import EffectPanel
from ...core.templates import html_templates
from ...core.versions import VERSION
from ...privacy.certificate.summary import epsilon_scale
from ..data import Accounting, ReportData
from . import number_tables as tables
from .numbers import embed, exact, written

if TYPE_CHECKING:
    from jinja2 import Template

_SCRIPTS = ("scale.js", "frame.js", "chart.js", "network.js", "page.js")


def render(data: ReportData) -> str:
    """The report as one self-contained HTML page.

    The page loads nothing and sends nothing: its content security policy allows only its own style and
    script.
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
    """Write the page atomically: a reader sees either the old or the new file, never a part of it."""
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
    """The names of the network's sites. If a run has more sites, the names of the others are numbers."""
    known = data.network.names if data.network is not None else ()
    most = max((len(costs.totals) for costs in accounting.sites), default=0)
    return [*known, *(f"site {i}" for i in range(len(known), most))]


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _fingerprint(text: str) -> str:
    """The hash with which a content security policy identifies a script."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _pointer(name: str, k: int) -> str:
    """The JSON pointer (RFC 6901) of the k-th key number of a run."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/key_numbers/{escaped}/{k}"


_WIDE, _HIGH = 200, 96
INKS = ("#2f7d77", "#c2410c", "#5b6abf", "#d9a441", "#7a3e9d")


class DrawnPanel(NamedTuple):
    """The panel of one column: a line for each output, or points if x is a category (`dots`)."""

    title: str
    lines: list[tuple[str, list[tuple[float, float]]]]
    dots: bool
    zero: float
    ends: str
    wide: int = _WIDE
    high: int = _HIGH


def draw(panels: Sequence[EffectPanel]) -> tuple[list[DrawnPanel], float, float]:
    """(panels, low, high): the drawn panels, and the ends of the scale that they share."""
    shown = [panel.shortened() for panel in panels]
    low = min((0.0, *(float(panel.y.min()) for panel in shown)))
    high = max((0.0, *(float(panel.y.max()) for panel in shown)))
    return [_draw(panel, low, max(high - low, 1e-9)) for panel in shown], low, high


def _draw(panel: EffectPanel, low: float, span: float) -> DrawnPanel:
    def down(value: float) -> float:
        return 4 + (_HIGH - 8) * (1 - (value - low) / span)

    across = [4 + (_WIDE - 8) * k / max(len(panel.x) - 1, 1) for k in range(len(panel.x))]
    lines = [
        (INKS[k % len(INKS)], list(zip(across, map(down, column.tolist()), strict=True)))
        for k, column in enumerate(panel.y.T)
    ]
    ends = ", ".join(map(str, panel.x)) if panel.words else f"{_short(panel.x[0])} to {_short(panel.x[-1])}"
    return DrawnPanel(panel.title, lines, bool(panel.words), down(0.0), ends)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
