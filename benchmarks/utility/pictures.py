"""The two pictures of docs/utility.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from .anchors import ALONE_FREE, BOOSTING, EBM, WHITE_CENTRE
from .contest import ALONE, MAPPED, MASKED, PENALTY, PLAIN, WHITE_PENALTY
from .results import Found

_LINES = {
    MAPPED: ("#009E73", "-", 2.6),
    MASKED: ("#0072B2", "-", 2.6),
    PLAIN: ("#56B4E9", "-", 1.3),
    WHITE_CENTRE: ("#777777", "--", 1.5),
    EBM: ("#D55E00", "--", 1.5),
    ALONE: ("#CC79A7", "-", 1.5),
    WHITE_PENALTY: ("#8C564B", "-", 1.5),
    PENALTY: ("#E69F00", "-", 1.3),
}
_DOTS = {ALONE_FREE: "x", EBM: "^", MASKED: "o", MAPPED: "D", BOOSTING: "*"}


def draw_sums(found: Found, titles: Sequence[str], path: Path) -> None:
    """Plot the mean excess loss over the pooled linear model without privacy by epsilon, for twenty sites."""
    plt.rcParams["svg.hashsalt"] = "taciturn"
    figure, axis = plt.subplots(figsize=(9.0, 4.2), layout="constrained")
    for name, (colour, style, width) in _LINES.items():
        points = []
        for epsilon in found.budgets:
            tables = found.common(titles, (MAPPED, MASKED, PLAIN, WHITE_CENTRE), epsilon)
            total = found.excess(tables, name, epsilon)
            if tables and total is not None:
                points.append((epsilon, total / len(tables)))
        if points:
            axis.plot(
                *zip(*points, strict=True), style, color=colour, lw=width, marker=".", label=_broken(name)
            )
    axis.axhline(0.0, color="0.4", lw=0.8, linestyle=":")
    label, place = "pooled linear model, no privacy", (0, -7)
    axis.annotate(
        label, (10.0, 0.0), place, textcoords="offset points", ha="right", va="top", fontsize=8, color="0.4"
    )
    axis.set(xscale="log", xlabel="epsilon, at delta = 1e-5", ylabel="mean excess test loss")
    axis.set_yscale("symlog", linthresh=0.02)
    axis.set_yticks((-0.01, 0.0, 0.01, 0.03, 0.1), ("-0.01", "0", "0.01", "0.03", "0.1"))
    axis.margins(y=0.06)
    axis.set_xticks(found.budgets, [f"{epsilon:g}" for epsilon in found.budgets])
    axis.minorticks_off()
    if axis.get_legend_handles_labels()[1]:
        axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _broken(name: str) -> str:
    """A long name on two lines, so that the legend leaves room for the plot."""
    head, comma, tail = name.partition(", the paper's")
    return f"{head},\nthe paper's{tail}" if comma else name


def draw_tables(found: Found, titles: Mapping[str, str], path: Path) -> None:
    """Plot, for each table, the test loss minus the pooled linear model's, at epsilon 1 and twenty sites."""
    plt.rcParams["svg.hashsalt"] = "taciturn"
    figure, axis = plt.subplots(figsize=(9.0, 3.8), layout="constrained")
    for name, mark in _DOTS.items():
        shown = [(k, r) for k, data in enumerate(titles) if (r := found.at(data, name, 1.0)) is not None]
        heights = [r.loss / found.base(r.data).loss - 1 for _, r in shown]
        axis.plot([k for k, _ in shown], heights, mark, ms=7, alpha=0.85, label=name)
    axis.axhline(0.0, color="#666666", lw=0.8)
    axis.set_xticks(range(len(titles)), list(titles.values()), rotation=30, ha="right")
    axis.set_yscale("symlog", linthresh=0.05)
    ticks = (-0.3, -0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.3)
    axis.set_yticks(ticks, [f"{100 * tick:+.0f}%" for tick in ticks])
    axis.margins(y=0.06)  # so that the outermost markers are not cut off
    axis.minorticks_off()
    axis.grid(axis="y", alpha=0.3)
    axis.set_ylabel("test loss, over the linear\nmodel without privacy")
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
