"""docs/utility.md: what was measured, how, and what it means; with the frontier as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from .contest import OURS, Result

_NO_PRIVACY, _POOLED = "no privacy, pooled", "objective perturbation, pooled"
_TITLES = {"adult": "Adult", "credit": "Credit", "support": "Support"}
_TEXT = Path(__file__).with_name("page.md")


def write_page(results: Sequence[Result], out: Path) -> Path:
    """The page, its picture and its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "utility.json").write_text(
        "[\n" + ",\n".join(json.dumps(result.to_dict()) for result in results) + "\n]\n", encoding="utf-8"
    )
    draw(results, out / "utility.svg")
    page = _TEXT.read_text(encoding="utf-8")
    for mark, text in {
        "<!-- aim -->": _aim(results),
        "<!-- rank -->": _rank(results),
        "<!-- tables -->": "\n\n".join(_tables(results)),
        "<!-- frontier -->": _frontier(results),
    }.items():
        page = page.replace(mark, text)
    (out / "utility.md").write_text(page, encoding="utf-8")
    return out / "utility.md"


def _case(results: Sequence[Result], data: str, sites: int, epsilon: float) -> dict[str, Result]:
    return {
        result.contender: result
        for result in results
        if (result.data, result.sites, result.epsilon) == (data, sites, epsilon)
    }


def _tables(results: Sequence[Result]) -> list[str]:
    found = []
    for data, title in _TITLES.items():
        for sites in sorted({result.sites for result in results if result.data == data}):
            case = _case(results, data, sites, 1.0)
            if not {OURS, _NO_PRIVACY, _POOLED} <= set(case):
                continue
            lines = [f"**{title}, {sites} sites, ε = 1, δ = 10⁻⁵**", "", *_table(case)]
            found.append("\n".join(lines))
    return found


def _table(case: dict[str, Result]) -> list[str]:
    base = case[_NO_PRIVACY].loss
    price = case[_POOLED].loss - base
    lines = ["| | test accuracy | test loss | excess loss | of the pooled price |", "|---|---|---|---|---|"]
    for result in sorted(case.values(), key=lambda result: result.loss):
        name = f"**{result.contender}**" if result.contender == OURS else result.contender
        excess = result.loss - base
        cells = [
            name,
            f"{result.accuracy:.4f} ± {result.accuracy_std:.4f}",
            f"{result.loss:.4f} ± {result.loss_std:.4f}",
            f"{excess:.4f}",
            "" if result.contender == _NO_PRIVACY else f"{excess / price:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _aim(results: Sequence[Result]) -> str:
    case = _case(results, "adult", 5, 1.0)
    own, base, pooled = case[OURS], case[_NO_PRIVACY], case[_POOLED]
    ratio = (own.loss - base.loss) / (pooled.loss - base.loss)
    return (
        f"On Adult, five sites, (1, 10⁻⁵): test accuracy {own.accuracy:.3f} ({base.accuracy:.3f} without "
        f"privacy, {pooled.accuracy:.3f} with a trusted centre), and {ratio:.2f} times the excess loss of "
        f"the trusted centre. None of the {own.seeds} certificates is above epsilon = {_up(own.spent):g}."
    )


def _rank(results: Sequence[Result]) -> str:
    """How `tacit` stands among the decentralised contenders, over the tables."""
    behind = []
    for data in _TITLES:
        for sites in sorted({result.sites for result in results if result.data == data}):
            case = [result for result in _case(results, data, sites, 1.0).values() if result.decentralised]
            own = next(result.loss for result in case if result.contender == OURS)
            behind.append(own - min(result.loss for result in case))
    first = sum(gap == 0 for gap in behind)
    return (
        f"Among the decentralised contenders `tacit` has the least loss in {first} of {len(behind)} tables, and is "
        f"at most {max(behind):.4f} behind the best of them in the others, although it alone was not tuned."
    )


def _up(spent: float | None) -> float:
    """Six digits, never below."""
    return math.ceil((spent or 0.0) * 1e6) / 1e6


def _frontier(results: Sequence[Result]) -> str:
    budgets = sorted({result.epsilon for result in results if (result.data, result.sites) == ("adult", 5)})
    names = [name for name in _case(results, "adult", 5, 1.0) if name != _NO_PRIVACY]
    lines = [f"| test loss at ε = | {' | '.join(f'{epsilon:g}' for epsilon in budgets)} |"]
    lines.append(f"|---|{'---|' * len(budgets)}")
    for name in names:
        found = [_case(results, "adult", 5, epsilon).get(name) for epsilon in budgets]
        cells = ["" if result is None else f"{result.loss:.3f}" for result in found]
        lines.append(f"| {f'**{name}**' if name == OURS else name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(results: Sequence[Result], path: Path) -> None:
    """Test loss against epsilon, on Adult with five sites; bars are a standard deviation over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "tacit"
    figure, axis = plt.subplots(figsize=(7.2, 4.6))
    colours = [
        "#000000",
        "#0072B2",
        "#56B4E9",
        "#999999",
        "#D55E00",
        "#E69F00",
        "#CC79A7",
        "#009E73",
        "#8C6D31",
    ]
    adult = [result for result in results if (result.data, result.sites) == ("adult", 5)]
    names = list(dict.fromkeys(result.contender for result in adult))
    for name, colour in zip([n for n in names if n != _NO_PRIVACY], colours, strict=False):
        line = sorted((r for r in adult if r.contender == name), key=lambda result: result.epsilon)
        axis.errorbar(
            [result.epsilon for result in line],
            [result.loss for result in line],
            [result.loss_std for result in line],
            label=name,
            color=colour,
            linewidth=2.4 if name == OURS else 1.2,
            marker="o" if name == OURS else ".",
            capsize=2,
            zorder=3 if name == OURS else 2,
        )
    base = next(result.loss for result in adult if result.contender == _NO_PRIVACY)
    axis.axhline(base, color="0.5", linestyle=":", label=_NO_PRIVACY)
    axis.set(xscale="log", xlabel="epsilon, at delta = 1e-5", ylabel="test loss", ylim=(0.3, 0.72))
    axis.set_title("Adult, five sites, complete graph", fontsize=10)
    axis.legend(fontsize=7, frameon=False)
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
