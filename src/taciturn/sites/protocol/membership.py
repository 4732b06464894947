"""Membership: which sites take part in an attempt, and where it begins. Pure functions of signed bytes.

An attempt is a sequence of rounds with fixed members. Before it, each site sends a hello, which states its
last completed round and every attempt in which it was charged. A proposal names the hellos of the members.
Everything about an attempt follows from these hellos, so all members that sign compute the same attempt:

    base      the last (attempt, round) that a member completed, with the digest of the public state after it
    past      each earlier attempt, up to the last charged round that any member states; the cost of these
              attempts is subtracted from the budget of all members
    left      the share of the budget that remains
    id        hash(job, number, members, base, left, settings of the rounds, hellos, past)
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .frames import FrameRefused, SignedFrame

_HELLO = struct.Struct("<32s32sB32sII32sHI")
_PAST = struct.Struct("<IIdIH")
MOST_PAST = 64  # the most earlier attempts in one hello, and in all hellos of an attempt together
FINISH, LOST = 1, 2


@dataclass(frozen=True)
class Past:
    """An attempt in which a site was charged.

    base, charged : the last round before the attempt, and the last charged round of the attempt.
    left : the share of the budget that remained when the attempt began.
    """

    number: int
    members: tuple[int, ...]
    base: int
    left: float
    charged: int


@dataclass(frozen=True)
class Hello:
    """The statement of a site about itself before an attempt.

    nonce, key : random bytes, and an X25519 public key; both are drawn for this attempt alone.
    finish : the operator wants the run to end after the last complete round, without the sites in `without`.
    completed, digest : the attempt and round that the site completed last, and the digest of the public state
        after this round.
    vector : the last vector that the site released; empty if all sites have one public state.
    lost : whether the site ever lost its state or its keys, so that its `past` may come from other sites.
    """

    nonce: bytes
    key: bytes
    finish: bool
    without: bytes
    completed: tuple[int, int]
    digest: bytes
    past: tuple[Past, ...] = ()
    vector: bytes = b""
    lost: bool = False

    def pack(self) -> bytes:
        flags = FINISH * self.finish + LOST * self.lost
        head = _HELLO.pack(
            self.nonce,
            self.key,
            flags,
            self.without,
            *self.completed,
            self.digest,
            len(self.past),
            len(self.vector),
        )
        return head + b"".join(map(pack_past, self.past)) + self.vector


@lru_cache(maxsize=1024)
def read_hello(payload: bytes) -> Hello:
    """Parse a hello; `FrameRefused` if the payload has another format. The result is cached."""
    try:
        nonce, key, flags, without, a, t, digest, count, size = _HELLO.unpack_from(payload)
        past, place = read_pasts(payload, _HELLO.size, min(count, MOST_PAST))
    except struct.error as error:
        raise FrameRefused("hello", "its 'hello' message is too short") from error
    vector = payload[place:]
    if count > MOST_PAST or len(vector) != size or flags > FINISH + LOST:
        raise FrameRefused("hello", "its 'hello' message has wrong lengths or flags")
    finish, lost = bool(flags & FINISH), bool(flags & LOST)
    return Hello(nonce, key, finish, without, (a, t), digest, past, vector, lost)


def pack_past(past: Past) -> bytes:
    head = _PAST.pack(past.number, past.base, past.left, past.charged, len(past.members))
    return head + struct.pack(f"<{len(past.members)}H", *past.members)


def read_past(payload: bytes, place: int) -> tuple[Past, int]:
    number, base, left, charged, size = _PAST.unpack_from(payload, place)
    place += _PAST.size
    members = struct.unpack_from(f"<{size}H", payload, place)
    if list(members) != sorted(set(members)) or not 0 < left <= 1 or charged < base:
        raise FrameRefused("hello", "its 'hello' message states an impossible attempt")
    return Past(number, members, base, left, charged), place + 2 * size


def read_pasts(payload: bytes, place: int, count: int) -> tuple[tuple[Past, ...], int]:
    """`count` entries that begin at `place`, and the place after them."""
    found = []
    for _ in range(count):
        entry, place = read_past(payload, place)
        found.append(entry)
    return tuple(found), place


def set_bits(numbers: Iterable[int]) -> bytes:
    """A set of sites as 32 bytes: one bit for each site, or a hash if a number is 256 or more."""
    chosen = sorted(numbers)
    if all(number < 256 for number in chosen):
        return sum(1 << number for number in chosen).to_bytes(32, "little")
    return hashlib.sha256(repr(chosen).encode()).digest()


def pack_proposal(hellos: Mapping[int, bytes]) -> bytes:
    """A proposal as bytes: the number of each member and the digest of its hello."""
    return b"".join(struct.pack("<H32s", i, hellos[i]) for i in sorted(hellos))


def read_proposal(payload: bytes) -> dict[int, bytes]:
    """For each member that a proposal names, the digest of its hello."""
    if not payload or len(payload) % 34:
        raise FrameRefused("proposal", "its proposal of members has a wrong length")
    pairs = list(struct.iter_unpack("<H32s", payload))
    numbers = [i for i, _ in pairs]
    if numbers != sorted(set(numbers)):
        raise FrameRefused("proposal", "the members in its proposal are not in order")
    return dict(pairs)


@dataclass(frozen=True)
class Agreed:
    """The attempt that follows from the members' hellos.

    base, digest : the last round before the attempt, and the digest of the public state after it.
    past : the earlier attempts, which count for all members.   left : the share of the budget that remains.
    finish : whether the run ends without a further round.
    """

    number: int
    members: tuple[int, ...]
    base: tuple[int, int]
    digest: bytes
    past: tuple[Past, ...]
    left: float
    finish: bool
    hellos: Mapping[int, SignedFrame]

    def id(self, job: bytes, numbers: bytes) -> bytes:
        """The id that every member signs; `numbers` is a hash of the settings of the attempt's rounds."""
        parts = [
            job,
            struct.pack("<III?d", self.number, *self.base, self.finish, self.left),
            self.digest,
            numbers,
        ]
        parts += [struct.pack("<H", i) + self.hellos[i].digest for i in self.members]
        parts += [pack_past(entry) for entry in self.past]
        return hashlib.sha256(b"taciturn attempt 3" + b"".join(parts)).digest()


