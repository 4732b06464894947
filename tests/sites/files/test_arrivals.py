"""What came in before a kill is read again, whatever became of the end of the file."""

import os

import pytest

from taciturn.errors import SiteError
from taciturn.sites.files import arrivals as arrivals_module
from taciturn.sites.files.arrivals import _TOP, NAME, ROOM, Arrivals

FRAMES = [b"one", b"two" * 100, b""]


def write(folder, frames=FRAMES, largest=1000):
    with Arrivals(folder, 3, largest) as arrivals:
        arrivals.begin(0)
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
    for size in range(_TOP.size, len(whole)):
        (tmp_path / NAME).write_bytes(whole[:size])
        found = read(tmp_path)
        assert found == FRAMES[: len(found)] and len(found) < 3
    damaged = bytearray(whole)
    damaged[_TOP.size + 8 + 3 + 8 + 5] ^= 1
    (tmp_path / NAME).write_bytes(damaged)
    assert read(tmp_path) == FRAMES[:1]


def test_a_long_file_is_begun_anew_with_the_newest(tmp_path):
    with Arrivals(tmp_path, 2, 1000) as arrivals:
        arrivals.begin(0)
        for i in range(3000):
            arrivals.note(bytes([i % 251]) * 1000, [b"a", bytes([i % 251]) * 1000])
        found = arrivals.read()
    assert found[-1] == bytes([2999 % 251]) * 1000 and found[0] == b"a"
    assert (tmp_path / NAME).stat().st_size <= ROOM + 4 * 1008 + _TOP.size


def test_a_disk_that_takes_half_a_record_leaves_whole_ones(tmp_path, monkeypatch):
    write(tmp_path, [b"one"])
    with Arrivals(tmp_path, 3, 1000) as arrivals:
        arrivals.begin(0)
        real = os.pwrite
        monkeypatch.setattr(os, "pwrite", lambda file, data, at: real(file, data[:5], at))
        arrivals.note(b"two", [])
        monkeypatch.undo()
        arrivals.note(b"three", [])
        assert arrivals.read() == [b"one", b"three"]


def test_a_disk_that_is_full_stops_nobody(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with Arrivals(tmp_path, 3, 1000) as arrivals:
        arrivals.begin(0)
        monkeypatch.setattr(os, "pwrite", full)
        arrivals.note(b"two", [])
        assert arrivals.read() == []


def killed(folder, frames=FRAMES):
    """Noted, and never closed."""
    arrivals = Arrivals(folder, 3, 1000)
    arrivals.begin(0)
    for data in frames:
        arrivals.note(data, [data])
    os.close(arrivals._file)


def after_a_power_cut(monkeypatch):
    monkeypatch.setattr(arrivals_module, "boot_id", lambda: b"7" * 36)


def is_whole(folder):
    with Arrivals(folder, 3, 1000) as arrivals:
        return arrivals.whole


@pytest.mark.parametrize(
    ("end", "reboot", "whole"),
    [(write, False, True), (write, True, True), (killed, False, True), (killed, True, False)],
)
def test_only_a_machine_that_was_started_anew_after_a_kill_may_have_lost_frames(
    tmp_path, monkeypatch, end, reboot, whole
):
    end(tmp_path)
    if reboot:
        after_a_power_cut(monkeypatch)
    assert is_whole(tmp_path) is whole
    assert is_whole(tmp_path) is whole  # who only looks changes nothing
    write(tmp_path, [])
    assert is_whole(tmp_path) and read(tmp_path) == FRAMES


def test_a_file_that_is_gone_or_of_another_form_is_not_whole(tmp_path):
    assert not is_whole(tmp_path)
    write(tmp_path)
    (tmp_path / NAME).write_bytes(b"taciturn-arrivals/1\0" + (tmp_path / NAME).read_bytes()[20:])
    assert not is_whole(tmp_path) and read(tmp_path) == []
    write(tmp_path)
    assert read(tmp_path) == FRAMES


def test_what_is_noted_after_a_damaged_end_is_read_again(tmp_path):
    """A power cut leaves half a record, or zeros; a kill after that must not lose what came in since."""
    for end in (b"\1", bytes(8), bytes(100), b"\3" + bytes(7) + b"end"):
        killed(tmp_path)
        with (tmp_path / NAME).open("ab") as file:
            file.write(end)
        assert not is_whole(tmp_path)
        killed(tmp_path, [b"after"])
        assert is_whole(tmp_path) and read(tmp_path) == [*FRAMES, b"after"]
        (tmp_path / NAME).unlink()


def test_a_kill_while_the_file_is_begun_anew_is_seen(tmp_path, monkeypatch):
    def kill(*_):
        raise KeyboardInterrupt

    def kill_later(file, data, at, real=os.pwrite):
        return real(file, data, at) if at == 0 else kill()

    for at, fatal in (("ftruncate", kill), ("pwrite", kill_later)):
        arrivals = Arrivals(tmp_path, 3, 1000)
        arrivals.begin(0)
        arrivals._size = arrivals._most
        monkeypatch.setattr(os, at, fatal)
        with pytest.raises(KeyboardInterrupt):
            arrivals.note(b"one", [b"one"])
        monkeypatch.undo()
        os.close(arrivals._file)
        assert not is_whole(tmp_path)
        (tmp_path / NAME).unlink()


def test_a_disk_that_was_full_is_remembered(tmp_path, monkeypatch):
    with Arrivals(tmp_path, 3, 1000) as arrivals:
        arrivals.begin(0)
        real = os.pwrite
        monkeypatch.setattr(os, "pwrite", lambda file, data, at: real(file, data, at) if at == 0 else 0)
        arrivals.note(b"two", [])
        monkeypatch.undo()
        arrivals.note(b"three", [])
    assert read(tmp_path) == [b"three"] and not is_whole(tmp_path)


def test_a_doubt_stays_until_it_is_another(tmp_path):
    with Arrivals(tmp_path, 3, 1000) as arrivals:
        arrivals.begin(7)
    with Arrivals(tmp_path, 3, 1000) as arrivals:
        assert arrivals.whole and arrivals.doubt == 7
        arrivals.begin(0)
    with Arrivals(tmp_path, 3, 1000) as arrivals:
        assert arrivals.doubt == 0


def test_what_is_no_file_is_told_in_one_line(tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(SiteError, match=rf"{NAME}: must be a file, or not there yet\.$"):
        Arrivals(tmp_path, 3, 1000)
