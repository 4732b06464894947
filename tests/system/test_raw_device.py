"""No key of a masked run is ever on the disk: the raw device below the state is searched, byte by byte."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.sitemasked import masked_network
from support.siteprocess import run_all
from support.sitework import PATH_OF_3

SIZE = 24  # megabytes


def why_no_device() -> str | None:
    if os.geteuid() != 0:
        return "needs root, to mount a file system of its own"
    for tool in ("losetup", "mkfs.ext4", "mount", "umount"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    return None


def call(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@pytest.fixture
def device(tmp_path):
    """A file system on a loop device, mounted, and the raw device."""
    if (why := why_no_device()) is not None:
        pytest.skip(why)
    image, folder = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(bytes(SIZE * 2**20))
    folder.mkdir()
    loop = call("losetup", "--find", "--show", str(image))
    try:
        call("mkfs.ext4", "-q", loop)
        call("mount", loop, str(folder))
        try:
            yield Path(loop), folder
        finally:
            subprocess.run(["umount", str(folder)], check=False)
    finally:
        subprocess.run(["losetup", "--detach", loop], check=False)


def test_no_usable_key_is_on_the_raw_device_after_a_run(device, tmp_path):
    """The sites record all their secrets elsewhere; then the device is searched for them."""
    loop, folder = device
    paths = masked_network(folder / "net", PATH_OF_3, job={"seed": None, "rounds": 4})
    told = tmp_path / "told"
    told.mkdir()
    run_all(paths, {i: {"tell": str(told / str(i))} for i in range(3)})
    secrets = {entry for file in told.iterdir() for entry in file.read_text().split()}
    secrets.discard(bytes(32).hex())  # the warm-up before the run
    assert len(secrets) > 3 * 4  # a private key, and the keys of every round
    os.sync()
    subprocess.run(["umount", str(folder)], check=True)
    raw = loop.read_bytes()
    subprocess.run(["mount", str(loop), str(folder)], check=True)
    assert len(raw) == SIZE * 2**20 and b"taciturn" in raw
    found = [entry for entry in secrets if bytes.fromhex(entry) in raw]
    assert not found, f"{len(found)} of {len(secrets)} keys are on the device"
