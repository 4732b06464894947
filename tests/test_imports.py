"""Imports of the package have no cycle, in whatever form they are written.

Every import statement counts, wherever it stands: at the top, under `if TYPE_CHECKING:` (a name in an
annotation is something that a reader must know first) and inside a function (a late import puts off the
cost of a heavy part; it is no way to hide that two files know each other). An edge goes to what a statement
names: that Python runs the `__init__.py` of a package on the way to its modules is no edge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"


def module_files(source: Path) -> dict[str, Path]:
    """The dotted name of every module -> its file; a package goes by its own name."""
    parts = {path: path.relative_to(source).with_suffix("").parts for path in source.rglob("*.py")}
    return {".".join(p[:-1] if p[-1] == "__init__" else p): path for path, p in parts.items()}


def names_in(module: str, path: Path) -> Iterator[str]:
    """Every dotted name that the import statements of a file name."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")
            above = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def import_graph(source: Path) -> nx.DiGraph:
    """Who names whom; `from a import b` names the module `a.b` where there is one, else `a`."""
    files = module_files(source)
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for module, path in files.items():
        for name in names_in(module, path):
            target = name if name in files else name.rpartition(".")[0]
            if target in files and target != module:
                graph.add_edge(module, target)
    return graph


def circles(source: Path) -> list[list[str]]:
    """Every group of modules of which each needs each of the others."""
    groups = nx.strongly_connected_components(import_graph(source))
    return [sorted(group) for group in groups if len(group) > 1]


def test_imports_make_no_circle() -> None:
    graph = import_graph(SOURCE)
    assert len(graph) > 250 and graph.has_edge("taciturn.core.checks", "taciturn.core.errors")
    assert not circles(SOURCE)


@pytest.mark.parametrize(
    "back",
    [
        "from a.low import low",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .low import low",
        "def late():\n    from . import low\n    return low",
        "class Held:\n    import a.low",
    ],
)
def test_a_circle_is_seen_however_it_is_written(back: str, tmp_path: Path) -> None:
    package = tmp_path / "a"
    package.mkdir()
    (package / "__init__.py").write_text("from .low import low")
    (package / "low.py").write_text("from .high import high")
    (package / "high.py").write_text("import numpy as np")
    assert not circles(tmp_path)
    (package / "high.py").write_text(back)
    assert circles(tmp_path) == [["a.high", "a.low"]]
