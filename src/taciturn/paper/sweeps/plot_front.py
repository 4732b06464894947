"""Loss against epsilon, one mark per point of a sweep, and the Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ..figures.style import GREY, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .sweep_result import SweepResult, SweepRow

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def plot_front(swept: SweepResult) -> Figure:
    """The first axis chooses the colour and the second the marker, where they have few enough values."""
    figure = new_figure(3.2)
    axes = figure.subplots()
    colours, markers = _looks(swept, 0, COLOURS), _looks(swept, 1, MARKERS)
    finite = [row for row in swept.rows if row.numbers["epsilon"] is not None]
    for row in finite:
        axes.plot(
            row.numbers["epsilon"],
            row.numbers["loss_mean"],
            linestyle="none",
            marker=_look(swept, row, 1, markers, "o"),
            color=_look(swept, row, 0, colours, COLOURS[0]),
            markersize=5 if row.on_front else 3.5,
            alpha=1.0 if row.on_front else 0.45,
            markeredgewidth=0,
        )
    _front(axes, swept)
    _floor(axes, swept)
    if finite:
        _log_scale(axes)
    axes.set_xlabel(_epsilon(swept))
    axes.set_ylabel("average loss $L(T)$")
    axes.set_title(swept.grid.title, loc="left")
    handles = [*_legend(swept, 0, colours, "color"), *_legend(swept, 1, markers, "marker")]
    handles.append(Line2D([], [], color=GREY, linewidth=0.9, label="Pareto front"))
    figure.legend(handles=handles, loc="outside right upper")
    return figure


def _front(axes: Axes, swept: SweepResult) -> None:
    """A staircase: with a budget between two points one gets the loss of the cheaper one."""
    best = swept.front
    if best:
        epsilon = [row.numbers["epsilon"] for row in best]
        loss = [row.numbers["loss_mean"] for row in best]
        axes.step(epsilon, loss, where="post", color=GREY, linewidth=0.9, zorder=1)


def _floor(axes: Axes, swept: SweepResult) -> None:
    """The loss of the exact minimiser, where all points have the same one."""
    levels = {row.numbers["optimal_loss"] for row in swept.rows}
    if len(levels) == 1:
        (level,) = levels
        axes.axhline(level, color=GREY, linewidth=0.7, linestyle=(0, (5, 2)), zorder=0)
        axes.annotate(
            "without noise",
            (1.0, level),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 2),
            textcoords="offset points",
            ha="right",
            color=GREY,
            fontsize=7,
        )


def _log_scale(axes: Axes) -> None:
    """Powers of ten and a few numbers between them, written out."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _looks(swept: SweepResult, axis: int, choices: tuple[str, ...]) -> dict[str, str]:
    """A colour or a marker for every value of an axis; none where it has one value, or too many."""
    if axis >= len(swept.grid.axes):
        return {}
    values = list(dict.fromkeys(_value(swept, row, axis) for row in swept.rows))
    return dict(zip(values, choices, strict=False)) if 1 < len(values) <= len(choices) else {}


def _look(swept: SweepResult, row: SweepRow, axis: int, looks: dict[str, str], plain: str) -> str:
    return looks[_value(swept, row, axis)] if looks else plain


def _value(swept: SweepResult, row: SweepRow, axis: int) -> str:
    value = row.settings[swept.grid.axes[axis]]
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _legend(swept: SweepResult, axis: int, looks: dict[str, str], kind: str) -> list[Any]:
    """The name of the axis, and one entry per value."""
    if not looks:
        return []
    plain: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": GREY, "markeredgewidth": 0}
    entries = [Line2D([], [], **{**plain, kind: look}, label=value) for value, look in looks.items()]
    return [Line2D([], [], linestyle="none", label=swept.grid.axes[axis]), *entries]


def _epsilon(swept: SweepResult) -> str:
    deltas = {row.numbers["delta"] for row in swept.rows}
    if len(deltas) != 1:
        return r"$\varepsilon$"
    factor, _, exponent = f"{deltas.pop():.3g}".partition("e")
    power = (
        f"10^{{{int(exponent)}}}" if factor == "1" and exponent else factor + (exponent and f"e{exponent}")
    )
    return rf"$\varepsilon$ at $\delta = {power}$"
