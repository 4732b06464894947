"""`taciturn.<name>` for every public name, and none of them loaded before it is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn as tt


@pytest.mark.parametrize("name", tt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tt, name) is not None
    assert name in dir(tt)


def test_what_the_reference_documents_is_public() -> None:
    pages = (Path(__file__).resolve().parents[1] / "docs" / "api").glob("*.md")
    names = [name for page in pages for name in re.findall(r"^::: taciturn\.(\S+)$", page.read_text(), re.M)]
    assert len(names) > 40
    own = [name for name in names if not name.startswith(("data.", "report.")) and name != "errors"]
    assert not {name.split(".")[-1] for name in own} - set(tt.__all__)
    for room, module in (("data.", tt.data), ("report.", tt.report)):
        inside = [name.removeprefix(room) for name in names if name.startswith(room)]
        assert not set(inside) - set(module.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        tt.Nothing  # noqa: B018


def test_importing_it_loads_nothing_heavy() -> None:
    code = (
        "import taciturn, taciturn.cli; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    )
    source = str(Path(tt.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
