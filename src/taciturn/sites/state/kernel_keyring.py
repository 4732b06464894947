"""Secrets in the keyring of this user in the Linux kernel, whose memory is never swapped to a disk.

This module uses system calls, because the C library has no functions for keys.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from dataclasses import dataclass

from ...core.errors import SiteError

LARGEST = 32_767  # bytes of one key
_CALLS = {"x86_64": (248, 250), "aarch64": (217, 219), "riscv64": (217, 219)}  # add_key, keyctl
_ADD, _KEYCTL = 0, 1  # positions in `_CALLS`
_USER, _PROCESS = -4, -2  # the keyrings of the user and of this process
_LINK, _UNLINK, _SEARCH, _READ = 8, 9, 10, 11  # operations of keyctl
_MISSING = (errno.ENOKEY, errno.EKEYREVOKED, errno.EKEYEXPIRED)


def _call(which: int, *arguments: object) -> int | None:
    """The result of a system call about keys; None if there is no such key."""
    if platform.system() != "Linux" or platform.machine() not in _CALLS:
        raise SiteError(
            f"the kernel's keyring needs Linux on one of {', '.join(_CALLS)}; this is {platform.system()} on "
            f"{platform.machine()}. Set `keys.volatile` to the path of a folder on a tmpfs."
        )
    plain = [ctypes.c_long(entry) if isinstance(entry, int) else entry for entry in arguments]
    number = ctypes.c_long(_CALLS[platform.machine()][which])
    result = int(ctypes.CDLL(None, use_errno=True).syscall(number, *plain))
    if result >= 0:
        return result
    code = ctypes.get_errno()
    if code in _MISSING:
        return None
    hint = "; /proc/sys/kernel/keys/maxbytes limits its size" if code == errno.EDQUOT else ""
    raise SiteError(f"the kernel's keyring cannot be used ({os.strerror(code)}){hint}.")


@dataclass(frozen=True)
class KernelKeyring:
    """The secrets of one site in the keyring of this user; `owner` is a name for the site."""

    owner: str

    @staticmethod
    def works() -> bool:
        """Whether this machine has a keyring that this process may use."""
        trial = KernelKeyring(f"trial-{os.getpid()}")
        try:
            trial.write("trial", b"x")
            trial.delete("trial")
        except SiteError:
            return False
        return True

    def write(self, name: str, secret: bytes) -> None:
        """Store a secret, replacing the old one."""
        if len(secret) > LARGEST:
            raise SiteError(
                f"the kernel's keyring holds at most {LARGEST} bytes in one key; got {len(secret)}. Set "
                "`keys.volatile` to the path of a folder on a tmpfs."
            )
        _call(_KEYCTL, _LINK, _USER, _PROCESS)  # lets this process read the keys of its user
        if _call(_ADD, b"user", self._described(name), secret, len(secret), _USER) is None:
            raise SiteError(
                "the kernel's keyring cannot be used: this user's keyring was revoked or expired."
            )

    def read(self, name: str) -> bytes | None:
        """A secret, or None."""
        if (key := self._find(name)) is None:
            return None
        buffer = ctypes.create_string_buffer(LARGEST + 1)
        size = _call(_KEYCTL, _READ, key, buffer, LARGEST + 1)
        return None if size is None else buffer.raw[:size]

    def delete(self, name: str) -> None:
        """Delete a secret; the kernel overwrites it."""
        if (key := self._find(name)) is not None:
            _call(_KEYCTL, _UNLINK, key, _USER)

    def _find(self, name: str) -> int | None:
        """The kernel's number of a key; None if there is no such key."""
        _call(_KEYCTL, _LINK, _USER, _PROCESS)
        return _call(_KEYCTL, _SEARCH, _USER, b"user", self._described(name), 0)

    def _described(self, name: str) -> bytes:
        return f"taciturn:{self.owner}:{name}".encode()
