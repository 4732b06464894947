"""The tests that docs/reliability.md names exist, and run with as many sites as it says."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d) \| (.+) \| (.+) \| (`tests.+`) \|$", re.M)
NAMED = re.compile(r"`(tests/[a-z_/0-9]+\.py): (test_[a-z_0-9]+)`")
SIZES = ("@SIZES\n", "CASES)\n", "(20, ")


def decorators(file, test):
    """What stands above a test."""
    above, found, _ = (ROOT / file).read_text().partition(f"def {test}(")
    assert found, f"{file}: {test}"
    return above.rpartition("\n\n\n")[2]


def test_every_line_has_the_tests_that_are_named_with_so_many_sites():
    rows = ROW.findall((ROOT / "docs" / "reliability.md").read_text())
    assert {line for line, *_ in rows} == set("1234567")
    for line, what, tried, tests in rows:
        named = NAMED.findall(tests)
        assert named, what
        for file, test in named:
            both = any(mark in decorators(file, test) for mark in SIZES)
            assert both == ("20" in tried), f"{line}: {file}: {test}"
        assert line == "7" or "20" in tried or any("20" in other for k, _, other, _ in rows if k == line)
