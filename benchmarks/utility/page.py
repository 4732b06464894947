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


def _case(
    results: Sequence[Result], data: str, sites: int, epsilon: float, *, blind: bool = False
) -> dict[str, Result]:
    """Everybody's result on one case: with the settings that were best, or with those chosen blindly."""
    return {
        result.contender: result
        for result in results
        if (result.data, result.sites, result.epsilon) == (data, sites, epsilon)
        and (result.contender == OURS or result.blind == blind)
    }


def _cases(results: Sequence[Result]) -> list[tuple[str, int]]:
    """(data, sites) of every table."""
    return [
        (data, sites)
        for data in _TITLES
        for sites in sorted({result.sites for result in results if result.data == data})
        if {OURS, _NO_PRIVACY, _POOLED} <= set(_case(results, data, sites, 1.0))
    ]


def _tables(results: Sequence[Result]) -> list[str]:
    found = []
    for data, sites in _cases(results):
        case, blind = _case(results, data, sites, 1.0), _case(results, data, sites, 1.0, blind=True)
        lines = [f"**{_TITLES[data]}, {sites} sites, ε = 1, δ = 10⁻⁵**", "", *_table(case, blind)]
        found.append("\n".join(lines))
    return found


def _table(case: dict[str, Result], blind: dict[str, Result]) -> list[str]:
    base = case[_NO_PRIVACY].loss
    price = case[_POOLED].loss - base
    heads = ["", "test accuracy", "test loss", "excess loss", "of the pooled price", "test loss, set blindly"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for result in sorted(case.values(), key=lambda result: result.loss):
        name, excess = result.contender, result.loss - base
        unseen = blind.get(name)
        cells = [
            f"**{name}**" if name == OURS else name,
            _spread(result.accuracy, result.accuracy_std),
            _spread(result.loss, result.loss_std),
            f"{excess:.4f}",
            "" if name == _NO_PRIVACY else f"{excess / price:.2f}",
            "" if unseen is None else _spread(unseen.loss, unseen.loss_std),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _spread(mean: float, std: float) -> str:
    """On one line, by spaces that do not break."""
    return f"{mean:.4f}\u00a0±\u00a0{std:.4f}"


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
    """How `taciturn` stands among the decentralised contenders, over the tables."""
    blind, tuned = _standing(results, blind=True), _standing(results, blind=False)
    return (
        "Beside decentralised rivals whose settings were chosen as ours are, without the data, `taciturn` is "
        f"{blind}; beside rivals set on the test rows, {tuned}."
    )


def _standing(results: Sequence[Result], *, blind: bool) -> str:
    """Against the best rival of each table: ahead or behind by two standard errors, or neither."""
    verdicts = []
    for data, sites in _cases(results):
        case = _case(results, data, sites, 1.0, blind=blind)
        own = case.pop(OURS)
        best = min((result for result in case.values() if result.decentralised), key=lambda rival: rival.loss)
        error = math.hypot(own.loss_std, best.loss_std) / math.sqrt(own.seeds)
        gap = own.loss - best.loss
        verdicts.append("level" if abs(gap) <= 2 * error else "behind" if gap > 0 else "ahead")
    counts = [
        f"{word} in {verdicts.count(word)}" for word in ("ahead", "level", "behind") if word in verdicts
    ]
    return f"{', '.join(counts)} of {len(verdicts)} tables"


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


_COLOURS = ("#000000", "#0072B2", "#56B4E9", "#777777", "#D55E00", "#E69F00", "#CC79A7", "#009E73", "#8C6D31")


def draw(results: Sequence[Result], path: Path) -> None:
    """Test loss against epsilon, on Adult with five sites; bars are a standard deviation over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "taciturn"
    figure, axis = plt.subplots(figsize=(9.0, 4.6))
    budgets = sorted({result.epsilon for result in results if (result.data, result.sites) == ("adult", 5)})
    cases = [_case(results, "adult", 5, epsilon) for epsilon in budgets]
    names = [name for name in _case(results, "adult", 5, 1.0) if name != _NO_PRIVACY]
    for k, (name, colour) in enumerate(zip(names, _COLOURS, strict=False)):
        line = [case[name] for case in cases if name in case]
        axis.errorbar(
            [result.epsilon * 1.012 ** (k - len(names) / 2) for result in line],  # bars side by side
            [result.loss for result in line],
            [result.loss_std for result in line],
            label=name,
            color=colour,
            linewidth=2.4 if name == OURS else 1.2,
            linestyle="-" if line[0].decentralised else "--",
            marker="o" if name == OURS else ".",
            capsize=2,
            zorder=3 if name == OURS else 2,
        )
    base = cases[0][_NO_PRIVACY].loss
    axis.axhline(base, color="0.5", linestyle=":", label=_NO_PRIVACY)
    axis.set(xscale="log", xlabel="epsilon, at delta = 1e-5", ylabel="test loss")
    axis.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axis.minorticks_off()
    axis.set_title("Adult, five sites, complete graph", fontsize=10)
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
