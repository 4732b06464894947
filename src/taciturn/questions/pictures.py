"""Charts of private estimates: histograms and curves, with the confidence interval of each value.

Histograms are written directly as SVG, because matplotlib would need more time to draw fifty charts than it
takes to compute the estimates. Curves are drawn by matplotlib, which is loaded only for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..core.notebook import Drawing, Picture, new_figure
from ..core.types import Array
from .estimates import Estimate

_INKS = ("#2f7d77", "#b5542a", "#4a5fa5", "#8a6d1d", "#7a3b73", "#3d3d3d")
_MARKED = 40  # a curve with more points than this is drawn without markers
_DASHES = ("-", "--", ":")  # further curves use the same colours with the next line style
_ACROSS, _WIDE, _HIGH = 4, 280, 220  # a picture has up to 4 charts in a row, each 280 by 220 pixels


@dataclass(frozen=True, eq=False)
class Bars:
    """One chart: the share of the records or persons in each category or bin of a column.

    groups : for each group, the share in each category or bin, in the order of `names`.
    names : the categories; for a number or a date, the bins of its range.
    edges, ends : for a number or a date, the edges of the bins, and the texts at the two ends of the axis.
        Categories have no edges and no texts at the ends.
    """

    title: str
    groups: Mapping[str, Sequence[Estimate]]
    names: Sequence[str]
    edges: Array | None = None
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with its confidence band."""

    name: str
    x: Sequence[float]
    y: Sequence[Estimate]


def draw_histograms(charts: Sequence[Bars], title: str) -> Drawing:
    """One small chart for each column, as SVG; a thin line on each bar shows its interval."""
    across = max(1, min(_ACROSS, len(charts)))
    width, height = across * _WIDE + 20, -(-len(charts) // across) * _HIGH + 40
    parts = [
        f'<g transform="translate({k % across * _WIDE + 60} {k // across * _HIGH + 70})">{_chart(one)}</g>'
        for k, one in enumerate(charts)
    ]
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-size="11" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" role="img" aria-label="{escape(title)}">'
        f'<rect width="100%" height="100%" fill="white"/>{_word(width / 2, 24, title, size=14)}'
        f"{''.join(parts)}</svg>\n"
    )


def _chart(chart: Bars) -> str:
    """Axes, bars and intervals of one column. Bins of several groups are drawn as outlines."""
    many, wide, high = len(chart.groups), _WIDE - 70, _HIGH - 70
    top = max((e.high for shares in chart.groups.values() for e in shares), default=0.0) or 1.0
    ends = list(range(len(chart.names) + 1)) if chart.edges is None else [float(x) for x in chart.edges]
    at = [wide * (x - ends[0]) / (ends[-1] - ends[0]) for x in ends]
    parts = [_word(wide / 2, -8 if many == 1 else -24, chart.title, size=12)]
    for k, (name, shares) in enumerate(chart.groups.items()):
        ink, filled = _INKS[k % len(_INKS)], many == 1 or chart.edges is None
        bars, whiskers = [f"M0 {high}"], []
        for left, right, share in zip(at, at[1:], shares, strict=False):
            if chart.edges is None:
                slot = 0.8 * (right - left) / many
                left += 0.1 * (right - left) + k * slot
                right = left + slot
            y, low, up = (high * (1 - max(v, 0.0) / top) for v in (share.value, share.low, share.high))
            bars.append(f"H{left:.1f}V{y:.1f}H{right:.1f}" + f"V{high}" * filled)
            whiskers.append(f"M{(left + right) / 2:.1f} {low:.1f}V{up:.1f}")
        parts.append(
            f'<path d="{"".join(bars)}V{high}" fill="{ink if filled else "none"}" fill-opacity=".75" '
            f'stroke="{ink}"/><path d="{"".join(whiskers)}" stroke="{ink}"/>'
        )
        if many > 1:
            parts.append(_word(wide * (k + 0.5) / many, -8, name, ink=ink, room=wide / many))
    parts.append(f'<path d="M0 0V{high}H{wide}" fill="none" stroke="#444"/>')
    parts += [_word(-4, high * (1 - part) + 4, f"{part * top:.1%}", side="end") for part in (0.0, 0.5, 1.0)]
    if chart.edges is None:
        room = wide / max(len(chart.names), 1)
        parts += [_word((k + 0.5) * room, high + 16, one, room=room) for k, one in enumerate(chart.names)]
    else:
        parts += [_word(0, high + 16, chart.ends[0]), _word(wide, high + 16, chart.ends[1])]
    return "".join(parts)


def _word(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 11,
    ink: str = "#222",
    side: str = "middle",
    room: float = 999,
) -> str:
    """A text as SVG, shortened to fit into `room` pixels."""
    most = max(int(room / 6), 2)
    shown = escape(text if len(text) <= most else text[: most - 1] + "…")
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{side}"'
    return f'<text {place} font-size="{size}" fill="{ink}">{shown}</text>'


def draw_lines(
    lines: Sequence[Line], x: str, y: str, title: str, *, diagonal: bool = False, steps: bool = False
) -> Picture:
    """Several curves in one chart, each with its confidence band.

    diagonal : also draw the diagonal, on which an ideal calibration curve lies.
    steps : draw steps instead of straight lines.
    The values are shares. If a band goes below 0.5, the vertical axis starts at 0.
    """
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
            linestyle=_DASHES[k // len(_INKS) % len(_DASHES)],
            marker=None if steps or len(line.x) > _MARKED else "o",
            markersize=3,
            label=line.name,
        )
        axes.fill_between(
            line.x,
            [e.low for e in line.y],
            [e.high for e in line.y],
            color=ink,
            alpha=min(0.18, 0.5 / len(lines)),
            linewidth=0,
            step="post" if steps else None,
        )
    if min((e.low for line in lines for e in line.y), default=1.0) < 0.5:
        axes.set_ylim(bottom=0.0)
    axes.margins(x=0.01)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=11)
    if len(lines) > 1 or steps:
        axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
