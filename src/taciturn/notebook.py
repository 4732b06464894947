"""What a notebook shows of a result: curves as a picture, facts as a small table.

matplotlib is loaded when a picture is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from .types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Picture: TypeAlias = Figure
else:
    Picture = Any

_INK, _BAND = "#2f7d77", "#2f7d7733"


@dataclass(frozen=True)
class Panel:
    """One small chart over the rounds: the mean of several curves, and their range as a band.

    curves : (repeats, rounds), or (rounds,).
    """

    title: str
    label: str
    curves: Array


def draw_panels(panels: Sequence[Panel], title: str = "") -> Picture:
    """The panels side by side; every chart has its axes labelled, and one round is drawn as a point."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(3.4 * len(panels), 2.7), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        curves = panel.curves if panel.curves.ndim == 2 else panel.curves[None]
        rounds = range(1, curves.shape[1] + 1)
        axes.plot(rounds, curves.mean(axis=0), color=_INK, marker="o" if len(rounds) == 1 else None)
        if len(curves) > 1:
            axes.fill_between(rounds, curves.min(axis=0), curves.max(axis=0), color=_BAND, linewidth=0)
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel("round")
        axes.set_ylabel(panel.label, fontsize=8.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(color="#e4e4e4", linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def facts_table(title: str, facts: Mapping[str, str], note: str = "") -> str:
    """A title, one row per fact and a note in paragraphs, as HTML in the notebook's own colours."""
    cell = "padding:.15em .8em;text-align:left;vertical-align:top"
    rows = "".join(
        f'<tr><th scope="row" style="{cell};font-weight:600;white-space:nowrap">{escape(name)}</th>'
        f'<td style="{cell};overflow-wrap:anywhere">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    parts = [part for part in note.split("\n\n") if part]
    said = "".join(f'<p style="max-width:60em;margin:.4em 0">{escape(part)}</p>' for part in parts)
    head = f'<p style="font-weight:600;margin:.4em 0">{escape(title)}</p>'
    return f"<div>{head}<table>{rows}</table>{said}</div>"
