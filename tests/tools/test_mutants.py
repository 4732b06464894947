"""The mutation tool: each planted fault is small, compiles, and has tests that should detect it."""

from __future__ import annotations

import pytest
from tools.mutants.known import PAGE, known, page
from tools.mutants.operators import mutants
from tools.mutants.targets import ROOT, SOURCE, sources, stages

TEXT = '''"""A docstring with 1 < 2."""

def cost(x: int = 3, *, é: float = 0.5) -> float:
    """1 + 1"""
    check(x)
    if not x <= 1 and é == 2:
        raise ValueError(f"{x + 1}")
    return up(max(x, 1.5) * é)
'''


def test_faults_are_planted_where_a_promise_may_rest_and_nowhere_else():
    found = {(one.line, one.old, one.new) for one in mutants("a.py", TEXT)}
    assert found == {
        (3, "3", "4"),
        (3, "0.5", "1.0"),
        (5, "check(x)", "pass"),
        (6, "not x <= 1", "(x <= 1)"),
        (6, "<=", "<"),
        (6, "and", "or"),
        (6, "==", "!="),
        (6, "1", "2"),
        (6, "2", "3"),
        (8, "up", "down"),
        (8, "up", ""),
        (8, "max", "min"),
        (8, "1.5", "3.0"),
        (8, "*", "/"),
    }


def test_a_fault_changes_its_own_place_alone():
    for one in mutants("a.py", TEXT):
        planted = one.planted(TEXT)
        assert planted != TEXT and planted.startswith(TEXT[: one.start])
        assert planted.endswith(TEXT[one.start + len(one.old) :])
        with pytest.raises(ValueError, match="has changed"):
            one.planted("x" + TEXT)


def test_every_file_has_tests_that_should_see_its_faults():
    for source in sources():
        paths = [path for stage in stages(source) for path in stage]
        assert paths and all((ROOT / path).exists() for path in paths), source


def test_the_known_survivors_are_still_in_the_tree_and_on_the_page():
    for one in known():
        assert one.still_there(), f"{one.path}: {one.line}"
        text = (ROOT / SOURCE / one.path).read_text(encoding="utf-8")
        assert any(one.is_it(mutant, text) for mutant in mutants(one.path, text))
    assert PAGE.read_text(encoding="utf-8") == page(PAGE.read_text(encoding="utf-8"))
