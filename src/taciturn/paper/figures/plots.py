"""The layouts of the paper's figures: convergence, accuracy against privacy, and the attack on a record."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...core.formatting import format_cost
from ...core.types import Array
from . import spec
from .attack_runner import AttackFigureResult
from .runner import CurveResult, FigureResult
from .style import GREY, letter, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...auditing.attack import AttackResult
    from ..figures import spec

_ROW = 1.95  # inches
_THIN: dict[str, Any] = {"linewidth": 0.6, "linestyle": (0, (2, 1.5)), "marker": "None"}
_EARLY, _SPAN = 0.05, 0.05  # rounds that may leave the panel; the least span of its axis; both as shares
_BARS = 12  # range bars on a curve


def plot(drawn: FigureResult) -> Figure:
    """The figure, in the layout that its file asks for; call it inside `paper_style`."""
    return convergence(drawn) if drawn.figure.layout == "convergence" else tradeoff(drawn)


def convergence(drawn: FigureResult) -> Figure:
    """For every row: L(t), and the largest distance of a site from the optimum."""
    rows = drawn.figure.rows
    figure = new_figure(_ROW * len(rows) + 0.45)
    names = iter(string.ascii_lowercase)
    grid = figure.subplots(len(rows), 2, squeeze=False, sharex=True)
    for (left, right), row in zip(grid, rows, strict=True):
        outcomes = drawn.panel(row.name)
        for k, outcome in enumerate(outcomes):
            _line(left, outcome, outcome.run.loss.mean(axis=0), k, len(outcomes))
            _line(right, outcome, outcome.distance.mean(axis=0), k, len(outcomes))
        _reference(left, outcomes)
        _frame(left, next(names), row.title, "average loss $L(t)$", drawn.figure.run.rounds)
        _frame(
            right,
            next(names),
            row.title,
            r"$\max_i \|f_i(t) - f_c^*\| \, / \, \|f_c^*\|$",
            drawn.figure.run.rounds,
        )
        if _wide([outcome.distance for outcome in outcomes]):
            right.set_yscale("log")
        else:
            right.set_ylim(bottom=0)
        _room(left, outcomes)
    _below(figure, grid, drawn)
    return figure


def tradeoff(drawn: FigureResult) -> Figure:
    """For every row: L(t) with its range, the paper's P(t), and our epsilon at delta."""
    rows, run = drawn.figure.rows, drawn.figure.run
    figure = new_figure(_ROW * len(rows) + 0.45)
    names = iter(string.ascii_lowercase)
    grid = figure.subplots(len(rows), 3, squeeze=False, sharex=True, width_ratios=[2.0, 1.0, 1.0])
    for (left, middle, right), row in zip(grid, rows, strict=True):
        outcomes = drawn.panel(row.name)
        for k, outcome in enumerate(outcomes):
            _draw_range(left, outcome, k, len(outcomes))
            if np.isfinite(outcome.paper).all():
                _line(middle, outcome, outcome.paper, k, len(outcomes))
            _line(middle, outcome, outcome.pure, k, len(outcomes), **_THIN)
            _line(right, outcome, outcome.epsilon, k, len(outcomes))
        _reference(left, outcomes)
        _frame(left, next(names), row.title, "average loss $L(t)$", run.rounds)
        _frame(middle, next(names), row.title, "paper's bound $P(t)$", run.rounds)
        _frame(
            right,
            next(names),
            row.title,
            rf"our $\varepsilon(t)$, $\delta = {_power(run.delta)}$",
            run.rounds,
        )
        _room(left, outcomes)
        middle.set_ylim(bottom=0)
        right.set_ylim(bottom=0)
    _below(figure, grid, drawn)
    return figure


