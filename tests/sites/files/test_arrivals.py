"""What came in before a kill is read again, whatever became of the end of the file."""

import os

import pytest

from taciturn.errors import SiteError
from taciturn.sites.files.arrivals import NAME, ROOM, Arrivals

FRAMES = [b"one", b"two" * 100, b""]


def write(folder, frames=FRAMES, largest=1000):
    with Arrivals(folder, 3, largest) as arrivals:
        for data in frames:
            arrivals.note(data, [data])


def read(folder, largest=1000):
    with Arrivals(folder, 3, largest) as arrivals:
        return arrivals.read()


def test_a_new_process_reads_what_the_old_one_noted(tmp_path):
    write(tmp_path)
    assert read(tmp_path) == FRAMES
    write(tmp_path, [b"three"])
    assert read(tmp_path) == [*FRAMES, b"three"]
    assert (tmp_path / NAME).stat().st_mode & 0o077 == 0


def test_a_record_cut_short_or_damaged_is_not_read(tmp_path):
    write(tmp_path)
    whole = (tmp_path / NAME).read_bytes()
    for size in range(len(whole)):
        (tmp_path / NAME).write_bytes(whole[:size])
        found = read(tmp_path)
        assert found == FRAMES[: len(found)] and len(found) < 3
    damaged = bytearray(whole)
    damaged[8 + 3 + 8 + 5] ^= 1
    (tmp_path / NAME).write_bytes(damaged)
    assert read(tmp_path) == FRAMES[:1]


def test_a_long_file_is_begun_anew_with_the_newest(tmp_path):
    with Arrivals(tmp_path, 2, 1000) as arrivals:
        for i in range(3000):
            arrivals.note(bytes([i % 251]) * 1000, [b"a", bytes([i % 251]) * 1000])
        found = arrivals.read()
    assert found[-1] == bytes([2999 % 251]) * 1000 and found[0] == b"a"
    assert (tmp_path / NAME).stat().st_size <= ROOM + 4 * 1008


def test_a_disk_that_takes_half_a_record_leaves_whole_ones(tmp_path, monkeypatch):
    write(tmp_path, [b"one"])
    with Arrivals(tmp_path, 3, 1000) as arrivals:
        real = os.write
        monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:5]))
        arrivals.note(b"two", [])
        monkeypatch.undo()
        arrivals.note(b"three", [])
        assert arrivals.read() == [b"one", b"three"]


def test_a_disk_that_is_full_stops_nobody(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with Arrivals(tmp_path, 3, 1000) as arrivals:
        monkeypatch.setattr(os, "write", full)
        arrivals.note(b"two", [])
        assert arrivals.read() == []


def test_what_is_no_file_is_told_in_one_line(tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(SiteError, match=rf"{NAME}: must be a file, or not there yet\.$"):
        Arrivals(tmp_path, 3, 1000)
