"""What a site is told, and what it wants done: the whole interface between the protocol and the world.

Whoever drives the protocol calls `handle(event, now, entropy)` with a monotonic time and fresh random bytes,
and carries out the effects that come back, in their order. A `Store` is answered by `Stored` once everything
in it is on disk, or by `StoreFailed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...privacy.facts import Charge
from ...privacy.sums import SumFacts


@dataclass(frozen=True)
class Started:
    """The process has begun, with what was on disk and in volatile memory."""


@dataclass(frozen=True)
class Heard:
    """A frame came in, from a neighbour's hand; whoever signed it."""

    data: bytes
    via: int


@dataclass(frozen=True)
class QuestionAsked:
    """A neighbour asks for frames."""

    question: bytes
    by: int


@dataclass(frozen=True)
class Tick:
    """The timer that was set has come."""


@dataclass(frozen=True)
class Stored:
    """What was to be stored under this number is on disk."""

    number: int


@dataclass(frozen=True)
class StoreFailed:
    """Nothing of it is on disk. `budget` says that the owner's account does not pay for the run."""

    number: int
    why: str
    budget: bool = False


@dataclass(frozen=True)
class FinishAsked:
    """The operator wants the run to end after the last complete round, with these sites left out."""

    without: frozenset[int] = frozenset()


Event = Started | Heard | QuestionAsked | Tick | Stored | StoreFailed | FinishAsked


@dataclass(frozen=True)
class ChargedRelease:
    """A charge of round `charge.t`, and what a certificate must say of it.

    attempt, scope : the number and the id of the attempt.   members : who took part.
    sum : the sum that everybody hears; None of a round that only neighbours hear.
    """

    charge: Charge
    attempt: int
    scope: bytes
    members: tuple[int, ...]
    sum: SumFacts | None = None


@dataclass(frozen=True)
class StoreRecords:
    """Put these records on disk, all or none; None deletes one. Nothing that follows from them has left yet.

    releases : charges that go into the ledger in the same transaction.
    """

    number: int
    records: Mapping[str, bytes | None]
    releases: tuple[ChargedRelease, ...] = ()


@dataclass(frozen=True)
class Hold:
    """Put these entries into volatile memory, or delete those that are None: keys, salts, noise."""

    entries: Mapping[str, bytes | None]


@dataclass(frozen=True)
class SendFrame:
    """Hand a frame to these neighbours; to all of them where none is named."""

    data: bytes
    to: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ask:
    """Ask a neighbour for frames; they come as `Heard`."""

    to: int
    question: bytes


@dataclass(frozen=True)
class SetTimer:
    """Send a `Tick` at this time; it replaces the timer before."""

    at: float


class Reason(Enum):
    """Why a site stops."""

    LEFT_ALONE = "left alone"  # too few sites to go on; everything is kept
    CONTRADICTION = "contradiction"  # one site signed two frames for one slot
    DISAGREEMENT = "disagreement"  # members hold different states or keys, and nobody is caught
    IMPOSSIBLE = "impossible"  # a sum that no rows can have
    COPY = "copy"  # another process signs with this site's key
    BUDGET = "budget"  # this site's owner does not pay for the run
    DISK = "disk"  # something could not be stored
    ABORTED = "aborted"  # a computation failed; the round is charged


@dataclass(frozen=True)
class Stop:
    """The site goes on no more; `evidence` are frames that show why."""

    reason: Reason
    text: str
    evidence: tuple[bytes, ...] = ()
    about: int | None = None


@dataclass(frozen=True)
class Finished:
    """The result is there, and is the same at all members."""

    state: Any
    rounds: int
    members: tuple[int, ...]
    digest: bytes
    early: bool = False


@dataclass(frozen=True)
class Leave:
    """No other site needs this one any more."""


@dataclass(frozen=True)
class Note:
    """Something that an operator may want to read."""

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    warning: bool = False


Effect = StoreRecords | Hold | SendFrame | Ask | SetTimer | Stop | Finished | Leave | Note
