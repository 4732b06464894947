"""Masks: random vectors that hide the messages of single sites and cancel in the sum over all sites.

    m_i = y_i + sum over partners j > i of u_ij - sum over partners j < i of u_ji          mod 2^64

Here y_i is what site i adds to the sum, noise included. The mask u_ij is uniform in (Z mod 2^64)^d. Of the
two partners i and j, one adds the mask and the other subtracts it. The mask is the ChaCha20 keystream under a
key that HKDF derives from the pair's key, the id of the run, the round and the kind of sum (`part`). A run
that is started again has a new id and new keys. After each round a hash of the pair's key replaces the key.
The hash does not reveal the key, so an attacker who breaks into a site cannot unmask earlier rounds.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Mapping

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from ...core import checks
from ...core.errors import ParameterError

Message = NDArray[np.uint64]
"""A masked message: numbers mod 2^64."""

KEY_BYTES = 32


def pair_key(secret: bytes, run: bytes, first: str, second: str) -> bytes:
    """HKDF-SHA256 [RFC 5869] of the secret that two sites share, bound to the run and to both names."""
    extracted = hmac.digest(run, secret, "sha256")
    return expand(extracted, "pair", *sorted((first, second)))


def expand(key: bytes, *label: str | bytes | int) -> bytes:
    """HKDF-Expand to 32 bytes."""
    return hmac.digest(key, label_bytes(*label), "sha256")


def expand_keystream(key: bytes, count: int) -> Message:
    """The first `count` 64-bit numbers of ChaCha20 [RFC 8439] under a key: nonce 0, block 0, little-endian.

    Each key is used for one keystream only, so the nonce may be 0.
    """
    encryptor = Cipher(ChaCha20(key, nonce=bytes(16)), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * count)), dtype="<u8")


def label_bytes(*label: str | bytes | int) -> bytes:
    """The `info` input of HKDF-Expand. The length of each part precedes the part, so different labels
    give different bytes."""
    whole = [part.to_bytes(8, "big") if isinstance(part, int) else part for part in label]
    parts = [part.encode() if isinstance(part, str) else part for part in whole]
    return b"taciturn" + b"".join(len(part).to_bytes(4, "big") + part for part in parts) + b"\x01"


class PairKeys:
    """The keys that one site shares with its partners in round t.

    A key gives one mask for each (round, part). No mask is used twice, because two messages under the same
    mask would reveal their difference.

    Parameters
    ----------
    site : the number of this site in the network
    keys : 32 bytes for each partner, for round t
    run : the id of the run, a hash of every site's fresh nonce and of the whole job
    alone : whether the network has only one site, which has no partners and adds no masks
    """

    def __init__(
        self, site: int, keys: Mapping[int, bytes], *, run: bytes, t: int = 1, alone: bool = False
    ) -> None:
        self.site, self.run, self.t = checks.whole("site", site), bytes(run), checks.whole("t", t, least=1)
        if bool(keys) == alone or site in keys or any(len(key) != KEY_BYTES for key in keys.values()):
            raise ParameterError(
                f"`keys` must be empty if `alone` is True. Otherwise it must contain {KEY_BYTES} bytes for "
                f"each site that shares masks with site {site}, and no key for site {site} itself."
            )
        self._keys = {int(partner): bytes(keys[partner]) for partner in sorted(keys)}
        self._used: set[str] = set()

    @property
    def keys(self) -> dict[int, bytes]:
        """The keys of this round. They are secret and are deleted when the round is over."""
        return dict(self._keys)

    def mask(self, t: int, part: str, shape: tuple[int, ...]) -> Message:
        """sum_{j>i} u_ij - sum_{j<i} u_ji mod 2^64 for this part of the round; a second call raises."""
        if t != self.t:
            raise ParameterError(f"`t` must be {self.t}, the round of these keys; got {t}.")
        if part in self._used:
            raise ParameterError(
                f"`part` {part!r} of round {t} has been masked already, and a mask may be used only once. "
                "Send the stored message again."
            )
        self._used.add(part)
        total: Message = np.zeros(math.prod(shape), dtype=np.uint64)
        info = label_bytes("mask", self.run, t, part)
        for partner, key in self._keys.items():
            stream = expand_keystream(hmac.digest(key, info, "sha256"), len(total))
            if partner > self.site:
                total += stream
            else:
                total -= stream
        return total.reshape(shape)

    def advance(self) -> None:
        """Advance to the next round, and delete the keys of this round."""
        info = label_bytes("ratchet", self.run)
        self._keys = {partner: hmac.digest(key, info, "sha256") for partner, key in self._keys.items()}
        self._used.clear()
        self.t += 1
