"""Every public name has a docstring and an entry in the API reference."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import taciturn as tt

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "api").glob("*.md"))
LISTED = [
    entry for page in PAGES for entry in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
]
MODULES = ("data", "expressions", "report")
NAMES = [
    *((tt, name) for name in tt.__all__ if name not in MODULES),
    *((tt.data, name) for name in tt.data.__all__),
]
every_name = pytest.mark.parametrize(("home", "name"), NAMES, ids=[name for _, name in NAMES])


@every_name
def test_it_has_a_docstring_of_its_own_that_starts_with_a_sentence(home, name):
    thing = getattr(home, name)
    assert "__doc__" in vars(thing) or inspect.isfunction(thing)
    assert len((inspect.getdoc(thing) or "").splitlines()[0].split()) > 2


@every_name
def test_it_is_in_the_reference(home, name):
    homes = [path.removesuffix(f".{name}") for path in LISTED if path.endswith(f".{name}")]
    assert any(getattr(importlib.import_module(path), name) is getattr(home, name) for path in homes)
