"""The map: every stop of every walk exists, no walk has more than eight stops, the drawing is up to date."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STOPS = re.findall(r"^(\d+)\. `([\w/]+\.py): (\w+)`$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("file", "name"), sorted({(file, name) for _, file, name in STOPS}))
def test_the_stop_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / "src" / "taciturn" / file).read_text(encoding="utf-8"))
    named = (ast.FunctionDef, ast.ClassDef)
    assert name in {node.name for node in tree.body if isinstance(node, named)}


def test_five_walks_of_at_most_eight_stops() -> None:
    numbers = [int(number) for number, *_ in STOPS]
    assert numbers.count(1) == 5 and max(numbers) <= 8


def test_the_drawing_is_that_of_the_import_contract() -> None:
    draw = runpy.run_path(str(ROOT / "tools" / "layers.py"))["draw"]
    drawn = (ROOT / "docs" / "img" / "layers.svg").read_text(encoding="utf-8")
    assert drawn == draw(), "run `python tools/layers.py`"


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in (ROOT / "src" / "taciturn").glob("*/__init__.py")}
    assert rooms == {room for room in rooms if f"| `{room}` |" in PAGE}
