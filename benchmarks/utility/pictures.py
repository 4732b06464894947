"""The two pictures of docs/utility.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from .contest import ALONE, CENTRE, MASKED
from .results import Found
from .rivals import POOLED

_COLOURS = ("#777777", "#000000", "#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#CC79A7", "#009E73")


def draw_frontier(found: Found, path: Path) -> None:
    """Test loss against epsilon, on Adult with twenty sites; bars are a standard deviation over seeds."""
    plt.rcParams["svg.hashsalt"] = "taciturn"
    figure, axis = plt.subplots(figsize=(9.0, 4.6))
    budgets = found.budgets("adult", 20)
    names = [POOLED, CENTRE, MASKED, ALONE, *found.rivals_at("adult", 20, budgets)]
    for k, (name, colour) in enumerate(zip(names, _COLOURS, strict=False)):
        line = [result for epsilon in budgets if (result := found.at(name, epsilon)) is not None]
        axis.errorbar(
            [result.epsilon * 1.012 ** (k - len(names) / 2) for result in line],  # bars side by side
            [result.loss for result in line],
            [result.loss_std for result in line],
            label=f"{name}, 1 colluding" if name == MASKED else name,
            color=colour,
            linewidth=2.4 if name == MASKED else 1.2,
            linestyle="--" if name in (POOLED, CENTRE) else "-",
            marker="o" if name == MASKED else ".",
            capsize=2,
            zorder=3 if name == MASKED else 2,
        )
    axis.axhline(found.base("adult").loss, color="0.5", linestyle=":", label="no privacy")
    axis.set(xscale="log", xlabel="epsilon, at delta = 1e-5", ylabel="test loss")
    axis.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axis.minorticks_off()
    axis.set_title("Adult, twenty sites", fontsize=10)
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_ratios(found: Found, titles: Mapping[str, str], path: Path) -> None:
    """Masked descent's excess loss over the centre's, table by table, however the rows are dealt."""
    plt.rcParams["svg.hashsalt"] = "taciturn"
    figure, axis = plt.subplots(figsize=(6.8, 3.2), layout="constrained")
    tables = list(titles)
    for shift, (sites, mark) in enumerate(zip(found.sizes, "os^", strict=True)):
        shown = [
            r
            for r in found.results
            if (r.sites, r.contender, r.colluding, r.epsilon) == (sites, MASKED, 1, 1.0) and r.data in titles
        ]
        x = [tables.index(r.data) + 0.15 * (shift - 1) for r in shown]
        axis.plot(x, [found.ratio(r) for r in shown], mark, ms=5, alpha=0.8, label=f"{sites} sites")
    axis.axhline(1.0, color="#666666", lw=0.8)
    axis.annotate("trusted centre", (len(tables) - 0.5, 1.0), va="bottom", ha="right", fontsize=8)
    axis.set_xticks(range(len(tables)), list(titles.values()))
    axis.set_ylim(bottom=0.0)
    axis.set_ylabel("excess loss / that of the centre")
    axis.legend(frameon=False, ncols=3, fontsize=8, loc="lower left")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
