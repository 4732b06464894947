"""Secrets in the kernel's keyring of this user: memory of the kernel, which is never swapped.

This module uses system calls, because the C library has no functions for keys. An extra key lists all names.
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
_USER, _PROCESS = -4, -2  # the keyrings of the user and of this process
_LINK, _UNLINK, _SEARCH, _READ = 8, 9, 10, 11  # operations of keyctl
_INDEX = "names"


def _call(number: int, *arguments: object) -> int:
    plain = [ctypes.c_long(entry) if isinstance(entry, int) else entry for entry in arguments]
    result = int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *plain))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


@dataclass(frozen=True)
class KernelKeyring:
    """The secrets of one site in the keyring of this user; `owner` is a name for the site."""

    owner: str

    @staticmethod
    def works() -> bool:
        """Whether this machine has a keyring that this process may use."""
        try:
            trial = KernelKeyring(f"trial-{os.getpid()}")
            trial.write("trial", b"x")
            trial.delete("trial")
            trial.delete(_INDEX)
        except (SiteError, OSError):
            return False
        return True

    def write(self, name: str, secret: bytes) -> None:
        """Store a secret, replacing the old one."""
        if len(secret) > LARGEST:
            raise SiteError(
                f"the kernel's keyring holds at most {LARGEST} bytes in one key; got {len(secret)}. Name a "
                "folder on a tmpfs in `keys.volatile`."
            )
        try:
            _call(self._numbers()[1], _LINK, _USER, _PROCESS)
            _call(self._numbers()[0], b"user", self._key(name), secret, len(secret), _USER)
            if name != _INDEX and name not in self.names():
                self.write(_INDEX, "\n".join([*self.names(), name]).encode())
        except OSError as error:
            hint = "; its quota is in /proc/sys/kernel/keys/maxbytes" if error.errno == errno.EDQUOT else ""
            raise SiteError(f"the kernel's keyring cannot be used ({error.strerror}){hint}.") from error

    def read(self, name: str) -> bytes | None:
        """A secret, or None."""
        keyctl = self._numbers()[1]
        try:
            _call(keyctl, _LINK, _USER, _PROCESS)
            key = _call(keyctl, _SEARCH, _USER, b"user", self._key(name), 0)
            buffer = ctypes.create_string_buffer(LARGEST + 1)
            size = _call(keyctl, _READ, key, buffer, LARGEST + 1)
            return buffer.raw[:size]
        except OSError as error:
            if error.errno in (errno.ENOKEY, errno.EKEYREVOKED, errno.EKEYEXPIRED):
                return None
            raise SiteError(f"the kernel's keyring cannot be used ({error.strerror}).") from error

    def delete(self, name: str) -> None:
        """Delete a secret; the kernel overwrites it."""
        keyctl = self._numbers()[1]
        try:
            key = _call(keyctl, _SEARCH, _USER, b"user", self._key(name), 0)
            _call(keyctl, _UNLINK, key, _USER)
        except OSError as error:
            if error.errno not in (errno.ENOKEY, errno.EKEYREVOKED, errno.EKEYEXPIRED):
                raise SiteError(f"the kernel's keyring cannot be used ({error.strerror}).") from error

    def names(self) -> list[str]:
        """The names of all secrets."""
        index = (self.read(_INDEX) or b"").decode().split("\n")
        return [name for name in index if name and self.read(name) is not None]

    def _key(self, name: str) -> bytes:
        return f"taciturn:{self.owner}:{name}".encode()

    def _numbers(self) -> tuple[int, int]:
        if platform.system() != "Linux" or platform.machine() not in _CALLS:
            raise SiteError(
                f"the kernel of {platform.system()} {platform.machine()} has no keyring for this program."
            )
        return _CALLS[platform.machine()]
