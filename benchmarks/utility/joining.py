"""Mean excess losses for each budget, their ratios, and the budgets at which joining is worth it."""

from __future__ import annotations

from collections.abc import Sequence

from .anchors import ALONE_FREE, BOOSTING, EBM, WHITE_CENTRE
from .contest import ALONE, MAPPED, MASKED, PENALTY, PLAIN, WHITE_PENALTY
from .results import Found
from .tables import TITLES, table

_ROWS = (
    (MAPPED, 5),
    (MAPPED, 20),
    (MAPPED, 100),
    (MASKED, 5),
    (MASKED, 20),
    (MASKED, 100),
    (PLAIN, 20),
    (WHITE_CENTRE, 1),
    (EBM, 1),
    (ALONE, 20),
    (WHITE_PENALTY, 20),
    (PENALTY, 20),
    (ALONE_FREE, 5),
    (ALONE_FREE, 20),
    (ALONE_FREE, 100),
    (BOOSTING, 1),
)
_CORE = (MAPPED, MASKED, PLAIN, WHITE_CENTRE)  # the means are over the tables on which all of these ran
_AIMS = (
    (MASKED, WHITE_CENTRE, {0.1: None, 0.3: None, 1.0: 1.2, 3.0: 1.2, 10.0: 1.2}),
    (MASKED, PLAIN, {0.1: 0.85, 0.3: 0.85, 1.0: 0.7, 3.0: 0.7, 10.0: 0.7}),
    (ALONE, PENALTY, {0.1: 0.85, 0.3: 0.85, 1.0: 0.7, 3.0: 0.7, 10.0: 0.7}),
    (WHITE_PENALTY, PENALTY, dict.fromkeys((0.1, 0.3, 1.0, 3.0, 10.0))),
)


def sums(found: Found) -> str:
    """The mean over the tables of the excess loss over the pooled linear model without privacy."""
    shared = {epsilon: found.common(list(TITLES), _CORE, epsilon) for epsilon in found.budgets}
    rows = [["number of tables", *(str(len(tables)) for tables in shared.values())]]
    for name, sites in _ROWS:
        cells = [found.excess(tables, name, e, sites) for e, tables in shared.items()]
        if any(cell is not None for cell in cells):
            where = f", {sites} sites" if sites > 1 else ""
            counts = [len(tables) for tables in shared.values()]
            shown = [
                "" if cell is None or not count else f"{cell / count:.4f}"
                for cell, count in zip(cells, counts, strict=True)
            ]
            rows.append([f"{name}{where}", *shown])
    return table(["mean excess loss at ε =", *[f"{epsilon:g}" for epsilon in found.budgets]], rows)


def aims(found: Found) -> str:
    """Ratios of the sums of excess losses of two contenders, over the tables that both have."""
    rows = []
    for own, other, most in _AIMS:
        cells = []
        for epsilon, aim in most.items():
            shared = found.common(list(TITLES), (own, other), epsilon)
            cells.append(_ratio(found, shared, own, other, epsilon, aim))
        rows.append([f"{own} / {other}", *cells])
    own, other, most = _AIMS[0]
    cells = []
    for epsilon in most:
        shared = [data for data in found.common(list(TITLES), (own, other), epsilon) if data != "default"]
        cells.append(_ratio(found, shared, own, other, epsilon, None))
    rows.append(["the first row, without the table Default", *cells])
    return table(["sums of excess losses, 20 sites, at ε =", *[f"{e:g}" for e in found.budgets]], rows)


def _ratio(
    found: Found, shared: Sequence[str], own: str, other: str, epsilon: float, aim: float | None
) -> str:
    above, below = found.excess(shared, own, epsilon), found.excess(shared, other, epsilon)
    if not shared or above is None or below is None:
        return ""
    met = aim is None or (above <= aim * below if below > 0 else above <= below)
    digits = 2 if met or below <= 0 or aim is None or round(above / below, 2) > aim else 3
    text = f"{above / below:.{digits}f}" if below > 0 else f"{above:.3f} and {below:.3f}"
    return text if aim is None else f"{text} (aim {aim:g}{'' if met else ', missed'})"


def joined(found: Found) -> str:
    """The smallest budget at which the joint model beats a site alone, for each table; and the counts."""
    rows, wins, cells = [], 0, 0
    for data, title in TITLES.items():
        line = []
        for sites in found.sizes:
            alone = found.at(data, ALONE_FREE, 1.0, sites)
            joint = [(e, found.at(data, MAPPED, e, sites)) for e in found.budgets]
            known = [(e, r) for e, r in joint if r is not None]
            if alone is None or not known:
                line.append("")
                continue
            better = [e for e, r in known if r.loss < alone.loss]
            wins, cells = wins + len(better), cells + len(known)
            least = min((e for e in better if all(b in better for b, _ in known if b >= e)), default=None)
            word = "alone" if least is None else f"joint from {least:g}"
            if len(known) < len(found.budgets):
                word += f", of {', '.join(f'{e:g}' for e, _ in known)}"
            line.append(f"{word} ({alone.loss:.3f}; {_at_one(known):.3f})")
        rows.append([title, *line])
    heads = ["", *[f"{sites} sites" for sites in found.sizes]]
    return (
        f"In {wins} of {cells} combinations of table, number of sites and budget, the joint private model is "
        f"better than a site's own model without privacy.\n\n{table(heads, rows)}"
    )


def _at_one(known: Sequence[tuple[float, object]]) -> float:
    """The joint model's loss at epsilon 1."""
    return next((float(r.loss) for e, r in known if e == 1.0), float("nan"))  # type: ignore[attr-defined]
