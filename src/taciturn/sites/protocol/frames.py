"""The frame: a signed message of the protocol, with its job, kind, attempt, round, sender and payload.

    offset  size   field
    0       12     b"taciturn/3" and two zeros: the version of this format
    12      32     SHA-256 of the job
    44      1      kind, one of `Kind`
    45      4      the number of the attempt
    49      4      round t
    53      2      the sender's position in the job's list of sites
    55      32     scope: the id of the attempt; zeros in HELLO, PROPOSE, LEAVE, TOTAL and KEY
    87      4      n, the length of the payload
    91      n      the payload
    ...            the sender's X.509 certificate in DER form, which states the sender's name and key
    ...     64     Ed25519 signature of all the bytes before it

Numbers are little-endian. Everything except certificate and signature is the content. The SHA-256 of the
content is the digest of the frame. The same content under a renewed certificate is the same frame. An attempt
is a sequence of rounds with fixed members; its id is a hash of everything that the members agreed on.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509 import load_der_x509_certificate

VERSION = 3
MAGIC = b"taciturn/3\0\0"
HEADER = struct.Struct("<12s32sBIIH32sI")
SIGNATURE = 64
LARGEST_CERTIFICATE = 2048
NOTHING = bytes(32)
_SLOT = struct.Struct("<BIIH")
MOST_WANTED = 4096  # the most frames that one question asks for


class Kind(IntEnum):
    """The kinds of frames."""

    HELLO = 1  # I want to take part in this attempt: nonce, public key, my completed rounds and charges
    PROPOSE = 2  # these sites should be the members of the attempt
    SIGN = 3  # I am a member of the attempt with this id
    COMMIT = 4  # a hash of what I add to the sum of round t, and hashes of the keys that mask it
    MESSAGE = 5  # what I add to the sum of round t, masked; in a run without masks, my vector of round t
    DONE = 6  # the digest of my result after the last round
    LEAVE = 7  # I send nothing more: I have my result, or I cannot continue
    TOTAL = 8  # the total of round t, for a site that was away
    KEY = 9  # a request for the key of a neighbour's envelopes, or the answer; no site stores it


ROUND_KINDS = (Kind.COMMIT, Kind.MESSAGE, Kind.DONE)
PLAIN = b"taciturn vector\0"


class Slot(NamedTuple):
    """The place of a frame in the run. In each attempt, an honest site signs at most one frame for a slot."""

    kind: int
    attempt: int
    t: int
    sender: int


class FrameRefused(Exception):  # noqa: N818 - reads as a statement
    """A frame is refused and changes nothing. `kind` is the reason in one word; no message quotes rows."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class SignedFrame:
    """A parsed frame. Its certificate and its signature are not checked yet."""

    job: bytes
    kind: int
    attempt: int
    t: int
    sender: int
    scope: bytes
    payload: bytes
    certificate: bytes
    signature: bytes

    @cached_property
    def content(self) -> bytes:
        """Everything except certificate and signature."""
        return encode(self.job, self.slot, self.scope, self.payload)

    @cached_property
    def digest(self) -> bytes:
        """The digest of the content, which does not depend on the certificate."""
        return hashlib.sha256(self.content).digest()

    @cached_property
    def slot(self) -> Slot:
        return Slot(self.kind, self.attempt, self.t, self.sender)

    @property
    def signed(self) -> bytes:
        """The bytes that are signed."""
        return self.content + self.certificate


def size_cap(payload: int) -> int:
    """The size of the largest frame with a payload of this many bytes."""
    return HEADER.size + payload + LARGEST_CERTIFICATE + SIGNATURE


def encode(job: bytes, slot: Slot, scope: bytes = NOTHING, payload: bytes = b"") -> bytes:
    """The content of a frame: everything except certificate and signature."""
    return HEADER.pack(MAGIC, job, *slot, scope, len(payload)) + payload