def _look(curve: spec.FigureCurve, rounds: int, k: int = 0, curves: int = 1) -> dict[str, Any]:
    """Colour, line and markers; those of the k-th curve stand beside those of the others."""
    every = max(1, rounds // 8)
    marker = "None" if curve.marker == "none" else curve.marker
    return {
        "color": curve.colour,
        "linestyle": curve.line,
        "marker": marker,
        "markevery": (every - 1 - (k * every) // (2 * curves), every),
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
    }


def _line(axes: Axes, outcome: CurveResult, values: Array, k: int, curves: int, **changed: Any) -> None:
    t = np.arange(1, len(values) + 1)
    axes.plot(t, values, **(_look(outcome.curve, len(t), k, curves) | changed))


def _draw_range(axes: Axes, outcome: CurveResult, k: int, curves: int) -> None:
    """The mean, with bars from the least to the largest of the repeats, side by side with other curves'."""
    loss = outcome.run.loss
    mean, rounds = loss.mean(axis=0), loss.shape[1]
    look = _look(outcome.curve, rounds)
    axes.plot(np.arange(1, rounds + 1), mean, **(look | {"marker": "None"}))
    every = max(1, rounds // _BARS)
    at = np.arange(every - 1, rounds, every)
    shift = (k - (curves - 1) / 2) * 0.09 * every
    axes.errorbar(
        at + 1 + shift,
        mean[at],
        yerr=np.stack([mean[at] - loss.min(axis=0)[at], loss.max(axis=0)[at] - mean[at]]),
        fmt=look["marker"].replace("None", ""),
        color=look["color"],
        markerfacecolor="white",
        markeredgewidth=0.8,
        elinewidth=0.8,
        capsize=1.5,
        capthick=0.6,
    )


def _reference(axes: Axes, outcomes: list[CurveResult]) -> None:
    """The loss at the optimum, which noise keeps a run away from."""
    level = outcomes[0].optimal_loss
    axes.axhline(level, color=GREY, linewidth=0.7, linestyle=(0, (5, 2)), zorder=1)
    axes.annotate(
        "$L(f_c^*)$",
        (1.0, level),
        xycoords=("axes fraction", "data"),
        xytext=(2, 0),
        textcoords="offset points",
        ha="left",
        va="center",
        color=GREY,
        fontsize=7,
    )


def _room(axes: Axes, outcomes: list[CurveResult]) -> None:
    """From the least loss to the largest of the later rounds: a random start would crush the rest."""
    fitted = [outcome.run.loss for outcome in outcomes if outcome.curve.fit]
    later = [loss[:, int(_EARLY * loss.shape[1]) :] for loss in fitted]
    low = min(outcomes[0].optimal_loss, *(float(loss.min()) for loss in fitted))
    high = max((1 + _SPAN) * low, *(float(loss.max()) for loss in later))
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    beyond = [outcome for outcome in outcomes if not outcome.curve.fit and outcome.final_loss > high]
    for k, outcome in enumerate(beyond):
        axes.text(
            1.0,
            1.0 - 0.1 * k,
            f"{outcome.curve.label}: $L({outcome.run.loss.shape[1]}) = {outcome.final_loss:.2f}$",
            color=outcome.curve.colour,
            transform=axes.transAxes,
            ha="right",
            va="top",
            fontsize=7,
        )


def _wide(values: list[Array]) -> bool:
    """Whether a linear axis would crush the small ones."""
    return bool(max(part.max() for part in values) > 10 * min(part.min() for part in values))


def _frame(axes: Axes, name: str, title: str, label: str, rounds: int) -> None:
    letter(axes, name, title)
    axes.set_ylabel(label)
    axes.set_xlim(0, rounds + 0.5)


def _below(figure: Figure, grid: Any, drawn: FigureResult) -> None:
    """One legend for all panels, under them."""
    from matplotlib.lines import Line2D

    for axes in grid[-1]:
        axes.set_xlabel("round $t$")
    labels: dict[str, spec.FigureCurve] = {}
    for curve in drawn.figure.curves:
        labels.setdefault(curve.label, curve)
    handles = [
        Line2D([], [], label=label, **{k: v for k, v in _look(curve, 8).items() if k != "markevery"})
        for label, curve in labels.items()
    ]
    if drawn.figure.layout == "tradeoff":
        handles.append(Line2D([], [], color=GREY, label=r"our pure $\varepsilon$", **_THIN))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 3))


def _power(value: float) -> str:
    exponent = int(np.floor(np.log10(value)))
    factor = value / 10.0**exponent
    return f"10^{{{exponent}}}" if abs(factor - 1) < 1e-9 else rf"{factor:g} \cdot 10^{{{exponent}}}"


_ACROSS, _ATTACK_ROW = 4, 2.1  # panels side by side; inches


def plot_attack(attacked: AttackFigureResult) -> Figure:
    """One panel for each level of noise; call it inside `paper_style`."""
    noises, observers = attacked.figure.noises, attacked.figure.observers
    rows = -(-len(noises) // _ACROSS)
    figure = new_figure(_ATTACK_ROW * rows + 0.35)
    grid = figure.subplots(rows, min(len(noises), _ACROSS), squeeze=False, sharex=True, sharey=True)
    panels = list(grid.ravel())
    for axes, noise, name in zip(panels, noises, string.ascii_lowercase, strict=False):
        result = attacked.results[noise.name]
        _levels(axes, result)
        for k, observer in enumerate(observers):
            _observer(axes, result, observer, k)
        epsilon = attacked.epsilon[noise.name]
        cost = r"$\varepsilon = \infty$" if np.isinf(epsilon) else rf"$\varepsilon = {_short(epsilon)}$"
        letter(axes, name, f"{noise.title}, {cost}")
        axes.set_xscale("log")
        axes.set_xticks(result.rounds, [str(t) for t in result.rounds])
        axes.minorticks_off()
        axes.set_xlabel("rounds seen")
        axes.set_ylim(-0.25, 1.08)
    for axes in panels[len(noises) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("cosine to the record")
    handles = [
        Line2D([], [], color=o.colour, marker=o.marker, markerfacecolor="white", label=o.label)
        for o in observers
    ]
    handles.append(
        Line2D([], [], color=GREY, linestyle=(0, (5, 2)), linewidth=0.8, label="mean of the known records")
    )
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _levels(axes: Axes, result: AttackResult) -> None:
    """What needs no attack: a random direction, and the mean of the known records."""
    axes.axhspan(-result.chance, result.chance, color="#EEEEEE", zorder=0)
    axes.axhline(result.prior, color=GREY, linestyle=(0, (5, 2)), linewidth=0.8, zorder=1)


def _observer(axes: Axes, result: AttackResult, observer: spec.Observer, k: int) -> None:
    cosine = result.cosine[result.observers.index(observer.name)].reshape(len(result.rounds), -1)
    low, high = np.quantile(cosine, [0.1, 0.9], axis=1)
    mean = cosine.mean(axis=1)
    axes.errorbar(
        np.array(result.rounds) * 1.06 ** (k - 1.5),
        mean,
        yerr=np.maximum(np.stack([mean - low, high - mean]), 0.0),
        color=observer.colour,
        marker=observer.marker,
        markerfacecolor="white",
        markeredgewidth=0.8,
        elinewidth=0.6,
        capsize=1.2,
        capthick=0.5,
    )


def _short(epsilon: float) -> str:
    """1.21, 313 or 1.32 times 10^5; never below the truth."""
    if epsilon < 1000:
        return format_cost(epsilon)
    exponent = int(np.floor(np.log10(epsilon)))
    return rf"{format_cost(epsilon / 10**exponent)} \cdot 10^{exponent}"
