"""The layouts of the paper's figures: convergence, loss against privacy, and the attack on a record.

A figure has rows of panels. Each panel has one curve for each run of the row.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...core.formatting import format_cost
from ...core.types import Array
from . import spec
from .attack_runner import AttackFigureResult, Drawn
from .runner import CurveResult, FigureResult
from .style import DASHED, GREY, HOLLOW, beside_axes, new_figure, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...auditing.attack import AttackResult

_ROW, _ATTACK_ROW, _ACROSS = 1.95, 2.1, 4  # two heights of rows in inches; the attack panels in a row
_THIN: dict[str, Any] = {"linewidth": 0.6, "linestyle": (0, (2, 1.5)), "marker": "None"}
_EARLY, _SPAN = 0.05, 0.05  # for the loss axis: the share of first rounds to ignore; the least relative span
_BARS = 12  # the approximate number of bars that show the range of a curve


def plot(drawn: Drawn) -> Figure:
    """The picture of a figure, in the layout that its file states. Call this inside `with paper_style()`."""
    return _attack(drawn) if isinstance(drawn, AttackFigureResult) else _curves(drawn)


def _curves(drawn: FigureResult) -> Figure:
    """Rows of panels: the loss L(t) on the left, and the other quantities of the layout to its right."""
    rows, run, wide = drawn.figure.rows, drawn.figure.run, drawn.figure.layout == "tradeoff"
    figure = new_figure(_ROW * len(rows) + 0.45)
    widths = [2.0, 1.0, 1.0] if wide else [1.0, 1.0]
    grid = figure.subplots(len(rows), len(widths), squeeze=False, sharex=True, width_ratios=widths)
    for panels, row in zip(grid, rows, strict=True):
        outcomes = drawn.panel(row.name)
        if wide:
            _tradeoff(panels, outcomes, run.delta)
        else:
            _convergence(panels, outcomes)
        level = outcomes[0].optimal_loss
        panels[0].axhline(level, color=GREY, linewidth=0.7, linestyle=DASHED, zorder=1)
        beside_axes(panels[0], "$L(f_c^*)$", level, (2, 0), ha="left", va="center")
        panels[0].set_ylabel("average loss $L(t)$")
        _room(panels[0], outcomes)
        for axes in panels:
            axes.set_xlim(0, run.rounds + 0.5)
    titles = [row.title for row in rows for _ in widths]
    for axes, name, title in zip(grid.ravel(), string.ascii_lowercase, titles, strict=False):
        axes.set_title(f"({name}) {title}".rstrip(), loc="left")
    for axes in grid[-1]:
        axes.set_xlabel("round $t$")
    _legend(figure, drawn)
    return figure


def _convergence(panels: Any, outcomes: list[CurveResult]) -> None:
    """Draw L(t), and the largest distance of a site from the optimum."""
    left, right = panels
    for k, outcome in enumerate(outcomes):
        _line(left, outcome, outcome.run.loss.mean(axis=0), k, len(outcomes))
        _line(right, outcome, outcome.distance.mean(axis=0), k, len(outcomes))
    right.set_ylabel(r"$\max_i \|f_i(t) - f_c^*\| \, / \, \|f_c^*\|$")
    distances = [outcome.distance for outcome in outcomes]
    if max(part.max() for part in distances) > 10 * min(part.min() for part in distances):
        right.set_yscale("log")  # a linear axis would hide small distances
    else:
        right.set_ylim(bottom=0)


def _tradeoff(panels: Any, outcomes: list[CurveResult], delta: float) -> None:
    """Draw L(t) with its range, the paper's P(t), and our epsilon at delta."""
    left, middle, right = panels
    for k, outcome in enumerate(outcomes):
        _draw_range(left, outcome, k, len(outcomes))
        if np.isfinite(outcome.paper).all():
            _line(middle, outcome, outcome.paper, k, len(outcomes))
        _line(middle, outcome, outcome.pure, k, len(outcomes), **_THIN)
        _line(right, outcome, outcome.epsilon, k, len(outcomes))
    middle.set_ylabel("paper's bound $P(t)$")
    right.set_ylabel(rf"our $\varepsilon(t)$, $\delta = {power_of_ten(delta)}$")
    for axes in (middle, right):
        axes.set_ylim(bottom=0)


def _look(curve: spec.FigureCurve) -> dict[str, Any]:
    """The colour, line style and marker of a curve, as options of matplotlib."""
    marker = "None" if curve.marker == "none" else curve.marker
    return {"color": curve.colour, "linestyle": curve.line, "marker": marker, **HOLLOW}


