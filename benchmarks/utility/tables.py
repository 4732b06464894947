"""Compare the models of every table with the linear model without privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from .anchors import BOOSTING, EBM, WHITE_CENTRE
from .contest import CURVES, MAPPED, MASKED, Result
from .results import Found
from .rivals import NO_PRIVACY

TITLES = {
    "adult": "Adult",
    "credit": "Credit",
    "support": "SUPPORT2",
    "fair": "Fair",
    "insurance": "Insurance",
    "doctor": "Doctor",
    "rand": "RAND",
    "chains": "Chains",
    "staff": "Staff",
    "pension": "Pension",
    "mothers": "Mothers",
    "default": "Default",
}
HELD_BACK = {data: TITLES[data] for data in list(TITLES)[5:]}
_HEADS = {
    NO_PRIVACY: "linear, no privacy",
    BOOSTING: "boosting, no privacy",
    MASKED: "private, linear",
    CURVES: "private, curves",
    MAPPED: "private, mapped",
    WHITE_CENTRE: "whitened centre",
    EBM: "DP-EBM, centre",
}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with right-aligned numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(mean: float, std: float, digits: int = 4) -> str:
    """Mean and standard deviation on one line, with non-breaking spaces."""
    return f"{mean:.{digits}f}\u00a0±\u00a0{std:.{digits}f}"


def compare(found: Found, titles: Mapping[str, str], *, verdict_only: bool = False) -> str:
    """The test loss at epsilon 1 with twenty sites, one colluding; bold if a private model is ahead."""
    rows = []
    for data, title in titles.items():
        cells = [_cell(found, data, found.at(data, name, 1.0)) for name in _HEADS]
        rows.append([title, *cells])
    verdict = f"{_ahead(found, titles)} {_harm(found, titles)}"
    return verdict if verdict_only else f"{verdict}\n\n{table(['test loss', *_HEADS.values()], rows)}"


def _cell(found: Found, data: str, result: Result | None) -> str:
    if result is None:
        return ""
    better = result.loss < found.base(data).loss and not result.contender.startswith("no privacy")
    return f"**{result.loss:.4f}**" if better else f"{result.loss:.4f}"


def _ahead(found: Found, titles: Mapping[str, str]) -> str:
    known = [data for data in titles if found.at(data, MAPPED, 1.0) is not None]
    ahead = [data for data in known if _loss(found, data, MAPPED) < found.base(data).loss]
    behind = [titles[data] for data in known if data not in ahead]
    rest = f" (not on {', '.join(behind)})" if behind else ""
    both = found.common(known, (EBM,), 1.0)
    trees = sum(_loss(found, data, MAPPED) < _loss(found, data, EBM) for data in both)
    return (
        f"The mapped private model beats the pooled linear model without privacy on {len(ahead)} of "
        f"{len(known)} tables{rest}. It beats DP-EBM on {trees} of {len(both)}."
    )


def _harm(found: Found, titles: Mapping[str, str]) -> str:
    """A sentence on how often the feature map makes the model worse, over all budgets, and by how much."""
    cells = better = worse = 0
    worst = (0.0, "")
    for epsilon in found.budgets:
        for data, title in titles.items():
            linear, mapped = found.at(data, MASKED, epsilon), found.at(data, MAPPED, epsilon)
            if linear is None or mapped is None:
                continue
            error = math.hypot(linear.loss_std, mapped.loss_std) / math.sqrt(mapped.seeds)
            gap, cells = mapped.loss - linear.loss, cells + 1
            better, worse = better + (gap < -2 * error), worse + (gap > 2 * error and gap > 1e-9)
            worst = max(worst, (gap, f"{title} at epsilon {epsilon:g}"))
    most = (
        f"The map increases the loss by at most {worst[0]:.4f} ({worst[1]})."
        if worst[0] > 0
        else "The map never increases the loss."
    )
    return (
        f"In {cells} combinations of table and budget we compared the map of the default rule with no map. "
        f"The map is better than no map in {better} and worse in {worse} of them, by more than two standard "
        f"errors. {most}"
    )


def _loss(found: Found, data: str, name: str) -> float:
    result = found.at(data, name, 1.0)
    return math.inf if result is None else result.loss
