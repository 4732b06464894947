"""The tests that docs/privacy.md names, claim by claim, exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[a-z_/0-9]+\.py): (test_[a-z_0-9]+)`")


def test_every_claim_has_the_test_that_is_named():
    named = NAMED.findall((ROOT / "docs" / "privacy.md").read_text())
    assert len(named) > 25
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"{file}: {test}"


def test_attack_table_repeats_the_figures_of_the_reproduced_paper() -> None:
    """Section 13 shows five columns of the table that `taciturn reproduce` writes."""
    docs = ROOT / "docs"
    section = (docs / "privacy.md").read_text("utf-8").split("## 13.")[1].split("## 14.")[0]
    stated = re.findall(r"\| \$\\alpha = ([\d\\,]+)\$ \| ([^\n]+) \|", section)
    assert len(stated) == 3
    for rate, row in stated:
        number = rate.replace("\\,", "")
        found = re.search(rf"^\| α = {number} \| (.+) \|$", (docs / "paper.md").read_text("utf-8"), re.M)
        assert found is not None
        assert [cell.replace(" ", "") for cell in row.split(" | ")] == found[1].split(" | ")[:4]
