"""An early end: what is said where a run ends before its last round, and how it is noticed.

    1   finish: the last round that this site has completed, why it ends, and who is not waited for
    2   last: the last round that all have completed and its vector of it; of a masked run a hash of the model
    3   done: 'these are the last that I hold', by `common`
    4   left: 'I have my results'

All of it under an attempt that follows from who is not waited for, so that two proposals do not contradict
each other. What 'finish' and 'last' say of the run must be what was said in it: a neighbour that holds a
frame which belies them holds a proof (`contradict` in `wire/form.py`). Whoever has said 'finish' releases no
more.

Whoever has said 'done' after the last round never says 'finish', and nobody says 'last' before all have said
'finish'. So one who hears that 'done', while it waits for a 'finish' that was to be agreed on, goes back and
completes the run: its own last frame has left it long ago.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ....types import Array
from ...files.job import NetworkJob
from ...wire.form import CHECK, FINISH, LAST, ROUND, EarlyForm
from ...wire.frame import FrameRefused, check_values, decode, to_vector
from ...wire.mailbox import Mailbox

HEAD = struct.Struct("<IB")


class Why(IntEnum):
    """Why a site ends early."""

    AGREED = 0
    BUDGET = 1
    FOLLOWS = 2  # because of somebody's budget


@dataclass(frozen=True)
class Finish:
    """What 'finish' says."""

    completed: int
    why: Why
    absent: frozenset[str]

    def pack(self, names: Sequence[str]) -> bytes:
        return HEAD.pack(self.completed, self.why) + _bits(names, self.absent)

    @classmethod
    def unpack(cls, message: bytes, names: Sequence[str]) -> Finish:
        completed, why = HEAD.unpack_from(message)
        bits = int.from_bytes(message[HEAD.size :], "little")
        return cls(completed, Why(why), frozenset(n for k, n in enumerate(names) if bits >> k & 1))


def message_of(data: bytes) -> bytes:
    """The message of a frame that this site has on disk."""
    return decode(data, largest=len(data)).message


def vector_of(last: bytes) -> tuple[int, Array]:
    """The round and the vector that a 'last' is about."""
    return int(ROUND.unpack_from(last)[0]), to_vector(last[ROUND.size :])


class Finishing(Exception):  # noqa: N818 - reads as a statement
    """The run ends here: `why`, without those who are `absent`."""

    def __init__(self, why: Why, absent: frozenset[str] = frozenset()) -> None:
        super().__init__(why.name)
        self.why, self.absent = why, absent


class Completed(Exception):  # noqa: N818
    """`name` has said 'done' after the last round: it will not finish early, and holds this site's frame."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def attempt_of(names: Sequence[str], absent: Collection[str]) -> int:
    """The attempt of the frames that end a run without some; neither 0 nor that of a check."""
    digest = hashlib.sha256(_bits(names, absent)).digest()
    return 1 + int.from_bytes(digest[:4], "little") % (CHECK - 2)


def early_form(job: NetworkJob, absent: frozenset[str] = frozenset()) -> EarlyForm:
    """The form of these frames."""
    last = 32 if job.masked else ROUND.size + 8 * job.dimension
    sizes = {FINISH: HEAD.size + len(_bits(job.names, ())), LAST: last}

    def check(t: int, message: bytes) -> None:
        if t == LAST and not job.masked:
            check_values(vector_of(message)[1], clip=job.penalty.clip)
        elif t == FINISH:
            try:
                said = Finish.unpack(message, job.names)
            except ValueError as error:
                raise FrameRefused("finish", "an end for a reason that there is not") from error
            if said.completed > job.rounds or said.absent != absent:
                raise FrameRefused("finish", "an end that does not fit the job, or its own name")

    return EarlyForm(job, lambda t: sizes.get(t, 0), max(sizes.values()), check, absent=absent)


def look_early(early: Mailbox, own: str) -> None:
    """Has somebody's budget ended the run? Then it ends here too.

    Whoever says so has been through the opening, so everybody can be: nobody follows before round 1.
    """
    names = early.form.job.names
    for number, letter in early.letters(FINISH).items():
        said = Finish.unpack(letter.frame.message, names)
        if names[number] != own and said.why is not Why.AGREED:
            raise Finishing(Why.FOLLOWS)


def _bits(names: Sequence[str], absent: Collection[str]) -> bytes:
    bits = sum(1 << k for k, name in enumerate(names) if name in absent)
    return bits.to_bytes((len(names) + 7) // 8, "little")