def agree(
    number: int, hellos: Mapping[int, SignedFrame], spent: Callable[[int, float, int], float], *, common: bool
) -> Agreed:
    """The attempt that the members' hellos define; `FrameRefused` if they contradict each other.

    spent : (base, left, last) -> the share of the budget that the rounds from base + 1 to last cost.
    common : whether all sites have one public state; if not, each site continues from its own state.
    """
    members = tuple(sorted(hellos))
    read = {i: read_hello(hellos[i].payload) for i in members}
    past = merge_past([hello.past for hello in read.values()])
    if len(past) > MOST_PAST:
        raise FrameRefused("past", f"the sites state more than {MOST_PAST} earlier attempts")
    finish = all(hello.finish for hello in read.values())
    if finish and len({hello.without for hello in read.values()}) > 1:
        raise FrameRefused("finish", "the sites do not agree which sites are missing")
    if common:
        base = max(hello.completed for hello in read.values())
        digests = {hello.digest for hello in read.values() if hello.completed == base}
        if len(digests) > 1:
            raise FrameRefused("state", "two sites state different sums for the same round")
        digest = digests.pop()
    else:
        reached = [entry.charged for entry in past] + [hello.completed[1] for hello in read.values()]
        base, digest = (number, max(reached)), bytes(32)
    left = 1.0 - sum(spent(entry.base, entry.left, entry.charged) for entry in past)
    return Agreed(number, members, base, digest, past, max(0.0, left), finish, hellos)


def merge_past(stated: Sequence[Sequence[Past]]) -> tuple[Past, ...]:
    """Every attempt that a member states; of several statements, the one with the latest charged round."""
    found: dict[int, Past] = {}
    for entry in (entry for entries in stated for entry in entries):
        known = found.get(entry.number)
        if known is None or entry.charged > known.charged:
            found[entry.number] = entry
        if known is not None and (known.members, known.base, known.left) != (
            entry.members,
            entry.base,
            entry.left,
        ):
            raise FrameRefused("past", f"two sites state different facts about attempt {entry.number}")
    return tuple(found[number] for number in sorted(found))
