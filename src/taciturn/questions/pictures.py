"""Pictures of answers: bars and curves with their intervals. matplotlib is loaded when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.notebook import Picture, new_figure
from ..core.types import Array
from .estimates import Estimate

_INKS = ("#2f7d77", "#b5542a", "#4a5fa5", "#8a6d1d", "#7a3b73", "#3d3d3d")
_ACROSS = 4


@dataclass(frozen=True, eq=False)
class Bars:
    """The shares of one column, for all or for each group; `edges` where they are cells of a range."""

    title: str
    groups: Mapping[str, Sequence[Estimate]]
    names: Sequence[str]
    edges: Array | None = None


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with its band."""

    name: str
    x: Sequence[float]
    y: Sequence[Estimate]


def draw_histograms(charts: Sequence[Bars], title: str) -> Picture:
    """One small chart for each column; a thin line on each bar is its interval."""
    across = min(_ACROSS, len(charts))
    down = -(-len(charts) // across)
    width, height = 3.2 * across, 2.5 * down + 0.4
    figure = new_figure(width, height)
    figure.set_layout_engine(None)  # to fit many charts exactly would take longer than the whole question
    figure.subplots_adjust(0.65 / width, 0.4 / height, 1 - 0.1 / width, 1 - 0.75 / height, 0.32, 0.42)
    places = figure.subplots(down, across, squeeze=False).ravel()
    for axes, chart in zip(places, charts, strict=False):
        for k, (name, shares) in enumerate(chart.groups.items()):
            ink = _INKS[k % len(_INKS)]
            whiskers = [[e.value - e.low for e in shares], [e.high - e.value for e in shares]]
            values, slots = [e.value for e in shares], len(chart.groups)
            if chart.edges is None:
                at = [j + (k - (slots - 1) / 2) * 0.8 / slots for j in range(len(shares))]
                axes.bar(at, values, width=0.8 / slots, color=ink, alpha=0.75, label=name)
            else:
                at = [float(a + b) / 2 for a, b in zip(chart.edges, chart.edges[1:], strict=False)]
                axes.stairs(values, chart.edges, color=ink, fill=slots == 1, alpha=0.75, label=name)
            axes.errorbar(at, values, yerr=whiskers, fmt="none", ecolor=ink, elinewidth=0.8)
        if chart.edges is None:
            axes.set_xticks(range(len(chart.names)), chart.names, fontsize=8)
        axes.set_title(chart.title, fontsize=10)
        axes.set_ylabel("share", fontsize=8.5)
        axes.set_ylim(0, axes.get_ylim()[1] * (1.25 if len(chart.groups) > 1 else 1.0))
        if len(chart.groups) > 1:
            axes.legend(fontsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in places[len(charts) :]:
        axes.set_visible(False)
    figure.suptitle(title, fontsize=11)
    return figure


def draw_lines(
    lines: Sequence[Line], x: str, y: str, title: str, *, diagonal: bool = False, steps: bool = False
) -> Picture:
    """Curves in one chart, each with its band; `diagonal` for a curve that should lie on it."""
    figure = new_figure(5.2, 3.8)
    axes = figure.subplots()
    if diagonal:
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, linestyle="--")
    for k, line in enumerate(lines):
        ink = _INKS[k % len(_INKS)]
        style = "steps-post" if steps else "default"
        axes.plot(
            line.x,
            [e.value for e in line.y],
            color=ink,
            drawstyle=style,
            marker=None if steps else "o",
            markersize=3,
            label=line.name,
        )
        axes.fill_between(
            line.x,
            [e.low for e in line.y],
            [e.high for e in line.y],
            color=ink,
            alpha=0.18,
            linewidth=0,
            step="post" if steps else None,
        )
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=11)
    if len(lines) > 1:
        axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
