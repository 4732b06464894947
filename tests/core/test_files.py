"""A reader sees the old file or the whole new one, and nothing is left beside it."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from taciturn.core import files
from taciturn.core.files import whole_file, write_whole


def test_bytes_and_text_in_folders_that_were_not_there(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    assert write_whole(path, b"\x00\xff\n") == path and path.read_bytes() == b"\x00\xff\n"
    assert write_whole(path, "é\n").read_bytes() == "é\n".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    path = write_whole(tmp_path / "file", "old")

    def stop_half_way():
        with whole_file(path) as file:
            file.write(b"ne")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_half_way()
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_a_failed_rename_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "file", b"old")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    path, synced = tmp_path / "file", []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((os.fstat(number).st_size, path.exists())))
    write_whole(path, "whole")
    assert synced == [(5, False)]


def test_two_writers_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "file"
    with whole_file(path) as first, whole_file(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert path.read_bytes() == b"first"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_stays_a_pipe(tmp_path):
    path, heard = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: heard.append(path.read_bytes()))
    reader.start()
    write_whole(path, "through")
    reader.join(timeout=30)
    assert heard == [b"through"] and path.is_fifo()


def test_a_file_is_written_once_descriptors_are_free(tmp_path, monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    waits = []

    def free_after_three_waits(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            while held:
                os.close(held.pop())

    monkeypatch.setattr(files, "_spare", [])
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=free_after_three_waits)
    monkeypatch.setattr(files, "time", clock)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 1, hard))
    try:
        with contextlib.suppress(OSError):
            while True:  # gaps below the highest descriptor
                held.append(os.open(os.devnull, os.O_RDONLY))
        files.retry_for_descriptors(lambda: files.write_whole(tmp_path / "result", b"whole"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)
    assert len(waits) == 3 and (tmp_path / "result").read_bytes() == b"whole"
