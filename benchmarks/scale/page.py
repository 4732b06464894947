"""Write docs/scale.md and its plot, from template.md and the measured numbers."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from taciturn.runtime import engine_selection as choice

from .measure import DEGREE, FEATURES, ROWS, Cost, Facts
from .small import Line, Race

SITES, TOTAL_ROWS, WIDTH, ROUNDS = 10**6, 10**9, 100, 100
"""The run that the page computes as an example: a million sites, a billion rows, 100 features and rounds."""
SHARDS = (16, 64, 256)
LINK = 1.25e9  # bytes per second of a 10 Gbit/s link
QUIET = 0.1  # if other programs use a larger share of the cores, wall-clock times mean little


def write_page(facts: Facts, command: str, folder: Path) -> Path:
    """Write the page, and its plot in the same folder."""
    (folder / "img").mkdir(parents=True, exist_ok=True)
    draw(facts, folder / "img" / "scale.png")
    template = Path(__file__).with_name("template.md").read_text(encoding="utf-8")
    page = folder / "scale.md"
    filled = template.format(command=command, **_measured(facts), **_worked_out(facts))
    page.write_text(filled, encoding="utf-8")
    return page


def _measured(facts: Facts) -> dict[str, Any]:
    busy = (
        f"**Other programs used {facts.busy:.0%} of its cores at the same time**, so wall-clock seconds say "
        "little. Look at the CPU seconds of the busiest process: on an idle machine with one core per "
        "process, wall-clock seconds would be about the same."
    )
    return {
        "machine": f"{facts.cores} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"NumPy {np.__version__}",
        "busy": busy if facts.busy > QUIET else "No other program used the machine.",
        "small": f"{ROWS} rows of {FEATURES} features, a random {DEGREE}-regular graph, one repeat",
        "runs": _costs(facts.runs),
        "big": _costs(facts.big),
        "big_sites": facts.big[0].sites,
        "big_rounds": facts.big[0].rounds,
        "worker_mb": facts.worker / 2**20,
        "site_kb": facts.site_bytes / 1e3,
        "rows_kb": ROWS * FEATURES * 8 / 1e3,
        "constants": _constants(facts),
        "races": _races(facts.races),
        "lines": _lines(facts.lines),
        "million": _million(facts),
        "even": _even(max(2, facts.cores)),
    }


def _worked_out(facts: Facts) -> dict[str, Any]:
    """The numbers of the large run, computed from the constants."""
    entries, driver = TOTAL_ROWS * WIDTH, facts.driver
    python, numpy = SITES * facts.site, entries * facts.entry
    charge, vectors = SITES * driver["charge"], SITES * WIDTH * 8
    return {
        "sites": SITES,
        "rows_each": TOTAL_ROWS // SITES,
        "width": WIDTH,
        "rounds": ROUNDS,
        "degree": DEGREE,
        "python": python,
        "numpy": numpy,
        "hours": (python + numpy) * ROUNDS / 3600,
        "rows_gb": entries * 8 / 1e9,
        "driver_gb": SITES * (driver["bytes"] + ROUNDS * driver["bytes_round"]) / 1e9,
        "prepare": SITES * driver["prepare"],
        "charge": charge,
        "losses_mb": SITES * 16 / 1e6,
        "model_gb": vectors / 1e9,
        "cross_gb": DEGREE * vectors / 1e9,
        "cross_tb": DEGREE * vectors * ROUNDS / 1e12,
        "shards": _by_shards(facts, python + numpy, DEGREE * vectors),
        "waiting": _rounded(_waited_for(python + numpy, charge, facts.block)),
        "block_us": facts.block * 1e6,
        "thousand": 1000 * 999 * facts.block,
        "squared_gb": SITES * WIDTH**2 * 8 / 1e9,
        "more_mb": SITES * driver["bytes_round"] / 1e6,
    }


def _waited_for(work: float, charge: float, block: float) -> float:
    """The number of shards S for which the driver takes as long as a shard: work / S = charge + block S^2."""
    shards = 1.0
    while work / shards > charge + block * shards**2:
        shards *= 1.01
    return shards


def _costs(costs: list[Cost]) -> str:
    head = (
        "engine",
        "sites",
        "shards",
        "rounds",
        "seconds",
        "CPU seconds",
        "busiest process",
        "largest process",
    )
    rows = [
        (
            cost.engine,
            f"{cost.sites:,}",
            str(cost.shards) if cost.engine == "ray" else "",
            str(cost.rounds),
            f"{cost.seconds:.2f}",
            f"{cost.cpu:.2f}",
            f"{cost.busiest:.2f}",
            f"{cost.peak / 2**20:.0f} MB",
        )
        for cost in costs
    ]
    return _table(head, rows)


def _constants(facts: Facts) -> str:
    driver = facts.driver
    rows = [
        ("`SITE`, Python per round and site that is not small", facts.site, choice.SITE, 1e3, "ms"),
        ("`SMALL`, per round and repeat of a small site", facts.small, choice.SMALL, 1e6, "us"),
        ("`ENTRY`, per row, feature, repeat and round", facts.entry, choice.ENTRY, 1e9, "ns"),
        ("`ROUND`, a round of a cluster in addition to the work", facts.round, choice.ROUND, 1e3, "ms"),
        ("`START`, a cluster here with two workers", facts.start, choice.START, 1.0, "s"),
        ("`JOIN`, two workers on a running cluster", facts.join, choice.JOIN, 1.0, "s"),
        ("driver, per block that crosses", facts.block, None, 1e6, "us"),
        ("driver, ledger per site and round", driver["charge"], None, 1e6, "us"),
        ("driver, per site before the first round", driver["prepare"], None, 1e6, "us"),
    ]
    cells = [
        (name, f"{here * unit:.2f} {word}", "" if used is None else f"{used * unit:.2f} {word}")
        for name, here, used, unit, word in rows
    ]
    memory = f"{driver['bytes']:.0f} + {driver['bytes_round']:.0f} T bytes"
    head = ("constant", "measured", "in `engine_selection`")
    return _table(head, [*cells, ("driver, memory per site", memory, "")])


def _races(races: list[Race]) -> str:
    head = ("rows x features of a site", "one by one, us", "side by side, us", "ratio")
    rows = [
        (f"{r.rows} x {r.features}", f"{r.one_by_one * 1e6:.0f}", f"{r.together * 1e6:.1f}", f"{r.ratio:.0f}")
        for r in races
    ]
    return _table(head, rows)


def _lines(lines: list[Line]) -> str:
    head = ("sites", "rows each", "ms per round", "relative to 5 sites", "set-up, s", "largest process, MB")
    least = lines[0].seconds
    rows = [
        (
            f"{found.sites:,}",
            f"{found.rows:,}",
            f"{found.seconds * 1e3:,.0f}",
            f"{found.seconds / least:.2f}",
            f"{found.setup:.1f}",
            f"{found.peak / 2**20:,.0f}",
        )
        for found in lines
    ]
    return _table(head, rows)


def _million(facts: Facts) -> str:
    """The cost of a million small sites in one process, from the largest measured number of sites."""
    last = facts.lines[-1]
    times = 10**6 / last.sites
    return (
        f"{last.seconds * times:.0f} s per round and {last.setup * times:.0f} s before the first round, on "
        f"one core, and about {last.peak * times / 1e9:.0f} GB of memory for {last.rounds} rounds"
    )


def even_at(rounds: int, cores: int, start: float) -> float:
    """The number of sites (not small) for which Ray on one machine is as fast as one process."""
    return (start / rounds + choice.ROUND) / (choice.SITE * (1 - 1 / cores))


def _even(cores: int) -> str:
    head = (
        "rounds",
        f"with {cores} cores, Ray is slower below",
        "if a cluster is already running, Ray is slower below",
    )
    rows = [
        (str(rounds), *(f"{_rounded(even_at(rounds, cores, s))} sites" for s in (choice.START, choice.JOIN)))
        for rounds in (10, 50, 200)
    ]
    return _table(head, rows)


def _by_shards(facts: Facts, work: float, crossing: float) -> str:
    head = ("shards", "work per round", "memory per shard", "vectors out of a shard", "blocks, driver's time")
    rows = []
    for shards in SHARDS:
        small = SITES * (facts.site_bytes - ROWS * FEATURES * 8 + WIDTH**2 * 8)
        held = facts.worker + (small + TOTAL_ROWS * WIDTH * 8) / shards
        blocks, out = shards * (shards - 1), crossing / shards
        rows.append(
            (
                str(shards),
                f"{work / shards:,.0f} s",
                f"{held / 1e9:,.1f} GB",
                f"{out / 1e6:,.0f} MB, {out / LINK:.2f} s at 10 Gbit/s",
                f"{blocks:,}, {blocks * facts.block:.1f} s",
            )
        )
    return _table(head, rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def _rounded(value: float) -> str:
    """A number with two digits, because it is only an estimate."""
    return f"{float(f'{value:.2g}'):,.0f}"


def draw(facts: Facts, path: Path) -> None:
    """Plot seconds per round by sites, local and on two shards, and by shards."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    every = sorted([*facts.runs, *facts.big], key=lambda cost: (cost.sites, cost.shards))
    local = [cost for cost in every if cost.engine == "local"]
    two = [cost for cost in every if cost.engine == "ray" and cost.shards == 2]
    what = "busiest" if facts.busy > QUIET else "seconds"
    for line, colour, label in ((local, "#b8561f", "one process"), (two, "#1f5a99", "Ray, two shards")):
        left.loglog(*_line(line, "sites", what), "o-", color=colour, label=label)
    left.set_xlabel("sites")
    left.set_ylabel("seconds per round" if what == "seconds" else "CPU seconds per round,\nbusiest process")
    left.legend(frameon=False)
    most = max(cost.sites for cost in facts.runs)
    shards = [cost for cost in every if cost.engine == "ray" and cost.sites == most]
    right.plot(*_line(shards, "shards", what), "o-", color="#1f5a99")
    right.set_xticks([cost.shards for cost in shards])
    right.set_ylim(bottom=0)
    right.set_xlabel(f"shards, {most:,} sites on {facts.cores} cores")
    for panel in (left, right):
        panel.grid(True, which="major", color="#dddddd", lw=0.7)
        panel.set_axisbelow(True)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _line(costs: list[Cost], across: str, what: str) -> tuple[list[float], list[float]]:
    return [getattr(cost, across) for cost in costs], [getattr(cost, what) / cost.rounds for cost in costs]
