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
