"""`taciturn.<name>` for every public name, and none of them loaded before it is used."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn as tt

INSIDE = {"RayEngine", "SourcedProblem", "TrainedJob", "run_attack"}
"""Documented, and imported from the room that they belong to."""


@pytest.mark.parametrize("name", tt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tt, name) is not None
    assert name in dir(tt)


def test_what_the_reference_documents_is_public() -> None:
    pages = (Path(__file__).resolve().parents[1] / "docs" / "api").glob("*.md")
    names = [name for page in pages for name in re.findall(r"^::: taciturn\.(\S+)$", page.read_text(), re.M)]
    assert len(names) > 40
    rooms = ("data.", "report.", "core.errors")
    own = {name.split(".")[-1]: name for name in names if not name.startswith(rooms)}
    assert not set(own) - set(tt.__all__) - INSIDE
    for name in INSIDE:
        room, _, short = own[name].rpartition(".")
        assert getattr(importlib.import_module(f"taciturn.{room}"), short) is not None
    for room, module in (("data.", tt.data), ("report.", tt.report)):
        inside = [name.removeprefix(room) for name in names if name.startswith(room)]
        assert not set(inside) - set(module.__all__)


@pytest.mark.parametrize("module", [tt, tt.data], ids=lambda module: module.__name__)
def test_type_checkers_see_every_public_name_in_its_module(module) -> None:
    """The imports for type checkers name the same modules as the table of the imports at run time."""
    block = next(node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.If))
    homes = {alias.asname: node for node in block.body for alias in node.names}
    assert sorted(homes) == module.__all__
    for name, node in homes.items():
        home = importlib.import_module("." * node.level + (node.module or ""), module.__name__)
        assert getattr(home, name) is getattr(module, name)


def test_errors_are_a_module_of_the_top_level() -> None:
    from taciturn import errors
    from taciturn.core import errors as inner

    assert tt.errors is errors is inner
    assert issubclass(tt.errors.BudgetExceeded, tt.errors.TaciturnError)


@pytest.mark.parametrize("name", ["gossip", "network_average", "MemoryLedger", *sorted(INSIDE)])
def test_removed_public_names_are_gone(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(tt, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        tt.Nothing  # noqa: B018


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("taciturn.cli", ("numpy", "scipy", "sklearn")),
        ("taciturn.Problem, taciturn.simulate", ("numba", "cryptography", "pooch")),
    ],
)
def test_importing_it_loads_nothing_heavy(code: str, heavy: tuple[str, ...]) -> None:
    source = str(Path(tt.__file__).parents[1])
    start = f"import sys; sys.path.insert(0, {source!r}); import taciturn, taciturn.cli; {code}"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}; print([m for m in {heavy} if m in sys.modules])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
