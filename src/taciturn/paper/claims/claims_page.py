"""The pages docs/paper.md and index.html: the claims of the paper, with our measurements and verdicts."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.formatting import format_cost
from ...core.templates import html_templates, text_templates
from ...core.versions import versions
from ..figures.attack_runner import Drawn
from .claim import Claim, Verdict

if TYPE_CHECKING:
    from markupsafe import Markup


def claims_page(drawn: Sequence[Drawn], claims: Sequence[Claim], *, quick: bool, images: str = "") -> str:
    """The page in Markdown. `images` is the folder of the pictures, with a slash at its end."""
    templates = text_templates(__package__)
    templates.filters |= {"cell": _cell, "cost": _cost}
    return templates.get_template("paper.md").render(drawn=drawn, images=images, **_facts(claims, quick))


def index_page(drawn: Sequence[Drawn], claims: Sequence[Claim], *, quick: bool, folder: Path) -> str:
    """index.html as one self-contained file, which contains the SVG pictures of `folder`."""
    figures = [one.figure for one in drawn]
    pictures = {one.name: b64encode((folder / f"{one.name}.svg").read_bytes()).decode() for one in figures}
    templates = html_templates(__package__)
    templates.filters |= {"with_code": _with_code}
    page = templates.get_template("index.html")
    return page.render(figures=figures, pictures=pictures, **_facts(claims, quick))


def _facts(claims: Sequence[Claim], quick: bool) -> dict[str, Any]:
    made_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    return {"claims": claims, "quick": quick, "count": count(claims), "made_with": made_with}


_COUNTED = {
    Verdict.holds: ("holds", "hold"),
    Verdict.in_part: ("holds in part", "hold in part"),
    Verdict.fails: ("does not hold", "do not hold"),
}


def count(claims: Sequence[Claim]) -> str:
    """The number of claims with each verdict, as text: '26 claims: 18 hold, ...'."""
    parts = []
    for verdict, (one, several) in _COUNTED.items():
        if n := sum(claim.verdict == verdict for claim in claims):
            parts.append(f"{n} {one if n == 1 else several}")
    return f"{len(claims)} claims: {', '.join(parts)}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("\n", " ")


def _cost(epsilon: float) -> str:
    return format_cost(epsilon) if math.isfinite(epsilon) else "none"


def _with_code(text: str) -> Markup:
    """The text as HTML. Words in `backquotes` become code, and special characters are escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))
