"""The frame: the only thing that leaves a site. Job, round, sender, f_i(t), and the proof of who sent it.

    offset  size   field
    0       12     b"taciturn/1" and two zeros
    12      32     SHA-256 of the job
    44      4      round t, unsigned
    48      2      sender, its place in the job's list of sites
    50      2      c, the length of the certificate
    52      4      d, the length of the vector
    56      8 d    f_i(t), float64
    ...     c      the sender's X.509 certificate, DER: which key signs for that name
    ...     64     Ed25519 signature of all that precedes

Numbers are little-endian. A frame without a vector, d = 0, says 'this is my job' in round 0, and 'I have all
that I need' after the last round.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ...types import Array

MAGIC = b"taciturn/1\0\0"
HEADER = struct.Struct("<12s32sIHHI")
SIGNATURE = 64
LARGEST_CERTIFICATE = 2048


class FrameRefused(Exception):  # noqa: N818 - reads as a statement
    """A frame that changes nothing: `kind` in one word, the message in one line that quotes no value."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Frame:
    """A frame taken apart; whether it may be believed is a question for `trust.py`."""

    job: bytes
    t: int
    sender: int
    vector: Array
    certificate: bytes
    signature: bytes
    signed: bytes


def size_cap(dimension: int) -> int:
    """The largest frame of a job with d = `dimension`, in bytes."""
    return HEADER.size + 8 * dimension + LARGEST_CERTIFICATE + SIGNATURE


def encode(*, job: bytes, t: int, sender: int, vector: Array, certificate: bytes) -> bytes:
    """All of a frame but its signature."""
    values = np.ascontiguousarray(vector, dtype="<f8")
    if len(certificate) > LARGEST_CERTIFICATE:
        raise ValueError(
            f"a certificate must be at most {LARGEST_CERTIFICATE} bytes; got {len(certificate)}."
        )
    header = HEADER.pack(MAGIC, job, t, sender, len(certificate), values.size)
    return header + values.tobytes() + certificate


def decode(data: bytes, *, dimension: int) -> Frame:
    """Take a frame of a job with d = `dimension` apart, or say what is wrong with its form."""
    if len(data) > size_cap(dimension):
        raise FrameRefused("size", f"{len(data)} bytes, above the cap of {size_cap(dimension)}")
    if len(data) < HEADER.size + SIGNATURE:
        raise FrameRefused("garbage", f"not a frame: {len(data)} bytes are too few")
    magic, job, t, sender, certificate, d = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise FrameRefused("garbage", "not a frame: it does not begin like one")
    if d not in (0, dimension):
        raise FrameRefused("length", f"a vector of length {d}, not {dimension}")
    if len(data) != HEADER.size + 8 * d + certificate + SIGNATURE:
        raise FrameRefused("garbage", f"not a frame: {len(data)} bytes do not fit its header")
    end = HEADER.size + 8 * d
    return Frame(
        job=job,
        t=t,
        sender=sender,
        vector=np.frombuffer(data, dtype="<f8", count=d, offset=HEADER.size).astype(np.float64),
        certificate=data[end : end + certificate],
        signature=data[-SIGNATURE:],
        signed=data[:-SIGNATURE],
    )


def check_values(vector: Array, *, clip: float) -> None:
    """Finite and within the job's public range, as any honest site's: a huge number swallows the noise."""
    if not np.isfinite(vector).all():
        raise FrameRefused("values", "a value that is not a finite number")
    if vector.size and np.abs(vector).max() > clip:
        raise FrameRefused("values", f"a value outside the job's range of +-{clip:g}")
