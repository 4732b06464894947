"""Keys, commitments and pads of one attempt, which is a sequence of rounds with fixed members.

A pad is a random vector that only two sites know: one adds it to its message, the other subtracts it. So pads
hide the messages, and cancel in their sum. Rule R: site i commits to y_i before it uses a pad.

    y_i       what site i adds to the sum of round t, noise included
    K_ij      the key of sites i and j: X25519 of fresh keys, then HKDF with the id of the attempt and the
              numbers i and j; in every round, the key is replaced by an HMAC of itself
    C_i       H(salt, y_i): a commitment to y_i, which site i sends before any site sends its message
    u_ij      the pad of sites i < j: ChaCha20 under HKDF(K_ij; attempt, t, C_i, C_j), so that it depends on
              the commitments to y_i and y_j

A site whose state is restored from a backup, a copy or a machine image with its memory draws another y. It
then has another C and other pads, so that no pad ever covers two messages.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from ...methods.sums.masks import KEY_BYTES, expand_keystream, label_bytes, pair_key

_HEAD = struct.Struct("<II")
_ENTRY = struct.Struct("<H32s")


def public_key(secret: bytes) -> bytes:
    """The public key of a secret of 32 bytes."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


@dataclass(frozen=True)
class RoundKeys:
    """The pair keys of one site in round t of an attempt."""

    attempt: int
    t: int
    keys: Mapping[int, bytes]

    def next(self) -> RoundKeys:
        """The keys of the next round, from which the keys of this round cannot be computed."""
        info = label_bytes("ratchet")
        ratcheted = {j: hmac.digest(key, info, "sha256") for j, key in self.keys.items()}
        return RoundKeys(self.attempt, self.t + 1, ratcheted)

    def hashes(self, scope: bytes) -> dict[int, bytes]:
        """H(K_ij) for every partner j. Both partners send it, to detect pads that would not cancel."""
        info = label_bytes("shown", scope, self.t)
        return {j: hmac.digest(key, info, "sha256") for j, key in self.keys.items()}

    def pack(self) -> bytes:
        entries = (_ENTRY.pack(j, self.keys[j]) for j in sorted(self.keys))
        return _HEAD.pack(self.attempt, self.t) + b"".join(entries)

    @classmethod
    def unpack(cls, data: bytes) -> RoundKeys:
        attempt, t = _HEAD.unpack_from(data)
        return cls(attempt, t, dict(_ENTRY.iter_unpack(data[_HEAD.size :])))


_PROBE = X25519PrivateKey.from_private_bytes(bytes(range(32)))  # not secret: it only tests public keys


@lru_cache(maxsize=1024)
def valid_key(key: bytes) -> bool:
    """Whether a public key is usable; a key of low order would make pads that anyone can compute."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        return False
    return True


def agree_keys(
    own: int, secret: bytes, shown: Mapping[int, bytes], *, scope: bytes, attempt: int, t: int
) -> RoundKeys:
    """The pair keys of an attempt that begins with round t; the public keys in `shown` must be valid."""
    private, keys = X25519PrivateKey.from_private_bytes(secret), {}
    for j, key in shown.items():
        shared = private.exchange(X25519PublicKey.from_public_bytes(key))
        keys[j] = pair_key(shared, scope, f"{min(own, j)}", f"{max(own, j)}")
    return RoundKeys(attempt, t, keys)


def commitment(salt: bytes, y: bytes) -> bytes:
    """C = H(salt, y)"""
    return hashlib.sha256(b"taciturn commit 3" + salt + y).digest()


def pack_commit(value: bytes, digest: bytes, hashes: Mapping[int, bytes]) -> bytes:
    """The payload of a commit: C, a digest of the state and of the round's settings, and every H(K_ij)."""
    return value + digest + b"".join(_ENTRY.pack(j, hashes[j]) for j in sorted(hashes))


def read_commit(payload: bytes) -> tuple[bytes, bytes, dict[int, bytes]] | None:
    """C, digest and key hashes; None if the payload has another format."""
    rest = payload[2 * KEY_BYTES :]
    if len(payload) < 2 * KEY_BYTES or len(rest) % _ENTRY.size:
        return None
    return payload[:KEY_BYTES], payload[KEY_BYTES : 2 * KEY_BYTES], dict(_ENTRY.iter_unpack(rest))


def pad_key(key: bytes, scope: bytes, t: int, first: bytes, second: bytes) -> bytes:
    """The key of one pad; `first` is the commitment of the site with the smaller number."""
    return hmac.digest(key, label_bytes("pad", scope, t, first, second), "sha256")


def mask(own: int, y: bytes, keys: RoundKeys, scope: bytes, commits: Mapping[int, bytes]) -> bytes:
    """The masked message m = y + sum_{j > i} u_ij - sum_{j < i} u_ji mod 2^64 of site i = `own`."""
    total = np.frombuffer(y, dtype="<u8").copy()
    for j, key in keys.keys.items():
        first, second = commits[min(own, j)], commits[max(own, j)]
        stream = expand_keystream(pad_key(key, scope, keys.t, first, second), len(total))
        if j > own:
            total += stream
        else:
            total -= stream
    return total.tobytes()
