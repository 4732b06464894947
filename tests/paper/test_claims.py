"""Every verdict of docs/paper.md, on the quick version of all figures."""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

import pytest

from taciturn.data import Dataset
from taciturn.paper.claims.claim import Verdict, judge
from taciturn.paper.figures.spec import SHIPPED
from taciturn.paper.reproduce import reproduce

PAGE = Path(__file__).resolve().parents[2] / "docs" / "paper.md"
ROW = re.compile(r"^\| `([a-z0-9-]+)` .*? \| \*\*(holds|in part|does not hold)\*\* \| ", re.MULTILINE)
STATED = {
    key: {"in part": "holds in part"}.get(word, word) for key, word in ROW.findall(PAGE.read_text("utf-8"))
}
NOT_AS_STATED = {
    "fig1a-optimum",
    "fig1a-unequal-steps",
    "theorem1-proof",
    "theorem1-bounded",
    "theorem2-printed",
    "attack-known",
    "attack-secret",
}


@pytest.fixture(scope="session")
def quick(adult: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `taciturn reproduce all --quick`, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "quick-reproduction"
    out.mkdir(exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "index.html").exists():
            reproduce(["all"], out, quick=True)
    return out


@pytest.fixture(scope="session")
def verdicts(quick: Path) -> dict[str, str]:
    stated = json.loads((quick / "claims.json").read_text("utf-8"))
    return {claim["key"]: claim["verdict"] for claim in stated["claims"]}


def test_the_page_has_a_verdict_for_every_claim_of_the_run(verdicts: dict[str, str]) -> None:
    assert set(STATED) == set(verdicts)


@pytest.mark.parametrize("key", sorted(STATED))
def test_the_quick_version_says_the_same_as_the_page(verdicts: dict[str, str], key: str) -> None:
    assert verdicts[key] == STATED[key]


def test_failing_claims_are_the_documented_ones() -> None:
    assert {key for key, verdict in STATED.items() if verdict != "holds"} == NOT_AS_STATED


def test_every_figure_is_there(quick: Path) -> None:
    for name in SHIPPED:
        for suffix in ("png", "svg", "csv", "json"):
            assert (quick / f"{name}.{suffix}").stat().st_size > 1000
    page = (quick / "claims.md").read_text("utf-8")
    assert "A quick version" in page and all(f"({name}.png)" in page for name in SHIPPED)


def test_page_comes_from_the_full_run() -> None:
    page = PAGE.read_text("utf-8")
    assert "A quick version" not in page
    assert all(
        (PAGE.parent / "img" / f"{name}.png").exists() and f"(img/{name}.png)" in page for name in SHIPPED
    )


def test_judge() -> None:
    assert judge([True, True]) is Verdict.holds
    assert judge([True, False]) is Verdict.in_part
    assert judge([False, False]) is Verdict.fails
