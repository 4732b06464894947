"""The frame: the only thing that leaves a site. Job, round, sender, message, its past, and who signed it.

    offset  size   field
    0       12     b"taciturn/2" and two zeros: the version of this form
    12      32     SHA-256 of the job
    44      4      attempt, 0 at first
    48      4      round t, signed; what those before 1 and after the last are is in form.py
    52      2      sender, its place in the job's list of sites
    54      4      n, the length of the message
    58      32     before: the digest of the sender's frame before this one; zeros in its first
    90      32     common: one hash over everybody's frames of the round before, where everybody has them
    122     n      the message: f_i(t), whole numbers, or a nonce, as the job says
    ...            the sender's X.509 certificate, DER: which key signs for that name
    ...     64     Ed25519 signature of all that precedes

Numbers are little-endian. All but certificate and signature is the content, and its SHA-256 the digest: the
same content under a renewed certificate is the same frame. Because of `before` a site that sends different
frames of one round to two neighbours must keep its two stories apart for ever, and the last frames of all
sites come to all sites: there it is found out. Each `before` can be checked by whoever hears the frame.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...types import Array

VERSION = 2
MAGIC = b"taciturn/2\0\0"
HEADER = struct.Struct("<12s32sIiHI32s32s")
SIGNATURE = 64
LARGEST_CERTIFICATE = 2048
PROOF = b"taciturn-proof/1\0"
NOTHING = bytes(32)
"""Where there is no frame to point to."""


class FrameRefused(Exception):  # noqa: N818 - reads as a statement
    """A frame that changes nothing: `kind` in one word, the message in one line that quotes no value."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Frame:
    """A frame taken apart; whether it may be believed is a question for `trust.py`."""

    job: bytes
    attempt: int
    t: int
    sender: int
    before: bytes
    common: bytes
    message: bytes
    certificate: bytes
    signature: bytes

    @cached_property
    def content(self) -> bytes:
        """All but certificate and signature."""
        return encode(
            job=self.job,
            attempt=self.attempt,
            t=self.t,
            sender=self.sender,
            before=self.before,
            common=self.common,
            message=self.message,
        )

    @cached_property
    def digest(self) -> bytes:
        """What this frame is, whichever certificate it was sealed with."""
        return hashlib.sha256(self.content).digest()

    @property
    def signed(self) -> bytes:
        """What the signature is of."""
        return self.content + self.certificate


def size_cap(message: int) -> int:
    """The largest frame of a job whose longest message has that many bytes."""
    return HEADER.size + message + LARGEST_CERTIFICATE + SIGNATURE


def encode(
    *,
    job: bytes,
    t: int,
    sender: int,
    message: bytes = b"",
    before: bytes = NOTHING,
    common: bytes = NOTHING,
    attempt: int = 0,
) -> bytes:
    """The content of a frame: all but certificate and signature."""
    return HEADER.pack(MAGIC, job, attempt, t, sender, len(message), before, common) + message


def decode(data: bytes, *, largest: int) -> Frame:
    """Take a frame apart whose message has at most `largest` bytes, or say what is wrong with its form."""
    if len(data) > size_cap(largest):
        raise FrameRefused("size", f"{len(data)} bytes, above the cap of {size_cap(largest)}")
    if len(data) < HEADER.size + SIGNATURE:
        raise _other_version(data) or FrameRefused("garbage", f"not a frame: {len(data)} bytes are too few")
    magic, job, attempt, t, sender, n, before, common = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _other_version(data) or FrameRefused("garbage", "not a frame: it does not begin like one")
    certificate = len(data) - HEADER.size - n - SIGNATURE
    if not 0 <= certificate <= LARGEST_CERTIFICATE:
        raise FrameRefused("garbage", f"not a frame: {len(data)} bytes do not fit its header")
    end = HEADER.size + n
    return Frame(
        job=job,
        attempt=attempt,
        t=t,
        sender=sender,
        before=before,
        common=common,
        message=data[HEADER.size : end],
        certificate=data[end:-SIGNATURE],
        signature=data[-SIGNATURE:],
    )


def common_hash(digests: Iterable[bytes]) -> bytes:
    """One hash over the digests of everybody's frames of a round, in the order of the sites."""
    return hashlib.sha256(b"".join(digests)).digest()


def pack_proof(first: bytes, second: bytes) -> bytes:
    """Two frames that contradict each other, in one message."""
    return PROOF + len(first).to_bytes(4, "little") + first + second


def unpack_proof(data: bytes) -> tuple[bytes, bytes]:
    """The two frames of a proof; whether they prove anything is another question."""
    begin = len(PROOF) + 4
    end = begin + int.from_bytes(data[len(PROOF) : begin], "little")
    return data[begin:end], data[end:]


def to_message(vector: Array) -> bytes:
    """f_i(t) as a message."""
    return np.ascontiguousarray(vector, dtype="<f8").tobytes()


def to_vector(message: bytes) -> Array:
    """The message as f_i(t)."""
    return np.frombuffer(message, dtype="<f8").astype(np.float64)


def check_values(vector: Array, *, clip: float) -> None:
    """Finite and within the job's public range, as any honest site's: a huge number swallows the noise."""
    if not np.isfinite(vector).all():
        raise FrameRefused("values", "a value that is not a finite number")
    if vector.size and np.abs(vector).max() > clip:
        raise FrameRefused("values", f"a value outside the job's range of +-{clip:g}")


def reaches_edge(vector: Array, clip: float) -> bool:
    """Whether a vector has a number at the very edge of the job's range, where honest ones hardly get."""
    return bool(vector.size and np.abs(vector).max() >= clip)


def _other_version(data: bytes) -> FrameRefused | None:
    """A frame of another release of this program, which is no stranger's garbage."""
    said = re.match(rb"taciturn/(\d{1,3})\0", data[:14])
    if said is None or int(said[1]) == VERSION:
        return None
    older = "older" if int(said[1]) < VERSION else "newer"
    return FrameRefused(
        "version",
        f"it speaks version {int(said[1])} of the frames, and this site version {VERSION}: its release is "
        f"{older}; all sites of a run need the same one",
    )


def follows(before: Frame, after: Frame) -> bool:
    """Whether the later of two frames of consecutive rounds names the earlier one; True for other rounds."""
    if (before.attempt, before.t + 1) != (after.attempt, after.t):
        return True
    return after.before == before.digest
