"""The one picture of the demonstration: test loss against epsilon."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.formatting import format_given
from ...core.notebook import Picture, new_figure
from .comparison import ALONE, CURVES, NO_PRIVACY, NOBODY, ONE_CURIOUS, Choice
from .tasks import Task

_COLOURS = {NOBODY: "#d55e00", ONE_CURIOUS: "#0072b2", CURVES: "#008a64"}
_WORDS = {
    NO_PRIVACY: "pooled linear model, no privacy",
    ALONE: "each site alone, without privacy",
    NOBODY: "trust nobody (the method of the paper)",
    ONE_CURIOUS: "at most one curious site (masked sums)",
    CURVES: "the same, with a curve for every number",
}


def draw(task: Task, choices: Sequence[Choice]) -> Picture:
    """A line for every private choice, and a level for what needs no privacy."""
    figure = new_figure(7.2, 4.2)
    axes = figure.subplots()
    for name in (ALONE, NO_PRIVACY):
        level = next(choice.test_loss for choice in choices if choice.name == name)
        axes.axhline(level, color="#59626c", linestyle="--" if name == ALONE else "-", linewidth=1)
        x, place, side = (0.01, (0, 3), "left") if name == ALONE else (0.99, (0, -11), "right")
        axes.annotate(
            _WORDS[name],
            (x, level),
            place,
            ("axes fraction", "data"),
            "offset points",
            color="#59626c",
            ha=side,
        )
    shown = {choice.name for choice in choices}
    for name, colour in ((name, colour) for name, colour in _COLOURS.items() if name in shown):
        losses = [choice.test_loss for choice in choices if choice.name == name]
        axes.plot(task.epsilons, losses, color=colour, marker="o", linewidth=2, label=_WORDS[name])
    axes.set_xscale("log")
    axes.set_xticks(task.epsilons, list(map(format_given, task.epsilons)))
    axes.minorticks_off()
    axes.set_xlabel(f"epsilon of the whole run, at delta = {task.delta:g} (smaller is safer)")
    axes.set_ylabel("loss on held-out rows (smaller is better)")
    axes.set_title(f"{task.name}: what privacy costs in quality", loc="left", fontsize=11)
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
