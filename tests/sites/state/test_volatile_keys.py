"""Keys are in volatile memory, belong to one state file at one round, and are deleted in time."""

import errno
import os
import resource
import shutil
import stat
from types import SimpleNamespace

import pytest

from taciturn.core.errors import SiteError, WrongFiles
from taciturn.sites.files.site import KEYRING
from taciturn.sites.state import kernel_keyring, volatile_keys
from taciturn.sites.state.kernel_keyring import LARGEST, KernelKeyring
from taciturn.sites.state.volatile_keys import (
    NAMES,
    MemoryFolder,
    find_fault,
    mounted,
    never_written,
    open_volatile,
)

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
    first = open_volatile(folder, state)
    assert first.read() == {}
    first.change({"keys": b"secret" * 100, "y": b"two"})
    again = open_volatile(folder, state)
    assert again.read() == {"keys": b"secret" * 100, "y": b"two"}
    again.change({"keys": None})
    assert first.read() == {"y": b"two"}
    again.wipe()
    assert [first.place.read(name) for name in NAMES] == [None] * len(NAMES) and first.read() == {}


def test_wipe_also_erases_the_unfinished_file_of_a_killed_process(state):
    keys = open_volatile(None, state)
    keys.change({"keys": b"first"})
    folder = keys.place.folder
    (folder / ".keys.part").write_bytes(b"sec")
    keys.change({"keys": b"second"})
    assert [path.name for path in folder.iterdir()] == ["keys"] and keys.read() == {"keys": b"second"}
    (folder / ".keys.part").write_bytes(b"sec")
    keys.wipe()
    assert list(folder.iterdir()) == []


def test_a_lack_of_descriptors_is_a_fault_that_a_restart_can_fix(state):
    keys = open_volatile(None, state)
    keys.change({"keys": b"first"})
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(SiteError, match="Too many open files") as caught:
            keys.change({"keys": b"second"})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not isinstance(caught.value, WrongFiles) and keys.read() == {"keys": b"first"}
    keys.wipe()


def test_a_secret_that_does_not_fit_is_an_error_and_keeps_the_old_one(state):
    keys = open_volatile(None, state)
    keys.change({"keys": b"first"})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # a short write
    try:
        with pytest.raises(SiteError, match="keys cannot be kept there"):
            keys.change({"keys": bytes(5000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert keys.read() == {"keys": b"first"}
    keys.wipe()


def test_a_state_that_was_put_back_or_copied_finds_no_keys_of_its_own(state, tmp_path):
    keys = open_volatile(None, state)
    keys.change({"keys": b"secret"})
    copied = shutil.copytree(state.parent, tmp_path / "copy") / state.name
    assert open_volatile(None, copied).read() == {}
    shutil.rmtree(state.parent)
    shutil.copytree(copied.parent, state.parent)  # in the place of the original, at the same round
    assert open_volatile(None, state).read() == {}
    keys.wipe()


def test_a_damaged_key_is_not_used(state):
    keys = open_volatile(None, state)
    keys.change({"keys": b"secret"})
    path = keys.place.folder / "keys"
    path.write_bytes(path.read_bytes()[:-1] + b"X")
    assert keys.read() == {}
    keys.wipe()


def test_a_folder_on_a_disk_is_refused_with_the_command_that_helps(state, tmp_path):
    if mounted(tmp_path)[0] == "tmpfs":
        pytest.skip("the tests' own folder is on a tmpfs")
    with pytest.raises(WrongFiles, match=r"must be on a tmpfs.*mount -t tmpfs -o noswap"):
        open_volatile(tmp_path, state)
    assert "cannot be read" in find_fault(tmp_path / "nowhere")


def test_the_quick_check_of_a_folder_accepts_nothing_that_the_full_check_refuses(
    state, tmp_path, monkeypatch
):
    keys = open_volatile(None, state)
    keys.change({"keys": b"secret"})  # the first write creates the folder
    folder = keys.place.folder.parent
    monkeypatch.setattr(volatile_keys, "swaps", lambda: True)
    assert not never_written(folder)
    monkeypatch.setattr(volatile_keys, "swaps", lambda: False)
    assert never_written(folder) == (volatile_keys._statfs() is not None) and not find_fault(folder)
    assert not never_written(tmp_path / "nowhere")
    if mounted(tmp_path)[0] != "tmpfs":
        assert not never_written(tmp_path)
        with pytest.raises(WrongFiles, match="must be on a tmpfs"):
            MemoryFolder(tmp_path / "keys").write("keys", b"secret")
        assert list((tmp_path / "keys").iterdir()) == []


def test_a_machine_without_the_quick_check_makes_the_full_one(state, monkeypatch):
    keys, looked = open_volatile(None, state), []
    monkeypatch.setattr(volatile_keys, "_statfs", lambda: None)
    monkeypatch.setattr(volatile_keys, "find_fault", lambda folder: looked.append(folder) or "")
    keys.change({"keys": b"secret"})
    assert looked == [keys.place.folder] and keys.read() == {"keys": b"secret"}
    keys.wipe()


def test_a_tmpfs_that_may_be_swapped_is_refused(state, monkeypatch):
    keys = open_volatile(None, state)
    monkeypatch.setattr(volatile_keys, "swaps", lambda: True)
    with pytest.raises(WrongFiles, match=r"may be swapped to a disk.*swapoff -a"):
        keys.change({"keys": b"secret"})  # swap was turned on meanwhile
    with pytest.raises(WrongFiles, match="may be swapped to a disk"):
        open_volatile(keys.place.folder.parent, state)
    monkeypatch.setattr(KernelKeyring, "works", staticmethod(lambda: False))
    with pytest.raises(WrongFiles, match="has no memory for keys that a power cut erases"):
        open_volatile(None, state)
    monkeypatch.setattr(volatile_keys, "mounted", lambda folder: ("tmpfs", {"rw", "noswap"}))
    keys.change({"keys": b"secret"})
    keys.wipe()


def test_folder_of_another_user_is_refused(state, tmp_path):
    keys = open_volatile(None, state)
    keys.change({"keys": b"secret"})
    folder = keys.place.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "keys").stat().st_mode) == 0o600
    keys.wipe()
    folder.chmod(0o755)
    with pytest.raises(WrongFiles, match="must belong to this user alone"):
        keys.change({"keys": b"secret"})
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(WrongFiles, match="must belong to this user alone"):
        MemoryFolder(folder).write("keys", b"secret")
    folder.unlink()


def test_a_keyring_that_the_user_revoked_does_not_seem_to_keep_a_secret(monkeypatch):
    """The kernel has the same error for a missing key, which is no fault while a key is looked for."""

    def revoked(*_):
        kernel_keyring.ctypes.set_errno(errno.EKEYREVOKED)
        return -1

    monkeypatch.setattr(kernel_keyring.platform, "system", lambda: "Linux")
    monkeypatch.setattr(kernel_keyring.platform, "machine", lambda: "x86_64")
    library = SimpleNamespace(syscall=revoked)
    monkeypatch.setattr(kernel_keyring.ctypes, "CDLL", lambda *_, **__: library)
    assert KernelKeyring("trial").read("keys") is None
    with pytest.raises(SiteError, match="keyring"):
        KernelKeyring("trial").write("keys", b"secret")
    assert not KernelKeyring.works()


@pytest.mark.skipif(not KernelKeyring.works(), reason="this kernel has no keyring for us")
def test_keyring_refuses_values_over_its_size_limit():
    with pytest.raises(SiteError, match=f"at most {LARGEST} bytes"):
        KernelKeyring("trial").write("keys", bytes(LARGEST + 1))
