"""The package has one name; its earlier name belongs to another package."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FORMER = "taciturn"[:5]
OTHER = re.compile(rf"(?<![a-z]){FORMER}(?![a-z])", re.IGNORECASE)
HISTORY = {"CHANGELOG.md"}  # may say what it was called


def files() -> list[Path]:
    """All text files of the project."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name and name not in HISTORY]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


@pytest.mark.process
def test_old_package_name_does_not_occur() -> None:
    assert OTHER.search(f"import_{FORMER}_now") and OTHER.search(f"{FORMER.upper()}_DATA")
    assert not OTHER.search("taciturn TACITURN_DATA")
    found = []
    for path in files():
        text = path.read_bytes().decode("utf-8", errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in OTHER.finditer(text)]
    assert not found, found
