"""Every Python block of the README and the docs runs, in order, one namespace per page. TOML blocks parse."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from taciturn.core.errors import DataUnavailable
from taciturn.jobs.training_job import read_asked, read_job
from taciturn.paper.sweeps.grid import load_grid

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str = "python") -> list[str]:
    found = re.compile(rf"^ *```{language}\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    return found.findall(page.read_text(encoding="utf-8"))


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


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "toml")], ids=lambda p: str(p.relative_to(ROOT))
)
def test_toml_blocks_parse(page):
    for number, block in enumerate(blocks(page, "toml"), start=1):
        try:
            assert tomllib.loads(block)
        except tomllib.TOMLDecodeError as error:
            pytest.fail(f"{page.name}, TOML block {number}: {error}")


def test_whole_files_in_the_how_to_pages_are_accepted_by_their_commands(tmp_path):
    def write(page: str, *names: str) -> Path:
        for name, block in zip(names, blocks(ROOT / "docs" / "howto" / page, "toml"), strict=False):
            (tmp_path / name).write_text(block, encoding="utf-8")
        return tmp_path / names[0]

    job = read_job(write("train.md", "job.toml", "owner.toml"))
    assert job.names == ("north", "south") and job.label.column == "readmitted"
    assert len(load_grid(write("sweeps.md", "grid.toml")).points) == 18
    rows = "rows = { east = 'e.csv', north = 'n.csv', south = 's.csv', west = 'w.csv' }"
    (tmp_path / "owner.toml").write_text(rows, encoding="utf-8")
    assert read_asked(write("study.md", "study.toml")).kind == "several"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
