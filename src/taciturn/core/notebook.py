"""The display of a result in a notebook: curves as a picture, facts as a table, long texts folded away.

matplotlib is imported only when a picture is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import ParameterError
from .files import write_whole
from .types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Picture: TypeAlias = Figure
else:
    Picture = Any

_INK, _BAND = "#2f7d77", "#2f7d7733"


@dataclass(frozen=True, repr=False)
class Drawing:
    """An SVG picture. A notebook can show it without a plotting library."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def savefig(self, path: str | Path) -> None:
        """Write the picture to an .svg file, as `Figure.savefig` of matplotlib does."""
        if Path(path).suffix != ".svg":
            raise ParameterError(f"`path` must end in .svg: this picture is SVG; got {str(path)!r}.")
        write_whole(Path(path), self.svg)


@dataclass(frozen=True)
class Panel:
    """One small chart over the rounds: the mean of several curves, and a band from their minimum to maximum.

    curves : an array of shape (repeats, rounds) or (rounds,).
    """

    title: str
    label: str
    curves: Array


def new_figure(width: float, height: float) -> Picture:
    """An empty figure; its size is in inches. A notebook shows it as a picture without `%matplotlib`."""
    return _figure_class()(figsize=(width, height), layout="constrained")


@cache
def _figure_class() -> type[Picture]:
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            """The picture with twice the pixels that it takes up in a notebook, for sharp text."""
            file = BytesIO()
            self.savefig(file, format="png", dpi=192)
            width, height = self.get_size_inches()
            return file.getvalue(), {"width": round(96 * width), "height": round(96 * height)}

    return NotebookFigure


def draw_panels(panels: Sequence[Panel], title: str = "") -> Picture:
    """The panels side by side, with labelled axes. A single round is drawn as a point."""
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(3.4 * len(panels), 2.7)
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


def facts_table(
    title: str,
    facts: Mapping[str, str],
    note: str = "",
    *,
    folded: str = "",
    pictures: Mapping[str, str] | None = None,
) -> str:
    """HTML in the notebook's colours: a title, one row per fact, a note, and a long text that is folded away.

    `pictures` maps names of facts to SVG pictures, which are not escaped; all other text is escaped.
    """
    drawn = dict(pictures or {})
    cell = "padding:.15em .8em;text-align:left;vertical-align:top"
    rows = "".join(
        f'<tr><th scope="row" style="{cell};font-weight:600;white-space:nowrap">{escape(name)}</th>'
        f'<td style="{cell};overflow-wrap:anywhere">{drawn.get(name, "")}{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    head = f'<p style="font-weight:600;margin:.4em 0">{escape(title)}</p>'
    more = f"<details><summary>The full statement</summary>{_paragraphs(folded)}</details>" if folded else ""
    return f"<div>{head}<table>{rows}</table>{_paragraphs(note)}{more}</div>"


def draw_bars(heights: Sequence[float], odd: Sequence[int] = (), *, label: str) -> str:
    """A small bar chart as SVG; the bars with the indices in `odd` are red."""
    known = [max(height, 0.0) if math.isfinite(height) else 0.0 for height in heights]
    tallest = max(max(known, default=0.0), 1e-300)
    shares = [height / tallest for height in known]
    drawn = "".join(
        f'<rect x="{9 * k}" y="{28 * (1 - share):.1f}" width="8" height="{28 * share:.1f}" '
        f'fill="{"#c2410c" if k in odd else _INK}"/>'
        for k, share in enumerate(shares)
    )
    width = max(9 * len(shares), 1)
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width}" height="30" viewBox="0 0 {width} 30">'
        f'{drawn}<path d="M0 29H{width}" stroke="#888"/></svg> '
    )


