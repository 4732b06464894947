from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.data.datasets import fetch


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TACITURN_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_cache_is_where_the_platform_keeps_caches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch.cache_folder() == home / ".cache" / "taciturn"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert fetch.cache_folder() == home / "xdg" / "taciturn"


def test_the_setting_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACITURN_CACHE", str(home / "mine"))
    assert fetch.cache_folder() == home / "mine"
