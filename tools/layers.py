"""`python tools/layers.py` draws docs/img/layers.svg: the packages, by layers of the import contract."""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAYS = {
    "cli": "parse, call, print",
    "paper": "the figures of the paper",
    "jobs": "from files to a model",
    "statistics": "scores and tables with noise",
    "estimators": "the scikit-learn interface",
    "planning": "finds settings for a budget",
    "auditing": "measured lower bounds",
    "report": "a run as one page",
    "runtime": "drives all nodes of a run",
    "sites": "one node of a real network",
    "questions": "questions about tables, and answers",
    "methods": "what sites compute and release",
    "jobfile": "the files that describe a job",
    "objective": "what one site minimises",
    "privacy": "the privacy cost of a run",
    "data": "tables and public bounds",
    "core": "errors, checks, formats",
}
WIDTH, ROW, GAP = 760, 54, 10


def floors() -> list[list[str]]:
    """The packages of each layer, from the top layer down."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(entry["layers"] for entry in contracts if entry["name"] == "Imports point down")
    return [[room.strip() for room in layer.split("|")] for layer in layers if layer != "__main__"]


def draw() -> str:
    """The picture as SVG: the packages as boxes, and an arrow in the direction of imports."""
    rows = [_floor(k, rooms) for k, rooms in enumerate(floors())]
    height = len(rows) * (ROW + GAP) + GAP
    middle = height / 2
    arrow = (
        f'<path d="M {WIDTH + 24} {GAP} V {height - GAP - 8}" class="line"/>'
        f'<path d="M {WIDTH + 18} {height - GAP - 10} l 6 10 l 6 -10 z" class="tip"/>'
        f'<text transform="translate({WIDTH + 46} {middle}) rotate(90)" class="small">'
        "imports point down</text>"
    )
    style = (
        "text{font:14px system-ui,sans-serif;text-anchor:middle;fill:#1f2a30}"
        ".small{font-size:12px;fill:#5a6b73}.room{fill:#e8f1f0;stroke:#2f7d77}.line{stroke:#2f7d77;fill:none}.tip{fill:#2f7d77}"
        "svg{background:#fff}"
    )
    size = f'viewBox="0 0 {WIDTH + 64} {height}" width="{WIDTH + 64}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="The layers of taciturn">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(rows)}{arrow}</svg>\n'
    )


def _floor(k: int, rooms: list[str]) -> str:
    top = GAP + k * (ROW + GAP)
    width = (WIDTH - GAP * (len(rooms) + 1)) / len(rooms)
    return "".join(_room(room, GAP + j * (width + GAP), top, width) for j, room in enumerate(rooms))


def _room(room: str, left: float, top: float, width: float) -> str:
    words, middle = SAYS.get(room, ""), left + width / 2
    name = f'<text x="{middle:g}" y="{top + (23 if words else 32):g}">{escape(room)}</text>'
    small = f'<text x="{middle:g}" y="{top + 42:g}" class="small">{escape(words)}</text>' if words else ""
    return f'<rect class="room" x="{left:g}" y="{top}" width="{width:g}" height="{ROW}" rx="5"/>{name}{small}'


if __name__ == "__main__":
    (ROOT / "docs" / "img" / "layers.svg").write_text(draw())