def _line(axes: Axes, outcome: CurveResult, values: Array, k: int, curves: int, **changed: Any) -> None:
    """Draw a value for every round. `k` is the number of the curve, which shifts its markers."""
    every = max(1, len(values) // 8)
    markers = {"markevery": (every - 1 - (k * every) // (2 * curves), every)}
    axes.plot(np.arange(1, len(values) + 1), values, **(_look(outcome.curve) | markers | changed))


def _draw_range(axes: Axes, outcome: CurveResult, k: int, curves: int) -> None:
    """Draw the mean over the repeats, with bars from the minimum to the maximum.

    The bars of different curves are shifted, so that they do not cover each other.
    """
    loss, look = outcome.run.loss, _look(outcome.curve)
    mean, rounds = loss.mean(axis=0), loss.shape[1]
    axes.plot(np.arange(1, rounds + 1), mean, **(look | {"marker": "None"}))
    every = max(1, rounds // _BARS)
    at = np.arange(every - 1, rounds, every)
    shift = (k - (curves - 1) / 2) * 0.09 * every
    bars = np.stack([mean[at] - loss.min(axis=0)[at], loss.max(axis=0)[at] - mean[at]])
    style: dict[str, Any] = {
        "color": look["color"],
        **HOLLOW,
        "elinewidth": 0.8,
        "capsize": 1.5,
        "capthick": 0.6,
    }
    axes.errorbar(at + 1 + shift, mean[at], bars, fmt=look["marker"].replace("None", ""), **style)


def _room(axes: Axes, outcomes: list[CurveResult]) -> None:
    """Set the limits of the loss axis. They ignore the first rounds, in which the loss may be very large.

    They also ignore curves with fit = False. If such a curve ends above the axis, a text gives its last loss.
    """
    fitted = [outcome.run.loss for outcome in outcomes if outcome.curve.fit]
    later = [loss[:, int(_EARLY * loss.shape[1]) :] for loss in fitted]
    low = min([outcomes[0].optimal_loss, *(float(loss.min()) for loss in fitted)])
    high = max([(1 + _SPAN) * low, *(float(loss.max()) for loss in later)])
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    beyond = [outcome for outcome in outcomes if not outcome.curve.fit and outcome.final_loss > high]
    for k, outcome in enumerate(beyond):
        text = f"{outcome.curve.label}: $L({outcome.run.loss.shape[1]}) = {outcome.final_loss:.2f}$"
        where: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "top", "fontsize": 7}
        axes.text(1.0, 1.0 - 0.1 * k, text, color=outcome.curve.colour, **where)


def _legend(figure: Figure, drawn: FigureResult) -> None:
    """Draw one legend for all panels, below the panels."""
    looks: dict[str, dict[str, Any]] = {}
    for curve in drawn.figure.curves:
        looks.setdefault(curve.label, _look(curve))
    handles = [Line2D([], [], label=label, **look) for label, look in looks.items()]
    if drawn.figure.layout == "tradeoff":
        handles.append(Line2D([], [], color=GREY, label=r"our pure $\varepsilon$", **_THIN))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 3))


def _attack(attacked: AttackFigureResult) -> Figure:
    """The picture of an attack, with one panel for each noise level."""
    noises, observers = attacked.figure.noises, attacked.figure.observers
    rows = -(-len(noises) // _ACROSS)
    figure = new_figure(_ATTACK_ROW * rows + 0.35)
    grid = figure.subplots(rows, min(len(noises), _ACROSS), squeeze=False, sharex=True, sharey=True)
    for axes in grid.ravel()[len(noises) :]:
        axes.set_visible(False)
    for axes, noise, name in zip(grid.ravel(), noises, string.ascii_lowercase, strict=False):
        result, epsilon = attacked.results[noise.name], attacked.epsilon[noise.name]
        axes.axhspan(-result.chance, result.chance, color="#EEEEEE", zorder=0)  # cosines of random directions
        axes.axhline(result.prior, color=GREY, linestyle=DASHED, linewidth=0.8, zorder=1)
        for k, observer in enumerate(observers):
            _observer(axes, result, observer, k)
        cost = r"\infty" if np.isinf(epsilon) else _short(epsilon)
        axes.set_title(rf"({name}) {noise.title}, $\varepsilon = {cost}$", loc="left")
        axes.set_xscale("log")
        axes.set_xticks(result.rounds, [str(t) for t in result.rounds])
        axes.minorticks_off()
        axes.set_xlabel("rounds seen")
        axes.set_ylim(-0.25, 1.08)
    grid[0, 0].set_ylabel("cosine to the record")
    shown: list[dict[str, Any]] = [
        {"color": o.colour, "marker": o.marker, "label": o.label} for o in observers
    ]
    handles = [Line2D([], [], markerfacecolor="white", **look) for look in shown]
    prior: dict[str, Any] = {
        "color": GREY,
        "linestyle": DASHED,
        "linewidth": 0.8,
        "label": "mean of the known records",
    }
    figure.legend(handles=[*handles, Line2D([], [], **prior)], loc="outside lower center", ncols=3)
    return figure


def _observer(axes: Axes, result: AttackResult, observer: spec.Observer, k: int) -> None:
    """Draw the mean cosine after each number of rounds, and bars from the 10th to the 90th percentile."""
    cosine = result.cosine[result.observers.index(observer.name)].reshape(len(result.rounds), -1)
    mean, (low, high) = cosine.mean(axis=1), np.quantile(cosine, [0.1, 0.9], axis=1)
    bars = np.maximum(np.stack([mean - low, high - mean]), 0.0)
    look: dict[str, Any] = {"color": observer.colour, "marker": observer.marker, **HOLLOW}
    x = np.array(result.rounds) * 1.06 ** (k - 1.5)
    axes.errorbar(x, mean, bars, **look, elinewidth=0.6, capsize=1.2, capthick=0.5)


def _short(epsilon: float) -> str:
    """epsilon as text, always rounded up: 1.21, 313 or 1.32 times 10^5."""
    if epsilon < 1000:
        return format_cost(epsilon)
    exponent = int(np.floor(np.log10(epsilon)))
    return rf"{format_cost(epsilon / 10**exponent)} \cdot 10^{exponent}"
