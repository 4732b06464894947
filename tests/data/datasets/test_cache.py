from __future__ import annotations

import os
from pathlib import Path

import pytest

from taciturn.data.datasets import fetch
from taciturn.errors import TaciturnWarning


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TACITURN_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "platform, below", [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")]
)
def test_each_platform_has_its_place(
    platform: str, below: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert fetch.cache_folder() == home / below / "taciturn"


def test_settings_come_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert fetch.cache_folder() == home / "xdg" / "taciturn"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG specification: to be ignored
    assert fetch.cache_folder() == home / ".cache" / "taciturn"
    monkeypatch.setenv("TACITURN_CACHE", str(home / "mine"))
    assert fetch.cache_folder() == home / "mine"


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(cls: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(homeless))
    assert fetch.cache_folder() is None
    with pytest.warns(TaciturnWarning, match="no home folder"):
        fetch.store_files("tiny", {"a": b"1"})


def test_a_write_that_breaks_off_leaves_the_old_file_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch.store_files("tiny", {"a": b"old"})

    def broken(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.warns(TaciturnWarning, match="No space left on device"):
        fetch.store_files("tiny", {"a": b"new"})
    folder = home / ".cache" / "taciturn" / "tiny"
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert (folder / "a").read_bytes() == b"old"