def decode(data: bytes, *, largest: int) -> SignedFrame:
    """Parse a frame with a payload of at most `largest` bytes; `FrameRefused` if its format is wrong."""
    if len(data) > size_cap(largest):
        raise FrameRefused(
            "size", f"its message has {len(data)} bytes; at most {size_cap(largest)} are allowed"
        )
    if len(data) < HEADER.size + SIGNATURE or not data.startswith(MAGIC):
        raise _other_version(data) or FrameRefused(
            "garbage", "its data are not a message (frame): the first bytes are wrong"
        )
    _, job, kind, attempt, t, sender, scope, n = HEADER.unpack_from(data)
    end = HEADER.size + n
    if not 0 <= len(data) - end - SIGNATURE <= LARGEST_CERTIFICATE:
        raise FrameRefused(
            "garbage", f"its data are not a message (frame): {len(data)} bytes do not match the header"
        )
    payload, certificate = data[HEADER.size : end], data[end:-SIGNATURE]
    return SignedFrame(job, kind, attempt, t, sender, scope, payload, certificate, data[-SIGNATURE:])


def pack_question(wanted: list[Slot]) -> bytes:
    """A question as bytes: the slots of the frames that a site asks for."""
    return b"".join(_SLOT.pack(*slot) for slot in wanted[:MOST_WANTED])


@lru_cache(maxsize=64)
def read_question(data: bytes) -> tuple[Slot, ...]:
    """The slots of a question; invalid parts are left out."""
    whole = min(len(data) // _SLOT.size, MOST_WANTED) * _SLOT.size
    return tuple(map(Slot._make, _SLOT.iter_unpack(data[:whole])))


def pack_plain(before: bytes, vector: bytes) -> bytes:
    """The payload of a message without masks: a mark, the digest of the previous message, and the vector.

    The digest is that of the site's previous message in this attempt; it is zero in the first message. If a
    site sends two neighbours different messages in one round, its next message names only one of the two
    digests, so that one neighbour notices. The mark shows that the message is not masked.
    """
    return PLAIN + before + vector


def read_plain(payload: bytes) -> tuple[bytes, bytes] | None:
    """(digest of the previous message, vector); None if the payload has another format."""
    start = len(PLAIN) + 32
    if not payload.startswith(PLAIN) or len(payload) < start:
        return None
    return payload[len(PLAIN) : start], payload[start:]


def contradict(first: SignedFrame, second: SignedFrame) -> bool:
    """Whether two frames prove that one site contradicted itself.

    Two different frames for one slot of an attempt prove it. So do the messages of two consecutive rounds, if
    the later message names a digest that the earlier message does not have.
    """
    whose = (first.job, first.kind, first.attempt, first.sender, first.scope)
    if whose != (second.job, second.kind, second.attempt, second.sender, second.scope):
        return False
    if first.kind not in ROUND_KINDS or first.digest == second.digest:
        return False
    if first.t == second.t:
        return True
    earlier, later = sorted((first, second), key=lambda frame: frame.t)
    plain = read_plain(later.payload) if later.t == earlier.t + 1 else None
    return plain is not None and read_plain(earlier.payload) is not None and plain[0] != earlier.digest


def signed_with(frame: SignedFrame, certificate: bytes) -> bool:
    """Whether the key of a certificate signed a frame; the certificate itself is not checked."""
    try:
        key = load_der_x509_certificate(certificate).public_key()
        if not isinstance(key, Ed25519PublicKey):
            return False
        key.verify(frame.signature, frame.signed)
    except (ValueError, InvalidSignature):
        return False
    return True


def new_key(certificate: bytes, other: bytes) -> bool:
    """Whether a valid certificate begins later than another one of the same site, and has another key."""
    first, second = load_der_x509_certificate(certificate), load_der_x509_certificate(other)
    later = first.not_valid_before_utc > second.not_valid_before_utc
    return later and first.public_key() != second.public_key()


def pack_frames(frames: Iterable[bytes]) -> bytes:
    """Frames in one record, each after its length."""
    return b"".join(struct.pack("<I", len(data)) + data for data in frames)


def unpack_frames(data: bytes) -> list[bytes]:
    """The inverse of `pack_frames`."""
    found, place = [], 0
    while place < len(data):
        (size,) = struct.unpack_from("<I", data, place)
        found.append(data[place + 4 : place + 4 + size])
        place += 4 + size
    return found


def _other_version(data: bytes) -> FrameRefused | None:
    """The error for a frame in another version of this format; None for other data."""
    said = re.match(rb"taciturn/(\d{1,3})\0", data[:14])
    if said is None or int(said[1]) == VERSION:
        return None
    older = "older" if int(said[1]) < VERSION else "newer"
    return FrameRefused(
        "version",
        f"it uses version {int(said[1])} of the message format, this site uses version {VERSION}: its "
        f"release is {older}; all sites of a run need the same release",
    )
