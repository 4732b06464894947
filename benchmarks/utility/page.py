"""Write docs/utility.md: the text of page.md with the tables and verdicts from the results."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from .contest import MASKED, Result
from .joining import aims, joined, sums
from .made_up import KINDS
from .pictures import draw_sums, draw_tables
from .results import Found
from .rivals import POOLED
from .tables import HELD_BACK, TITLES, compare, spread, table
from .tasks import SPLITS

RIVALRY = ("adult", "credit", "support", "fair", "insurance")
_TEXT = Path(__file__).with_name("page.md")


def write_page(results: Sequence[Result], out: Path) -> Path:
    """Write the page, its pictures and its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "utility.json").write_text(
        "[\n" + ",\n".join(json.dumps(result.to_dict()) for result in results) + "\n]\n", encoding="utf-8"
    )
    found = Found(results)
    draw_sums(found, list(TITLES), out / "utility.svg")
    draw_tables(found, TITLES, out / "utility_tables.svg")
    page = _TEXT.read_text(encoding="utf-8")
    for mark, text in {
        "<!-- aims -->": aims(found),
        "<!-- sums -->": sums(found),
        "<!-- compared -->": compare(found, TITLES),
        "<!-- held back -->": compare(found, HELD_BACK, verdict_only=True),
        "<!-- joining -->": joined(found),
        "<!-- splits -->": _splits(found),
        "<!-- standing -->": _standing(found),
        "<!-- rivals -->": "\n\n".join(_rivals(found, data) for data in RIVALRY),
        "<!-- decor -->": _decor(found),
        "<!-- kinds -->": _kinds(found),
    }.items():
        page = page.replace(mark, text)
    (out / "utility.md").write_text(page, encoding="utf-8")
    return out / "utility.md"


def _splits(found: Found) -> str:
    cells = [found.get("adult", 20, 1.0, MASKED, split=split, colluding=1) for split in SPLITS]
    shown = ["" if r is None else spread(r.loss, r.loss_std) for r in cells]
    return table(["Adult, 20 sites", "even", "uneven", "by `education`"], [["masked descent", *shown]])


def _price(found: Found, result: Result | None) -> str:
    """The excess loss divided by the centre's excess loss, with its standard deviation over seeds."""
    if result is None:
        return ""
    price = found.price(result.data, result.epsilon)
    return spread(found.ratio(result), result.loss_std / price, 2)


def _rivals(found: Found, data: str) -> str:
    """All decentralised contenders, best first, and the pooled ones."""
    rows = []
    for name in found.contenders(data):
        line = [found.at(data, name, 1.0, sites) for sites in found.sizes]
        title = f"**{name}, 1 colluding**" if name == MASKED else name
        cells = ["" if r is None else f"{spread(r.loss, r.loss_std)} ({found.ratio(r):.2f})" for r in line]
        rows.append([title, *cells])
    for result in found.pooled(data, 1.0):
        ratio = "" if result.contender.startswith("no privacy") else f" ({found.ratio(result):.2f})"
        rows.append([result.contender, f"{spread(result.loss, result.loss_std)}{ratio}", "", ""])
    return table([f"**{TITLES[data]}**, test loss", *[f"{sites} sites" for sites in found.sizes]], rows)


def _standing(found: Found) -> str:
    """Count the cases in which masked descent is ahead of, level with or behind the best rival.

    It is level if the difference is at most two standard errors.
    """
    counts = dict.fromkeys(("ahead", "level", "behind"), 0)
    for data in RIVALRY:
        for sites in found.sizes:
            own = found.at(data, MASKED, 1.0, sites)
            names = [n for n in found.contenders(data) if not n.startswith(("masked", "taciturn"))]
            known = [r for name in names if (r := found.at(data, name, 1.0, sites)) is not None]
            if own is None or not known:
                continue
            best = min(known, key=lambda rival: rival.loss)
            error = math.hypot(own.loss_std / own.seeds**0.5, best.loss_std / best.seeds**0.5)
            gap = own.loss - best.loss
            counts["level" if abs(gap) <= 2 * error else "behind" if gap > 0 else "ahead"] += 1
    text = " and ".join(f"{word} in {count}" for word, count in counts.items() if count)
    return (
        "A case is a table and a number of sites. In each case we compare masked descent with the best other "
        "decentralised method. Masked descent protects against one curious site and was never tuned; the "
        f"other methods were tuned on the test rows. Masked descent is {text} of {sum(counts.values())} "
        "cases. *Level* means that the difference is within two standard errors."
    )


def _decor(found: Found) -> str:
    names = {"ring": "a ring", "torus": "a 4 x 4 torus", "complete": "a complete graph"}
    own = found.get("adult", 16, 1.0, MASKED, colluding=1)
    lines = [("**masked descent, 1 colluding**", "any connected graph", own)]
    for topology, title in names.items():
        for name in ("DECOR", "DECOR, its own accounting"):
            lines.append((name, title, found.get("adult", 16, 1.0, name, topology=topology)))
    rows = []
    for name, title, result in lines:
        if result is not None:
            split = f"{result.setting[3]:g}" if result.setting else ""
            rows.append([name, title, spread(result.loss, result.loss_std), _price(found, result), split])
    share = "excess loss / that of the centre"
    return table(["", "links", "test loss", share, "pairwise noise / own noise"], rows)


def _kinds(found: Found) -> str:
    rows = []
    for kind, (n, _) in KINDS.items():
        own, pooled = found.at(kind, MASKED, 1.0), found.at(kind, POOLED, 1.0)
        if own is not None and pooled is not None:
            cells = [spread(pooled.loss, pooled.loss_std), spread(own.loss, own.loss_std)]
            rows.append([kind, f"{n:,}", f"{found.base(kind).loss:.4f}", *cells, _price(found, own)])
    share = "excess loss / that of the centre"
    return table(["table", "rows", "no privacy", "trusted centre", "masked, 20 sites", share], rows)
