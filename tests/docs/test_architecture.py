"""The architecture page: each walk matches a traced call, and the drawing is up to date."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tools.walks import WALKS, stops_on_the_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MARKS = {"site": pytest.mark.process, "fit": pytest.mark.slow, "train": pytest.mark.slow}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in WALKS])
def test_the_call_enters_every_stop_in_this_order(name: str) -> None:
    stops, entered = stops_on_the_page(WALKS[name]), WALKS[name].trace().entered
    assert set(stops) <= set(entered), (
        f"not entered: {set(stops) - set(entered)}; run `python -m tools.walks`"
    )
    assert stops == sorted(stops, key=entered.index), "run `python -m tools.walks`"


def test_five_walks_of_six_to_eight_stops() -> None:
    assert [6 <= len(stops_on_the_page(walk)) <= 8 for walk in WALKS.values()] == 5 * [True]


def test_the_drawing_is_that_of_the_import_contract() -> None:
    draw = runpy.run_path(str(ROOT / "tools" / "layers.py"))["draw"]
    drawn = (ROOT / "docs" / "img" / "layers.svg").read_text(encoding="utf-8")
    assert drawn == draw(), "run `python tools/layers.py`"


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in (ROOT / "src" / "taciturn").glob("*/__init__.py")}
    assert rooms == {room for room in rooms if f"| `{room}` |" in PAGE}