def draw_scale(value: float, ticks: Mapping[float, str], *, label: str) -> str:
    """A number on a logarithmic scale from 0.03 to 30, as SVG. The labels have the notebook's text colour."""

    def place(x: float) -> float:
        return 20 + 320 * math.log10(min(max(x, 0.03), 30.0) / 0.03) / 3

    text = 'font-size="10" fill="currentColor" text-anchor="middle"'
    drawn = "".join(
        f'<path d="M{place(x):.1f} 40v8" stroke="currentColor"/><text x="{place(x):.1f}" y="60" {text}>{x:g}'
        f'</text><text x="{place(x):.1f}" y="73" {text} opacity=".75">{escape(words)}</text>'
        for x, words in ticks.items()
    )
    at = place(value)
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 360 80" width="360">'
        '<defs><linearGradient id="cost"><stop offset="0" stop-color="#2f7d77"/><stop offset=".6" '
        'stop-color="#d9a441"/><stop offset="1" stop-color="#c2410c"/></linearGradient></defs>'
        '<rect x="20" y="36" width="320" height="6" rx="3" fill="url(#cost)"/>'
        f'{drawn}<path d="M{at:.1f} 34l-6 -11h12z" fill="currentColor"/>'
        f'<text x="{min(max(at, 60.0), 300.0):.1f}" y="16" {text} font-weight="600">{escape(label)}</text>'
        "</svg>"
    )


def _paragraphs(text: str) -> str:
    parts = [part for part in text.split("\n\n") if part]
    return "".join(f'<p style="max-width:60em;margin:.4em 0">{escape(part)}</p>' for part in parts)


_MOST_WORDS = 12  # the most categories in one panel
_INKS = (_INK, "#c2410c", "#5b6abf", "#d9a441", "#7a3e9d")


@dataclass(frozen=True)
class EffectPanel:
    """One small chart: the effect of a column on the scores of a model.

    x : the numbers, days or categories at which the effect is shown.
    y : the effect on each score, an array of shape (points, outputs).
    """

    title: str
    x: Sequence[Any]
    y: Array

    @property
    def words(self) -> bool:
        """Whether x contains categories, not numbers or days."""
        return isinstance(self.x[0], str)

    def shortened(self) -> EffectPanel:
        """The panel with at most _MOST_WORDS categories: those with the largest effects, ordered as in x."""
        if not self.words or len(self.x) <= _MOST_WORDS:
            return self
        kept = sorted(abs(self.y).max(axis=1).argsort()[-_MOST_WORDS:].tolist())
        title = f"{self.title} ({_MOST_WORDS} of {len(self.x)})"
        return EffectPanel(title, [self.x[k] for k in kept], self.y[kept])


def draw_effects(
    panels: Sequence[EffectPanel], label: str, outputs: Sequence[str] = (), title: str = ""
) -> Picture:
    """Small panels with one common y axis, four in a row: lines for numbers and days, dots for categories."""
    columns = min(len(panels), 4)
    rows = -(-len(panels) // columns)
    figure = new_figure(2.7 * columns + 0.4, 2.3 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axes, whole in zip(grid, panels, strict=False):
        panel = whole.shortened()
        places = range(len(panel.x)) if panel.words else panel.x
        style = {"marker": "o", "linestyle": "none", "markersize": 4.0} if panel.words else {"linewidth": 1.6}
        for k in range(panel.y.shape[1]):
            name, ink = outputs[k] if outputs else None, _INKS[k % len(_INKS)]
            axes.plot(places, panel.y[:, k], color=ink, label=name, **style)
        axes.axhline(0.0, color="#888", linewidth=0.6)
        _label_ticks(axes, panel)
        axes.set_title(panel.title, fontsize=9.5)
        axes.grid(color="#e4e4e4", linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    figure.supylabel(label, fontsize=9)
    if outputs:
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8.5)
    if title:
        figure.suptitle(title, fontsize=10.5)
    return figure


def _label_ticks(axes: Any, panel: EffectPanel) -> None:
    """Label the x axis: long names of categories are cut, and labels that need room are rotated."""
    axes.tick_params(labelsize=8)
    if panel.words:
        short = [word if len(word) <= 12 else word[:11] + "…" for word in panel.x]
        turned = 90 if max(map(len, short)) * len(short) > 18 else 0
        axes.set_xticks(range(len(short)), short, rotation=turned, fontsize=7.5)
        axes.margins(x=0.15)
    elif not isinstance(panel.x[0], float):
        axes.tick_params(axis="x", rotation=30)
    elif max(map(abs, panel.x)) >= 1e4:
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
        axes.xaxis.get_offset_text().set_fontsize(7)
