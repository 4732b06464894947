"""The tree stays easy to navigate: small rooms, short files, unique class names."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "taciturn"
FILES = sorted(SOURCE.rglob("*.py"))
AROUND = [
    path for room in ("tests", "benchmarks", "tools", "examples") for path in (ROOT / room).rglob("*.py")
]


def test_no_room_is_crowded() -> None:
    rooms = Counter(path.parent for path in FILES if path.name not in ("__init__.py", "__main__.py"))
    crowded = {str(room.relative_to(SOURCE)): count for room, count in rooms.items() if count > 12}
    assert not crowded


def test_no_file_is_long() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in [*FILES, *AROUND]}
    long = {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > 400}
    assert not long
    assert 90 < median(lines[path] for path in FILES if path.name != "__init__.py") < 150


def test_no_file_name_occurs_more_than_twice() -> None:
    names = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert not {name: count for name, count in names.items() if count > 2}


def test_checks_survive_python_optimisation() -> None:
    trees = {path: ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in FILES}
    asserted = [str(path) for path, nodes in trees.items() if any(isinstance(n, ast.Assert) for n in nodes)]
    assert not asserted


def test_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    shared = {name: places for name, places in homes.items() if len(places) > 1}
    assert len(shared) <= 3 and all(len(places) == 2 for places in shared.values()), shared
