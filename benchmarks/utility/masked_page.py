"""docs/masked_utility.md: masked descent beside a trusted centre, as tables and one picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from .masked import SEEDS, Line

_HEAD = Path(__file__).with_name("masked_page.md")


def write_page(lines: Sequence[Line], out: Path) -> Path:
    """The page, its picture and its numbers."""
    text = "[\n" + ",\n".join(json.dumps(asdict(line)) for line in lines) + "\n]\n"
    (out / "masked_utility.json").write_text(text, encoding="utf-8")
    _draw([line for line in lines if line.epsilon == 1.0], out / "masked_utility.svg")
    page = out / "masked_utility.md"
    parts = [_HEAD.read_text(encoding="utf-8").format(seeds=SEEDS), *_tables(lines), *_frontier(lines)]
    page.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return page


def _tables(lines: Sequence[Line]) -> list[str]:
    found = []
    for data in dict.fromkeys(line.data for line in lines):
        found += [
            f"## {data}, ε = 1",
            "",
            "| | sites | rows | test loss | accuracy | of the centre's price |",
        ]
        found += ["|---|---:|---|---:|---:|---:|"]
        found += [_row(line) for line in lines if (line.data, line.epsilon) == (data, 1.0)]
        found.append("")
    return found


def _row(line: Line) -> str:
    sites = "" if line.sites == 1 else str(line.sites)
    return (
        f"| {line.contender} | {sites} | {line.split} | {line.loss:.4f} ± {line.loss_std:.4f} "
        f"| {line.accuracy:.4f} | {line.ratio:.2f} |"
    )


def _frontier(lines: Sequence[Line]) -> list[str]:
    """Adult, twenty sites, other budgets."""
    adult = [
        line for line in lines if line.data == "adult" and line.sites in (1, 20) and line.split != "uneven"
    ]
    budgets = sorted({line.epsilon for line in adult})
    if len(budgets) < 2:
        return []
    names = ["trusted centre, objective perturbation", "masked descent, 1 colluding"]
    found = ["## Adult, twenty sites, other budgets", "", "| ε | " + " | ".join(names) + " | of the price |"]
    found += ["|---:|---:|---:|---:|"]
    for epsilon in budgets:
        at = {
            line.contender: line for line in adult if line.epsilon == epsilon and line.split in ("", "even")
        }
        found.append(
            f"| {epsilon:g} | "
            + " | ".join(f"{at[name].loss:.4f}" for name in names)
            + f" | {at[names[1]].ratio:.2f} |"
        )
    return found


def _draw(lines: Sequence[Line], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.8, 3.2), layout="constrained")
    tables = list(dict.fromkeys(line.data for line in lines))
    for shift, (sites, mark) in enumerate(((5, "o"), (20, "s"), (100, "^"))):
        shown = [line for line in lines if line.sites == sites and line.contender.endswith(", 1 colluding")]
        x = [tables.index(line.data) + 0.15 * (shift - 1) for line in shown]
        axes.plot(x, [line.ratio for line in shown], mark, ms=5, alpha=0.8, label=f"{sites} sites")
    axes.axhline(1.0, color="#666666", lw=0.8)
    axes.annotate(
        "trusted centre", (len(tables) - 0.5, 1.0), va="bottom", ha="right", color="#666666", fontsize=8
    )
    axes.set_xticks(range(len(tables)), tables)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("excess loss / that of the centre")
    axes.legend(frameon=False, ncols=3, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
