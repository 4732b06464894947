"""Plot loss against epsilon, with one marker per point of a sweep, and the Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..figures.style import DASHED, GREY, beside_axes, new_figure, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .grid import SweepResult, SweepRow

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def plot_front(swept: SweepResult) -> Figure:
    """The picture of a sweep. The first axis of the sweep determines a point's colour, and the second axis
    its marker, if the axis has at least two values and not too many."""
    figure = new_figure(3.2)
    axes = figure.subplots()
    colours, markers = _looks(swept, 0, COLOURS), _looks(swept, 1, MARKERS)
    finite = [row for row in swept.rows if row.numbers["epsilon"] is not None]
    for row in finite:
        axes.plot(
            *_place(row),
            linestyle="none",
            marker=markers[_value(swept, row, 1)] if markers else "o",
            color=colours[_value(swept, row, 0)] if colours else COLOURS[0],
            markersize=5 if row.on_front else 3.5,
            alpha=1.0 if row.on_front else 0.45,
            markeredgewidth=0,
        )
    if best := swept.front:  # a staircase: between two points, the point with the smaller epsilon is the best
        epsilon, loss = zip(*map(_place, best), strict=True)
        axes.step(epsilon, loss, where="post", color=GREY, linewidth=0.9, zorder=1)
    levels = {row.numbers["optimal_loss"] for row in swept.rows}
    if len(levels) == 1:
        (level,) = levels
        axes.axhline(level, color=GREY, linewidth=0.7, linestyle=DASHED, zorder=0)
        beside_axes(axes, "without noise", level, (-2, 2), ha="right")
    if finite:
        _log_scale(axes)
    deltas = {row.numbers["delta"] for row in swept.rows}
    at = rf" at $\delta = {power_of_ten(deltas.pop())}$" if len(deltas) == 1 else ""
    axes.set_xlabel(rf"$\varepsilon${at}")
    axes.set_ylabel("average loss $L(T)$")
    axes.set_title(swept.grid.title, loc="left")
    handles = [*_legend(swept, 0, colours, "color"), *_legend(swept, 1, markers, "marker")]
    handles.append(Line2D([], [], color=GREY, linewidth=0.9, label="Pareto front"))
    figure.legend(handles=handles, loc="outside right upper")
    return figure


def _place(row: SweepRow) -> tuple[float, float]:
    return row.numbers["epsilon"], row.numbers["loss_mean"]


def _log_scale(axes: Axes) -> None:
    """Use a logarithmic x axis with ticks at 1, 2 and 5 times the powers of ten."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _looks(swept: SweepResult, axis: int, choices: tuple[str, ...]) -> dict[str, str]:
    """A colour or a marker for every value on an axis; empty if there is one value, or too many values."""
    if axis >= len(swept.grid.axes):
        return {}
    values = list(dict.fromkeys(_value(swept, row, axis) for row in swept.rows))
    return dict(zip(values, choices, strict=False)) if 1 < len(values) <= len(choices) else {}


def _value(swept: SweepResult, row: SweepRow, axis: int) -> str:
    value = row.settings[swept.grid.axes[axis]]
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _legend(swept: SweepResult, axis: int, looks: dict[str, str], kind: str) -> list[Any]:
    """The entries of the legend: the name of the axis, and one entry per value."""
    if not looks:
        return []
    plain: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": GREY, "markeredgewidth": 0}
    entries = [Line2D([], [], **{**plain, kind: look}, label=value) for value, look in looks.items()]
    return [Line2D([], [], linestyle="none", label=swept.grid.axes[axis]), *entries]
