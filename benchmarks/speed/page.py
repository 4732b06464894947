"""Write docs/performance.md and its plot from the measured numbers."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy
from threadpoolctl import threadpool_info

from .contest import Contest
from .scaling import Cost
from .workload import REPEATS, SITES, TOL, C

AIMS = {
    "L-BFGS-B, to the same accuracy": "30 or more",
    "Newton": "15 or more",
    "bare products": "above 0.5",
}
_CLOCKS = {
    False: "Seconds are wall-clock time. They depend on the machine; the ratios depend on it less.",
    True: "The machine was busy, so seconds are CPU time on one thread instead of wall-clock time.",
}
_OURS = "#1f5a99"
_FIT = Path(__file__).with_name("fit.md")


def write_page(contest: Contest, costs: dict[str, list[Cost]], command: str, folder: Path) -> Path:
    """Write the page, and its plot in the same folder."""
    (folder / "img").mkdir(parents=True, exist_ok=True)
    draw(contest, costs, folder / "img" / "performance.png")
    page = folder / "performance.md"
    page.write_text(as_markdown(contest, costs, command), encoding="utf-8")
    return page


def as_markdown(contest: Contest, costs: dict[str, list[Cost]], command: str) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Performance",
            "",
            "After this page you know how fast a round is, and how its cost grows with sites, rows and",
            "features.",
            "",
            f"`{command}`{'' if contest.cpu else ' (`make bench`)'} writes this page. Every number is from",
            f"one run on one machine: {_machine()}.",
            f"{_CLOCKS[contest.cpu]}",
            "",
            "![Seconds per round, and how they grow](img/performance.png)",
            "",
            *_contest_section(contest),
            *_scaling_section(costs),
            _FIT.read_text(encoding="utf-8"),
        ]
    )


def _contest_section(contest: Contest) -> list[str]:
    lines = [
        "## One round against its alternatives",
        "",
        f"The task is {contest.data}, with 45,222 rows of 105 features, {SITES} sites on a ring, C = {C:g},",
        f"rho = 10^-2.5, theta = eta = 0.5, alpha = 3 ([notation](notation.md)) and {REPEATS} repeats. Every",
        f"solved vector is within {TOL:g} of the exact minimiser. The time of `simulate` includes noise,",
        "dual variables, metrics and the ledger. The other rows of the table only solve the same problems,",
        "from the same starting points. We ran all of them in alternation; the table shows the shortest of",
        "several times, at the best thread setting of each row. *Aim* is the ratio that we want.",
        "",
        "| solver | seconds per round | times `simulate` | aim | threads | distance reached |",
        "|---|---:|---:|---|---|---:|",
    ]
    for row in contest.rows:
        cells = [
            "`taciturn.simulate`" if row.name == "simulate" else row.name,
            f"{row.seconds:.4f}",
            f"{contest.ratio(row.name):.2f}",
            AIMS.get(row.name, ""),
            row.setting,
            "" if row.distance is None else f"{row.distance:.0e}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", *_READING, *_counts(contest), ""]


_READING = [
    "- **L-BFGS-B** is SciPy's solver, called once for each site and repeat. Its line search compares",
    "  values of the objective. These values are too inexact close to the minimiser, so the solver stops",
    "  early. In the row 'to the same accuracy' it continues, with differences of the objective that are",
    "  computed row by row.",
    "- **Newton** forms one Hessian per step and repeat (a symmetric product) and solves.",
]


def _counts(contest: Contest) -> list[str]:
    return [
        "- **Bare products** are only the matrix products of our solver, without the solver itself: on",
        f"  average {contest.passes:.1f} passes over the rows and {contest.rebuilds:.2f} Gram matrices per",
        "  solve.",
    ]


def _scaling_section(costs: dict[str, list[Cost]]) -> list[str]:
    lines = [
        "## How the cost grows",
        "",
        f"The graph is a ring. There are {REPEATS} repeats, and C is a fifth of a site's rows. Rows are made",
        "up and have as many nonzero entries as those of Adult. Where the number of features grows, each row",
        "has 14 random entries (5 if there are 10 features). The column 'data' is the size of the rows; the",
        "column 'beyond' is the largest memory that a run uses in addition.",
        "",
    ]
    for axis, line in costs.items():
        lines += [
            f"### More {axis}",
            "",
            "| sites | rows | features | seconds per round | data, MB | beyond, MB |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        for cost in line:
            p = cost.point
            lines.append(
                f"| {p.sites:,} | {p.rows:,} | {p.features:,} | {cost.seconds:.3f} | {cost.data_mb:.1f}"
                f" | {cost.extra_mb:.1f} |"
            )
        lines.append("")
    return lines


def _machine() -> str:
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    blas = ", ".join(sorted({f"{pool['internal_api']} {pool['version']}" for pool in pools}))
    return (
        f"{len(os.sched_getaffinity(0))} cores ({platform.machine()}), Python {platform.python_version()},"
        f" NumPy {np.__version__}, SciPy {scipy.__version__}, {blas}"
    )


def draw(contest: Contest, costs: dict[str, list[Cost]], path: Path) -> None:
    """Draw four panels: the contest as bars, and one line per axis on a common scale of seconds."""
    figure, panels = plt.subplots(1, 4, figsize=(15, 3.8), width_ratios=[1.6, 1, 1, 1], layout="constrained")
    _draw_contest(panels[0], contest)
    every = [cost.seconds for line in costs.values() for cost in line]
    for panel, (axis, line) in zip(panels[1:], costs.items(), strict=True):
        x = [getattr(cost.point, axis) for cost in line]
        panel.loglog(x, [cost.seconds for cost in line], "o-", color=_OURS, lw=1.8, ms=5)
        panel.set_ylim(0.5 * min(every), 2.0 * max(every))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_xlabel(axis)
        panel.set_title(f"more {axis}", fontsize=11)
        panel.grid(True, which="major", color="#dddddd", lw=0.7)
        panel.set_axisbelow(True)
    panels[1].set_ylabel("seconds per round")
    for panel in panels:
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_contest(panel: plt.Axes, contest: Contest) -> None:
    rows = contest.rows[::-1]
    colors = [_OURS if row.name == "simulate" else "#b8c4d0" for row in rows]
    names = ["taciturn.simulate" if row.name == "simulate" else row.name for row in rows]
    bars = panel.barh(names, [row.seconds for row in rows], color=colors)
    labels = [f" {row.seconds:.3f} s, {contest.ratio(row.name):.2g} times" for row in rows]
    labels[-1] = f" {rows[-1].seconds:.3f} s"
    panel.bar_label(bars, labels, fontsize=9)
    panel.set_xlim(right=1.45 * max(row.seconds for row in rows))
    panel.set_xlabel("seconds per round")
    panel.set_title(f"one round, {contest.data}", fontsize=11)
