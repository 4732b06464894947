"""The notebook is the tutorial, runs from an empty folder, and shows pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.notebooks import written

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"


def test_notebook_is_the_tutorial():
    """After a change of the page: python -m tools.notebooks docs/tutorial.md"""
    assert PAGE.with_suffix(".ipynb").read_text("utf-8") == written(PAGE)


@pytest.mark.process
@pytest.mark.slow
def test_notebook_runs_and_shows_results(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    found = nbformat.read(PAGE.with_suffix(".ipynb"), as_version=4)
    nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in found.cells for output in cell.get("outputs", [])]
    assert not [output for output in shown if output.output_type == "error"]
    data = [output.get("data", {}) for output in shown]
    assert sum("image/png" in one for one in data) == 1
    pages = [one["text/html"] for one in data if "text/html" in one]
    assert len(pages) == 3 and pages[0].count("<svg") == 5
    assert all(page.index("<details>") > page.index("Cost to any one record") for page in pages[1:])
