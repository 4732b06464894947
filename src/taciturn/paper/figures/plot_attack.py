"""How near each observer comes to one unknown record, at several levels of noise."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...core.formatting import format_cost
from .attack_runner import AttackFigureResult
from .style import GREY, letter, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...auditing.attack import AttackResult
    from . import spec

_ACROSS, _ROW = 4, 2.1  # panels side by side; inches


def plot_attack(attacked: AttackFigureResult) -> Figure:
    """One panel for each level of noise; call it inside `paper_style`."""
    noises, observers = attacked.figure.noises, attacked.figure.observers
    rows = -(-len(noises) // _ACROSS)
    figure = new_figure(_ROW * rows + 0.35)
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
