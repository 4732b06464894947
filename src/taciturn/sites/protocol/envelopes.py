"""Envelopes: everything that a site sends, encrypted for neighbours whose certificates it accepts.

Zenoh's TLS has no revocation lists, so the holder of a revoked certificate can open a link. A relay decrypts
the TLS of what it carries. Neither the holder nor the relay can open an envelope. Each process draws a
sending key, which encrypts its envelopes. A neighbour gets this key in answer to a signed request, if the
neighbour's certificate is valid and not revoked.

    request    a frame (a signed message) of kind KEY: b"?", the X25519 key of the asker
    answer     a frame of kind KEY: b"!", the asker's X25519 key, the X25519 key of the answerer, nonce,
               AES-256-GCM(sending key, and the settings in job.toml if the two jobs differ)
    envelope   MAGIC (12 bytes), id of the sending key (8), nonce (12), AES-256-GCM(`Content` (1), data)

No key outlives the process. Nonces are random: a counter would repeat in a copy of the machine's memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .frames import NOTHING, FrameRefused, Kind, SignedFrame, Slot, decode, encode

MAGIC = b"taciturn/3\0\1"
REQUEST, ANSWER = b"?", b"!"
KEY, ID, NONCE, TAG = 32, 8, 12, 16
OVERHEAD = len(MAGIC) + ID + NONCE + TAG + 1
LARGEST_JOB = 2**13  # bytes of a job's settings that an answer may contain
MOST_KEYS = 8  # sending keys kept for one neighbour, which draws a new one at every start


class Content(IntEnum):
    """What an envelope contains."""

    FRAME = 1
    QUESTION = 2
    WHEREABOUTS = 3


@dataclass
class Envelopes:
    """The sending keys of this process and of its neighbours.

    job : SHA-256 of the job.   shown : the job's public settings, for a neighbour that has another job.
    seal : signs as this site.   check : raises `FrameRefused` if this neighbour did not sign the frame.
    draw : random bytes.
    """

    job: bytes
    own: int
    seal: Callable[[bytes], bytes]
    check: Callable[[SignedFrame, int], None]
    draw: Callable[[int], bytes]
    shown: bytes = b""
    known: dict[int, dict[bytes, AESGCM]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Draw new keys: neighbours that have the old keys must ask again."""
        self._private = X25519PrivateKey.from_private_bytes(self.draw(KEY))
        self._public = self._private.public_key().public_bytes_raw()
        self._sending = self.draw(KEY)
        self._cipher, self._id = AESGCM(self._sending), _id(self._sending)
        self.request = self._sign(REQUEST + self._public)
        self.known = {}

    def close(self, content: Content, data: bytes) -> bytes:
        """Data in an envelope, for all neighbours."""
        nonce = self.draw(NONCE)
        return MAGIC + self._id + nonce + self._cipher.encrypt(nonce, bytes([content]) + data, None)

    def open(self, envelope: bytes, via: int) -> tuple[Content, bytes] | None:
        """The content of a neighbour's envelope; None if the key of the envelope is not known yet."""
        start = len(MAGIC) + ID
        cipher = self.known.get(via, {}).get(envelope[len(MAGIC) : start])
        if cipher is None:
            return None
        try:
            data = cipher.decrypt(envelope[start : start + NONCE], envelope[start + NONCE :], None)
            return Content(data[0]), data[1:]
        except (InvalidTag, ValueError, IndexError) as error:
            raise FrameRefused("cipher", "its message cannot be decrypted") from error

    def read(self, data: bytes, via: int) -> SignedFrame:
        """A request or an answer of a neighbour, which must have signed it with a valid certificate."""
        frame = decode(data, largest=2 * LARGEST_JOB)
        if frame.kind != Kind.KEY:
            raise FrameRefused("envelope", "its message is not encrypted")
        self.check(frame, via)
        return frame

    def answer(self, frame: SignedFrame) -> bytes | None:
        """The answer to a request; None if the frame is not a request."""
        if frame.payload[:1] != REQUEST:
            return None
        theirs, nonce = frame.payload[1:], self.draw(NONCE)
        content = self._sending + (self.shown[:LARGEST_JOB] if frame.job != self.job else b"")
        wrapped = self._shared(theirs, theirs + self._public).encrypt(nonce, content, None)
        return self._sign(ANSWER + theirs + self._public + nonce + wrapped)

    def learn(self, frame: SignedFrame, via: int) -> bytes | None:
        """If a frame answers this process, keep its key and return the bytes after the key; else None."""
        if frame.payload[: 1 + KEY] != ANSWER + self._public:
            return None
        theirs, rest = frame.payload[1 + KEY : 1 + 2 * KEY], frame.payload[1 + 2 * KEY :]
        try:
            content = self._shared(theirs, self._public + theirs).decrypt(rest[:NONCE], rest[NONCE:], None)
            cipher = AESGCM(content[:KEY])
        except (InvalidTag, ValueError) as error:
            raise FrameRefused("cipher", "its key cannot be read") from error
        keys, name = self.known.setdefault(via, {}), _id(content[:KEY])
        keys.pop(name, None)
        keys[name] = cipher
        while len(keys) > MOST_KEYS:
            keys.pop(next(iter(keys)))
        return content[KEY:]

    def _shared(self, theirs: bytes, both: bytes) -> AESGCM:
        """The cipher of an answer; `both` are the public keys of the asker and of the answering site."""
        try:
            secret = self._private.exchange(X25519PublicKey.from_public_bytes(theirs))
        except ValueError as error:
            raise FrameRefused("cipher", "its public key is invalid") from error
        return AESGCM(HKDF(SHA256(), KEY, None, b"taciturn envelope 3" + both).derive(secret))

    def _sign(self, payload: bytes) -> bytes:
        return self.seal(encode(self.job, Slot(Kind.KEY, 0, 0, self.own), NOTHING, payload))


def _id(key: bytes) -> bytes:
    return hashlib.sha256(b"taciturn sending key" + key).digest()[:ID]
