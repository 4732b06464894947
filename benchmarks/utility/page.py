"""docs/utility.md: the text of page.md with the tables, and the verdicts that follow from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from .contest import ALONE, CENTRE, MASKED, Result
from .made_up import KINDS
from .pictures import draw_frontier, draw_ratios
from .results import Found
from .rivals import POOLED
from .tasks import SPLITS

TITLES = {
    "adult": "Adult",
    "credit": "Credit",
    "support": "SUPPORT2",
    "fair": "Fair",
    "insurance": "Insurance",
}
_TEXT = Path(__file__).with_name("page.md")


def write_page(results: Sequence[Result], out: Path) -> Path:
    """The page, its pictures and its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "utility.json").write_text(
        "[\n" + ",\n".join(json.dumps(result.to_dict()) for result in results) + "\n]\n", encoding="utf-8"
    )
    found = Found(results)
    draw_frontier(found, out / "utility.svg")
    draw_ratios(found, TITLES, out / "utility_ratios.svg")
    page = _TEXT.read_text(encoding="utf-8")
    for mark, text in {
        "<!-- aim -->": _aim(found),
        "<!-- masked -->": "\n\n".join(_masked(found, data) for data in TITLES),
        "<!-- rivals -->": "\n\n".join(_rivals(found, data) for data in TITLES),
        "<!-- standing -->": _standing(found),
        "<!-- decor -->": _decor(found),
        "<!-- frontier -->": _frontier(found),
        "<!-- kinds -->": _kinds(found),
    }.items():
        page = page.replace(mark, text)
    (out / "utility.md").write_text(page, encoding="utf-8")
    return out / "utility.md"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _spread(mean: float, std: float, digits: int = 4) -> str:
    """On one line, by spaces that do not break."""
    return f"{mean:.{digits}f}\u00a0±\u00a0{std:.{digits}f}"


def _price(found: Found, result: Result | None) -> str:
    """The excess loss over the centre's, with its standard deviation over seeds."""
    if result is None:
        return ""
    price = found.price(result.data, result.epsilon)
    return _spread(found.ratio(result), result.loss_std / price, 2)


