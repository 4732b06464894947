"""The base class of a site's protocol: it keeps frames, checks received frames and requests effects.

A frame is a signed message between sites. An effect is an instruction to the driver, for example to send a
frame. A hello is the frame with which a site joins an attempt, a sequence of rounds with fixed members.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .events import Ask, ChargedRelease, Effect, Hold, Note, Reason, SendFrame, Stop, StoreRecords
from .frames import (
    NOTHING,
    PLAIN,
    FrameRefused,
    Kind,
    SignedFrame,
    Slot,
    contradict,
    decode,
    encode,
    new_key,
    pack_question,
)
from .membership import Hello, Past, pack_past, read_hello, read_past, read_proposal

MOST_HELD = 20_000  # frames in memory; above this number, the site that sent the most frames is refused
MOST_SKIPPED = 2**16  # the most attempts between the newest known attempt and the attempt of a frame
LAST_ATTEMPT = 2**31
MOST_VARIANTS = 4  # the most hellos of one site for one attempt in memory
WITH_ROUND = (Kind.COMMIT, Kind.MESSAGE, Kind.TOTAL)  # kinds of frames that belong to a round


@dataclass(frozen=True, eq=False)
class SiteSetup:
    """The facts that a site has before it starts.

    job : SHA-256 of the job.   names, own : the names of all sites, and the number of this site.
    links : the neighbours of every site.
    quorum : how many sites an attempt needs.
    patience : seconds of silence after which the run continues without a site, or stops.
    method : what this site computes, over all attempts of the run.
    seal : turns a content into a signed frame of this site.
    believe : raises `FrameRefused` unless the sender of a frame has signed it with a valid certificate.
    largest : the most bytes that the payload of a frame may have.
    mark : if no random masks hide the messages, the last round that this site may have released; else 0.
    paid : whether records outside the state folder show that the state may lack charges.
    gather : seconds to wait for more hellos.   tick : seconds between two `Tick` events.
    """

    job: bytes
    names: tuple[str, ...]
    own: int
    links: tuple[tuple[int, ...], ...]
    quorum: int
    patience: float
    method: Any
    seal: Callable[[bytes], bytes]
    believe: Callable[[SignedFrame], None]
    largest: int
    mark: int = 0
    paid: bool = False
    gather: float = 2.0
    tick: float = 0.5

    @property
    def neighbours(self) -> tuple[int, ...]:
        return self.links[self.own]

    @property
    def all_needed(self) -> bool:
        """Whether the run needs every site."""
        return self.quorum >= len(self.names)

    def route(self, origin: int, members: tuple[int, ...]) -> tuple[int, ...] | None:
        """The members to which this site forwards the frames of `origin`, along shortest paths.

        None if some member cannot be reached through members alone.
        """
        parents, reached = {origin: origin}, [origin]
        for k in reached:
            new = [j for j in self.links[k] if j in members and j not in parents]
            parents.update(dict.fromkeys(new, k))
            reached += new
        if len(parents) < len(members):
            return None
        return tuple(j for j in reached if parents[j] == self.own != origin)


class Core:
    """The frames and records of one site. Its methods do no I/O: they append effects for the driver."""

    def __init__(self, setup: SiteSetup, saved: Mapping[str, bytes], volatile: Mapping[str, bytes]) -> None:
        self.setup, self.method = setup, setup.method
        self.saved, self.volatile = dict(saved), dict(volatile)
        self.effects: list[Effect] = []
        self.pending: dict[str, bytes | None] = {}
        self.owed: tuple[ChargedRelease, ...] = ()
        self.stores = 0
        self.then: dict[int, Callable[[], None]] = {}
        self.board: dict[tuple[Slot, bytes], tuple[SignedFrame, bytes]] = {}
        self.hellos: dict[Slot, dict[bytes, tuple[SignedFrame, bytes]]] = {}
        self.greeted = 0  # the number of hellos in memory
        self.dones: dict[tuple[int, bytes, bytes], dict[int, SignedFrame]] = {}
        self.now, self._entropy, self._drawn = 0.0, b"", 0
        self.stopped = False
        self.number = 0
        self.seen = 0
        self.refused: dict[tuple[int, str], int] = {}
        self.flooding: set[int] = set()  # sites that filled the memory; their frames are refused
        self.asked = -1.0  # when this site last asked a question that `rarely` limits
        self.junk = 0  # how many frames of the flooding sites are in memory

    # -- time, randomness, effects ----------------------------------------------------------------------

    def fresh(self) -> bytes:
        """32 fresh random bytes, from the entropy that came with the current event."""
        self._drawn += 1
        return hashlib.sha256(self._entropy + self._drawn.to_bytes(4, "little")).digest()

    def store(
        self,
        records: Mapping[str, bytes | None],
        then: Callable[[], None],
        releases: tuple[ChargedRelease, ...] = (),
    ) -> None:
        """Ask the driver to store records; `then` is called once they are on disk."""
        whole, releases = {**self.pending, **records}, (*self.owed, *releases)
        self.pending, self.owed = {}, ()
        change(self.saved, whole)
        self.stores += 1
        self.then[self.stores] = then
        self.effects.append(StoreRecords(self.stores, whole, releases))

    def hold(self, **entries: bytes | None) -> None:
        """Change volatile memory immediately."""
        change(self.volatile, entries)
        self.effects.append(Hold(entries))

    def note(self, text: str, *, warning: bool = False, **facts: Any) -> None:
        self.effects.append(Note(text, facts, warning))

    def stop(self, reason: Reason, text: str, *evidence: bytes, about: int | None = None) -> None:
        """Stop the site with a reason."""
        if not self.stopped:
            self.stopped = True
            self.effects.append(Stop(reason, text, evidence, about))

    # -- frames -----------------------------------------------------------------------------------------

    def seal(
        self, kind: Kind, attempt: int, t: int = 0, scope: bytes = NOTHING, payload: bytes = b""
    ) -> bytes:
        """Sign a frame as this site; it is not sent yet."""
        return self.setup.seal(encode(self.setup.job, Slot(kind, attempt, t, self.setup.own), scope, payload))

    def reseal(self, data: bytes) -> bytes:
        """A stored frame of this site, signed again under its current certificate."""
        return self.setup.seal(self.read(data).content)

    def stored(self, key: str) -> SignedFrame | None:
        """This site's frame in the record `key` on disk; None if there is no such record."""
        return self.read(self.saved[key]) if key in self.saved else None

    def repeat(self, key: str) -> SignedFrame:
        """Send the frame in the record `key` on disk again, under this site's current certificate."""
        return self.publish(self.reseal(self.saved[key]))

    def read(self, data: bytes) -> SignedFrame:
        """Parse a frame that this site already has."""
        return decode(data, largest=self.setup.largest)

    def publish(self, data: bytes, read: SignedFrame | None = None) -> SignedFrame:
        """Send a frame of this site to all neighbours, and keep it for later questions.

        read : the frame in `data`, if the caller has parsed it.
        """
        frame = self.read(data) if read is None else read
        self.keep(frame, data)
        self.effects.append(SendFrame(data))
        return frame

    def keep(self, frame: SignedFrame, data: bytes) -> None:
        """Store a valid frame in memory."""
        if frame.kind == Kind.HELLO:
            self.hellos.setdefault(frame.slot, {})[frame.digest] = frame, data
            self.greeted += 1
        else:
            self.board[frame.slot, frame.scope] = frame, data
            if frame.kind == Kind.DONE:
                same = self.dones.setdefault((frame.attempt, frame.scope, frame.payload), {})
                same[frame.sender] = frame

    def find(
        self, kind: Kind, attempt: int, t: int, sender: int, scope: bytes = NOTHING
    ) -> SignedFrame | None:
        found = self.board.get((Slot(kind, attempt, t, sender), scope))
        return None if found is None else found[0]

    def accept(self, data: bytes, via: int) -> SignedFrame | None:
        """The received frame if it is valid and new, else None. A new frame is passed on where necessary."""
        try:
            frame = decode(data, largest=self.setup.largest)
            if frame.job != self.setup.job:
                raise FrameRefused("job", "it has a different job")
            if frame.sender >= len(self.setup.names) or frame.kind not in range(1, Kind.KEY):
                raise FrameRefused(
                    "sender", "its message names a site that the job does not have, or has an unknown kind"
                )
            if self._known(frame, data):
                self._renew(frame, data, via)
                return None
            self.setup.believe(frame)
            self._check_slot(frame.slot)
            if frame.kind == Kind.HELLO:
                self._check_hello(read_hello(frame.payload), frame.attempt)
            elif frame.kind == Kind.PROPOSE:
                read_proposal(frame.payload)
        except FrameRefused as error:
            self.refused[via, error.kind] = self.refused.get((via, error.kind), 0) + 1
            self.note(str(error), refused=error.kind, via=via)
            if error.kind == "certificate":
                self.set_aside(frame, data)
            return None
        if frame.sender != self.setup.own:
            if self._contradicts(frame, data):
                return None
            self.keep(frame, data)
            self._pass_on(frame, data, via)
        return frame

    def _pass_on(self, frame: SignedFrame, data: bytes, via: int) -> None:
        if (to := self.onward(frame, via)) and frame.kind != Kind.TOTAL:
            self.effects.append(SendFrame(data, to))

    def _check_slot(self, slot: Slot) -> None:
        """Refuse a round or an attempt that cannot exist, and any frame of a site that floods this site.

        Honest sites count attempts one by one, but a site that was away may meet a much higher number.
        """
        last = max(int(self.method.rounds), len(self.setup.names)) if slot.kind in WITH_ROUND else 0
        if slot.attempt > min(max(self.number, self.seen) + MOST_SKIPPED, LAST_ATTEMPT) or slot.t > last:
            raise FrameRefused(
                "slot", "the message has a round number or an attempt number that is too large"
            )
        if len(self.board) + len(self.hellos) - self.junk > MOST_HELD:
            senders = Counter(slot.sender for slot in (*self.hellos, *(known for known, _ in self.board)))
            others = senders.keys() - self.flooding - {self.setup.own}
            most = max(others, key=lambda i: senders[i], default=slot.sender)
            self.flooding.add(most)
            self.junk += senders[most]
        if slot.sender in self.flooding:
            name = self.setup.names[slot.sender]
            raise FrameRefused("flood", f"{name} has sent more messages (frames) than a run needs")

    def onward(self, frame: SignedFrame, via: int) -> tuple[int, ...]:
        """The neighbours to pass a frame on to: all without a link to its sender, except `via`."""
        heard = {frame.sender, via, *self.setup.links[frame.sender]}
        return tuple(j for j in self.setup.neighbours if j not in heard)

    def set_aside(self, frame: SignedFrame, data: bytes) -> None:
        """A hook for a frame whose certificate has expired or was revoked; it does nothing in this class."""

    def _check_hello(self, hello: Hello, number: int) -> None:
        """Refuse a hello with impossible rounds or charges, before anything is computed from it."""
        if hello.completed[1] > self.method.rounds or not all(map(self.sane_past, hello.past)):
            raise FrameRefused(
                "hello", "its 'hello' message states rounds or sites that the job does not have"
            )
        if any(entry.number >= number for entry in hello.past):
            raise FrameRefused("hello", "its 'hello' message states a charge in a later attempt")

    def sane_past(self, past: Past) -> bool:
        """Whether the sites and the rounds of an attempt exist in the job."""
        members = past.members
        return bool(members) and members[-1] < len(self.setup.names) and past.charged <= self.method.rounds

    def _known(self, frame: SignedFrame, data: bytes) -> bool:
        if frame.kind == Kind.HELLO:
            variants = self.hellos.get(frame.slot, {})
            full = len(variants) >= MOST_VARIANTS and frame.sender != self.setup.own
            return frame.digest in variants or full
        found = self.board.get((frame.slot, frame.scope))
        return found is not None and (found[1] == data or found[0].digest == frame.digest)

    def _renew(self, frame: SignedFrame, data: bytes, via: int) -> None:
        """Keep a known frame under another certificate of its sender, and pass it on.

        This is done if the certificate of the kept copy is now refused, or has an earlier key. Other sites
        may already know that the earlier key was revoked, and then they refuse the kept copy.
        """
        variant = self.hellos.get(frame.slot, {}).get(frame.digest)
        held = variant if frame.kind == Kind.HELLO else self.board.get((frame.slot, frame.scope))
        if held is None or held[0].certificate == frame.certificate or frame.sender == self.setup.own:
            return
        if self.believed(frame) and (
            not self.believed(held[0]) or new_key(frame.certificate, held[0].certificate)
        ):
            self.keep(frame, data)
            self._pass_on(frame, data, via)

    def believed(self, frame: SignedFrame) -> bool:
        """Whether the certificate and the signature of a frame are valid now."""
        try:
            self.setup.believe(frame)
        except FrameRefused:
            return False
        return True

    def _contradicts(self, frame: SignedFrame, data: bytes) -> bool:
        """Whether the sender has signed another frame that contradicts this one."""
        rounds = (frame.t, frame.t - 1, frame.t + 1) if frame.payload.startswith(PLAIN) else (frame.t,)
        slots = (Slot(frame.kind, frame.attempt, t, frame.sender) for t in rounds if t >= 0)
        near = (self.board.get((slot, frame.scope)) for slot in slots)
        found = next((held for held in near if held is not None and contradict(held[0], frame)), None)
        if found is None:
            return False
        name = self.setup.names[frame.sender]
        self.effects += [SendFrame(found[1]), SendFrame(data)]
        self.stop(
            Reason.CONTRADICTION,
            f"{name} signed two messages (frames) for round {max(found[0].t, frame.t)} that contradict each "
            "other.",
            found[1],
            data,
            about=frame.sender,
        )
        return True

    def rarely(self, since: float) -> bool:
        """Whether a long question may be asked now.

        The time that has passed since `since` must be at least twice what it was at the last such question.
        """
        if self.asked >= since and self.now - since < 2 * (self.asked - since):
            return False
        self.asked = self.now
        return True

    def ask(self, wanted: list[Slot]) -> None:
        """Ask every neighbour for the frames of these slots; the question also states this site's attempt."""
        here = Slot(0, self.number, 0, self.setup.own)
        question = pack_question([here, *wanted])
        self.effects += [Ask(j, question) for j in self.setup.neighbours]


def change(held: dict[str, bytes], entries: Mapping[str, bytes | None]) -> None:
    """Set these entries, and delete those that are None."""
    for key, value in entries.items():
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value


def pack_total(facts: Past, own: bytes, heard: bytes) -> bytes:
    """A completed round as bytes: its attempt, what this site sent, and the total."""
    return struct.pack("<I", len(own)) + own + pack_past(facts) + heard


def read_total(data: bytes) -> tuple[Past, bytes, bytes]:
    """The inverse of `pack_total`; `FrameRefused` or `struct.error` for other bytes."""
    (size,) = struct.unpack_from("<I", data)
    own = data[4 : 4 + size]
    facts, place = read_past(data, 4 + size)
    return facts, own, data[place:]


def chain(before: bytes, facts: Past, t: int, heard: bytes) -> bytes:
    """The digest of the public state after round t."""
    return hashlib.sha256(before + pack_past(facts) + t.to_bytes(4, "little") + heard).digest()


def first_digest(job: bytes) -> bytes:
    """The digest of the public state before round 1."""
    return hashlib.sha256(b"taciturn state 3" + job).digest()
