"""Every Python block of the README and the docs runs, in order, one namespace per page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from taciturn.core.errors import DataUnavailable

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_run(page, tmp_path, monkeypatch, capsys, adult_files):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    module.__name__ = "__main__"  # so that its functions travel to workers, as those of a script do
    for number, block in enumerate(blocks(page), start=1):
        try:
            exec(compile(block, f"{page.name}, block {number}", "exec"), module.__dict__)
        except DataUnavailable as reason:
            pytest.skip(str(reason))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