def _masked(found: Found, data: str) -> str:
    """Masked descent beside both trusted centres."""
    centre, same = found.centre(data, 1.0, POOLED), found.centre(data, 1.0, CENTRE)
    rows = [
        [name, *[_price(found, result)] * len(found.sizes)]
        for name, result in ((POOLED, centre), (CENTRE, same))
    ]
    for split in SPLITS:
        where = f"by its column `{found.columns[data]}`" if split == "by column" else split
        line = [found.get(data, sites, 1.0, MASKED, split=split, colluding=1) for sites in found.sizes]
        rows.append([f"masked, 1 colluding, {where}", *[_price(found, result) for result in line]])
    line = [found.get(data, n, 1.0, MASKED, colluding=max(1, n // 3)) for n in found.sizes]
    rows.append(["masked, a third colluding, even", *[_price(found, result) for result in line]])
    heads = [f"**{TITLES[data]}**", *[f"{sites} sites" for sites in found.sizes]]
    return _table(heads, rows)


def _rivals(found: Found, data: str) -> str:
    """Everybody who holds a part of the rows, best first, and what is pooled."""
    names = found.contenders(data)
    rows = []
    for name in names:
        colluding = 1 if name == MASKED else None
        line = [found.get(data, sites, 1.0, name, colluding=colluding) for sites in found.sizes]
        title = f"**{name}, 1 colluding**" if name == MASKED else name
        cells = ["" if r is None else f"{_spread(r.loss, r.loss_std)} ({found.ratio(r):.2f})" for r in line]
        rows.append([title, *cells])
    for result in found.pooled(data, 1.0):
        ratio = "" if result.seeds == 1 else f" ({found.ratio(result):.2f})"
        rows.append([result.contender, f"{_spread(result.loss, result.loss_std)}{ratio}", "", ""])
    heads = [f"**{TITLES[data]}**, test loss", *[f"{sites} sites" for sites in found.sizes]]
    return _table(heads, rows)


def _verdicts(found: Found) -> Iterator[tuple[Result, Result, str]]:
    """Masked descent against the best rival of each table: ahead or behind by two standard errors, or not."""
    for data in TITLES:
        for sites in found.sizes:
            own = found.get(data, sites, 1.0, MASKED, colluding=1)
            rivals = [found.get(data, sites, 1.0, name) for name in found.contenders(data) if name != MASKED]
            known = [rival for rival in rivals if rival is not None]
            if own is None or not known:
                continue
            best = min(known, key=lambda rival: rival.loss)
            error = math.hypot(own.loss_std, best.loss_std) / math.sqrt(own.seeds)
            gap = own.loss - best.loss
            yield own, best, "level" if abs(gap) <= 2 * error else "behind" if gap > 0 else "ahead"


def _standing(found: Found) -> str:
    verdicts = list(_verdicts(found))
    counts = [(word, sum(v == word for *_, v in verdicts)) for word in ("ahead", "level", "behind")]
    text = ", ".join(f"{word} in {count}" for word, count in counts if count)
    rows = [
        [
            f"{TITLES[own.data]}, {own.sites} sites",
            _spread(own.loss, own.loss_std),
            best.contender,
            _spread(best.loss, best.loss_std),
            verdict,
        ]
        for own, best, verdict in verdicts
    ]
    heads = ["", "masked descent", "best rival", "its test loss", ""]
    return (
        f"Masked descent against one curious site, never tuned, is {text} of {len(verdicts)} tables, beside "
        "the best decentralised rival of each, tuned on the test rows. Level means: within two standard "
        f"errors of the difference.\n\n{_table(heads, rows)}"
    )


def _aim(found: Found) -> str:
    ratios = [
        found.ratio(r)
        for r in found.results
        if (r.contender, r.colluding, r.epsilon) == (MASKED, 1, 1.0)
        and r.data in TITLES
        and r.sites in found.sizes
    ]
    own, base = found.get("adult", 20, 1.0, MASKED, colluding=1), found.base("adult")
    pooled = found.centre("adult", 1.0, POOLED)
    if own is None or pooled is None:
        return ""
    return (
        f"Against one curious site, over {len(ratios)} cases (five tables, 5, 20 and 100 sites, rows dealt "
        f"evenly, unevenly and by a column): {min(ratios):.2f} to {max(ratios):.2f} times the excess loss of "
        f"a trusted centre. On Adult with twenty sites: test accuracy {own.accuracy:.3f}, "
        f"{base.accuracy:.3f} without privacy, {pooled.accuracy:.3f} with the trusted centre; the "
        f"certificate says epsilon ≤ {_up(own.spent):g}."
    )


def _up(spent: float | None) -> float:
    """Six digits, never below."""
    return math.ceil((spent or 0.0) * 1e6) / 1e6


def _decor(found: Found) -> str:
    names = {"ring": "a ring", "torus": "a 4 x 4 torus", "complete": "a complete graph"}
    rows = []
    own = found.get("adult", 16, 1.0, MASKED, colluding=1)
    lines = [("**masked descent, 1 colluding**", "any connected graph", own)]
    for topology, title in names.items():
        for name in ("DECOR", "DECOR, its own accounting"):
            lines.append((name, title, found.get("adult", 16, 1.0, name, topology=topology)))
    for name, title, result in lines:
        if result is not None:
            split = f"{result.setting[3]:g}" if result.setting else ""
            rows.append([name, title, _spread(result.loss, result.loss_std), _price(found, result), split])
    return _table(["", "links", "test loss", "of the centre's price", "pairs' noise / own"], rows)


def _frontier(found: Found) -> str:
    budgets = found.budgets("adult", 20)
    names = [POOLED, CENTRE, MASKED, ALONE, *found.rivals_at("adult", 20, budgets)]
    rows = []
    for name in names:
        line = [found.at(name, epsilon) for epsilon in budgets]
        cells = ["" if r is None else _spread(r.loss, r.loss_std, 3) for r in line]
        rows.append([f"**{name}, 1 colluding**" if name == MASKED else name, *cells])
    return _table(["test loss at ε =", *[f"{epsilon:g}" for epsilon in budgets]], rows)


def _kinds(found: Found) -> str:
    rows = []
    for kind, (n, _) in KINDS.items():
        own, pooled = found.get(kind, 20, 1.0, MASKED, colluding=1), found.centre(kind, 1.0, POOLED)
        if own is not None and pooled is not None:
            cells = [_spread(pooled.loss, pooled.loss_std), _spread(own.loss, own.loss_std)]
            rows.append([kind, f"{n:,}", f"{found.base(kind).loss:.4f}", *cells, _price(found, own)])
    heads = ["table", "rows", "no privacy", "trusted centre", "masked, 20 sites", "of the centre's price"]
    return _table(heads, rows)
