"""Keys are in memory that a power cut ends, belong to one state file at one round, and go where they must."""

import os
import shutil
import stat

import pytest

from taciturn.core.errors import SiteError, WrongFiles
from taciturn.sites.files.site import KEYRING
from taciturn.sites.state import locked_memory
from taciturn.sites.state.kernel_keyring import LARGEST, KernelKeyring
from taciturn.sites.state.locked_memory import MemoryFolder, find_fault
from taciturn.sites.state.volatile_keys import StaleKey, open_volatile_keys

SHARED = os.environ.get("RUNTIME_DIRECTORY", "")
PLACES = [
    pytest.param(None, id="wherever it is safe"),
    pytest.param(
        KEYRING,
        id="keyring",
        marks=pytest.mark.skipif(not KernelKeyring.works(), reason="this kernel has no keyring for us"),
    ),
]
pytestmark = pytest.mark.skipif(not SHARED, reason="there is no /dev/shm on this machine")


@pytest.fixture
def state(tmp_path):
    """A state file and its lock."""
    return new_state(tmp_path / "state")


def new_state(folder):
    folder.mkdir()
    (folder / "site.sqlite.lock").touch()
    (folder / "site.sqlite").touch()
    return folder / "site.sqlite"


@pytest.mark.parametrize("folder", PLACES)
def test_a_key_outlives_the_process_and_is_forgotten_where_it_was_deleted(folder, state):
    first, tag = open_volatile_keys(folder, state), open_volatile_keys(folder, state).tag(2, 7)
    assert first.get("keys", tag) is None
    first.put("keys", tag, b"secret" * 100)
    first.put("other", tag, b"two")
    again = open_volatile_keys(folder, state)
    assert again.get("keys", tag) == b"secret" * 100
    again.delete("keys")
    assert first.get("keys", tag) is None and first.get("other", tag) == b"two"
    again.wipe()
    assert first.place.names() == [] and first.get("other", tag) is None


@pytest.mark.parametrize("folder", PLACES)
@pytest.mark.parametrize(("attempt", "round", "what"), [(1, 7, "attempt 2, not 1"), (2, 6, "round 7, not 6")])
def test_a_key_of_another_attempt_or_round_is_refused(folder, state, attempt, round, what):
    keys = open_volatile_keys(folder, state)
    keys.put("keys", keys.tag(2, 7), b"secret")
    with pytest.raises(StaleKey, match=what):
        keys.get("keys", keys.tag(attempt, round))
    keys.wipe()


def test_a_state_that_was_restored_or_copied_finds_no_keys_of_its_own(state, tmp_path):
    keys = open_volatile_keys(None, state)
    keys.put("keys", keys.tag(0, 7), b"secret")
    copied = shutil.copytree(state.parent, tmp_path / "copy") / state.name
    other = open_volatile_keys(None, copied)
    assert other.get("keys", other.tag(0, 7)) is None
    shutil.rmtree(state.parent)
    shutil.copytree(copied.parent, state.parent)  # in the place of the original, at the same round
    with pytest.raises(StaleKey, match="another state file"):
        keys.get("keys", keys.tag(0, 7))
    keys.wipe()


def test_a_damaged_key_is_refused(state):
    keys = open_volatile_keys(None, state)
    keys.put("keys", keys.tag(0, 7), b"secret")
    path = keys.place.folder / "keys"
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    with pytest.raises(StaleKey, match="damaged"):
        keys.get("keys", keys.tag(0, 7))
    keys.wipe()


def test_a_folder_on_a_disk_is_refused_with_the_command_that_helps(state, tmp_path):
    if locked_memory.file_system(tmp_path) == locked_memory.TMPFS:
        pytest.skip("the tests' own folder is on a tmpfs")
    with pytest.raises(WrongFiles, match=r"must be on a tmpfs.*mount -t tmpfs -o noswap"):
        open_volatile_keys(tmp_path, state)
    assert "cannot be looked at" in find_fault(tmp_path / "nowhere")


def test_a_tmpfs_that_may_be_swapped_is_refused(state, monkeypatch):
    keys = open_volatile_keys(None, state)
    monkeypatch.setattr(locked_memory, "swaps", lambda: True)
    with pytest.raises(WrongFiles, match=r"may be swapped to a disk.*swapoff -a"):
        keys.put("keys", keys.tag(0, 1), b"secret")  # swap was turned on meanwhile
    with pytest.raises(WrongFiles, match="may be swapped to a disk"):
        open_volatile_keys(keys.place.folder.parent, state)
    monkeypatch.setattr(KernelKeyring, "works", staticmethod(lambda: False))
    with pytest.raises(WrongFiles, match="has no volatile memory for keys"):
        open_volatile_keys(None, state)
    monkeypatch.setattr(locked_memory, "has_option", lambda folder, option: option == "noswap")
    keys.put("keys", keys.tag(0, 1), b"secret")
    keys.wipe()


def test_a_folder_of_somebody_else_is_refused(state, tmp_path):
    keys = open_volatile_keys(None, state)
    keys.put("keys", keys.tag(0, 1), b"secret")
    folder = keys.place.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "keys").stat().st_mode) == 0o600
    keys.wipe()
    folder.chmod(0o755)
    with pytest.raises(WrongFiles, match="must be a folder of this user alone"):
        keys.put("keys", keys.tag(0, 1), b"secret")
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(WrongFiles, match="must be a folder of this user alone"):
        MemoryFolder(folder).write("keys", b"secret")
    folder.unlink()


@pytest.mark.skipif(not KernelKeyring.works(), reason="this kernel has no keyring for us")
def test_the_keyring_says_what_it_cannot_hold():
    with pytest.raises(SiteError, match=f"at most {LARGEST} bytes"):
        KernelKeyring("trial").write("keys", bytes(LARGEST + 1))
