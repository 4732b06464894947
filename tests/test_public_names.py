"""`taciturn.<name>` for every public name, and none of them loaded before it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import taciturn as tt


@pytest.mark.parametrize("name", tt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tt, name) is not None
    assert name in dir(tt)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        tt.Nothing  # noqa: B018


def test_importing_tacit_loads_nothing_heavy() -> None:
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
