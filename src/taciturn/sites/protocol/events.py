"""Events and effects: the whole interface between the protocol of a site and the rest of the program.

The driver calls `SiteProtocol.handle(event, now, entropy)` with a monotonic time and fresh random bytes. It
carries out the returned effects in their order. After `StoreRecords`, it passes the event `Stored` once all
these records are on disk, or else `StoreFailed`.

A frame is a signed message between sites. A record is a named entry of the state on disk. An attempt is a
sequence of rounds with fixed members.
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
    """The process has started, and has loaded what was on disk and in volatile memory."""


@dataclass(frozen=True)
class Heard:
    """The neighbour `via` delivered a frame, which any site may have signed."""

    data: bytes
    via: int


@dataclass(frozen=True)
class QuestionAsked:
    """The neighbour `by` asks for frames."""

    question: bytes
    by: int


@dataclass(frozen=True)
class Tick:
    """`SiteSetup.tick` seconds have passed since the start or the last such event; extra ticks do no harm."""


@dataclass(frozen=True)
class Stored:
    """All records of the `StoreRecords` with this number are on disk."""

    number: int


@dataclass(frozen=True)
class StoreFailed:
    """No record of the `StoreRecords` with this number was stored.

    budget : whether the reason is that the owner's account does not pay for the run.
    """

    number: int
    why: str
    budget: bool = False


@dataclass(frozen=True)
class FinishAsked:
    """The operator ends the run after the last complete round, together with all sites except `without`."""

    without: frozenset[int] = frozenset()


Event = Started | Heard | QuestionAsked | Tick | Stored | StoreFailed | FinishAsked


@dataclass(frozen=True)
class ChargedRelease:
    """A charge of round `charge.t`, and the facts that a certificate states about this round.

    attempt, scope : the number and the id of the attempt.   members : the participants.
    sum : the sum that all sites receive; None for a round between neighbours.
    """

    charge: Charge
    attempt: int
    scope: bytes
    members: tuple[int, ...]
    sum: SumFacts | None = None


@dataclass(frozen=True)
class StoreRecords:
    """Put these records on disk, either all or none of them. The value None deletes a record.

    No frame that depends on these records has been sent yet.

    releases : charges that go into the ledger in the same transaction.
    """

    number: int
    records: Mapping[str, bytes | None]
    releases: tuple[ChargedRelease, ...] = ()


@dataclass(frozen=True)
class Hold:
    """Put these entries (keys, salts, noise) into volatile memory, and delete the entries that are None."""

    entries: Mapping[str, bytes | None]


@dataclass(frozen=True)
class SendFrame:
    """Send a frame to the neighbours `to`, or to all neighbours if `to` is empty."""

    data: bytes
    to: tuple[int, ...] = ()


@dataclass(frozen=True)
class Ask:
    """Ask a neighbour for frames, which arrive as `Heard` events."""

    to: int
    question: bytes


class Reason(Enum):
    """Why a site stops."""

    LEFT_ALONE = "left alone"  # too few sites to continue; everything is stored
    CONTRADICTION = "contradiction"  # one site signed two frames that contradict each other
    DISAGREEMENT = "disagreement"  # members have different states or keys, and no site is proven to lie
    IMPOSSIBLE = "impossible"  # no rows within the public bounds add up to the sum of a round
    COPY = "copy"  # another process signs with this site's key
    BUDGET = "budget"  # the owner's account does not pay for the run
    DISK = "disk"  # a record could not be stored
    ABORTED = "aborted"  # a computation failed; the round is charged


@dataclass(frozen=True)
class Stop:
    """The site stops. `evidence`: the frames that show why. `about`: the site that caused it, if known."""

    reason: Reason
    text: str
    evidence: tuple[bytes, ...] = ()
    about: int | None = None


@dataclass(frozen=True)
class Finished:
    """The result is final and the same at all members."""

    state: Any
    rounds: int
    members: tuple[int, ...]
    digest: bytes
    early: bool = False


@dataclass(frozen=True)
class Leave:
    """The site leaves: no other site needs it any more, or it has waited long enough for the others."""


@dataclass(frozen=True)
class Note:
    """A line for the operator's log."""

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    warning: bool = False


Effect = StoreRecords | Hold | SendFrame | Ask | Stop | Finished | Leave | Note
