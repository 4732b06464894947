"""The end of a run, in three steps; no site publishes a result before it is final.

1. After the last round, each site states its result: it sends DONE, with the digest of the result.
2. The result is final once all members of an attempt have sent the same digest. If some members stay silent,
   the same digest from a quorum of sites is enough: every later attempt includes an honest site of this
   quorum, so the later attempt has the same result.
3. A site that has the final result sends LEAVE. LEAVE also lists every attempt in which the site was charged,
   because a site that was restored from an old state needs this list.

A frame is a signed message between sites; DONE and LEAVE are two kinds of frames, and a farewell is the
content of LEAVE. An attempt is a sequence of rounds with fixed members; in an attempt without rounds, the
members only agree on the result. In a meeting, sites agree on the members of the next attempt.

In a run of masked sums (random masks hide the messages), the sites have one common state, which is public,
and the result follows from the totals of the rounds. Otherwise each site continues from its own state, and
the members' last vectors are the result. A site that was away takes over a result that a quorum states. The
totals or vectors that it receives must lead to the digest of this result.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .core import SiteSetup, read_total
from .events import Finished, SendFrame
from .frames import NOTHING, FrameRefused, Kind, SignedFrame, Slot, pack_frames, unpack_frames
from .meeting import SIGNED
from .membership import Past, merge_past, pack_past, read_hello, read_pasts
from .rounds import RoundSteps, digest_of

FINISHED = b"\1"
MOST_ENDS = 3  # a site asks about this many results, beginning with the one that most sites state
_FAREWELL = struct.Struct("<cIIHH")


@dataclass(frozen=True)
class Farewell:
    """The payload of LEAVE from a site that has the result.

    completed : the number of the last attempt, and the last complete round.
    own : the attempts in which the site was charged; empty for a site that ever lost its state or its keys.
    agreed : the earlier attempts that the members of the last attempt agreed on. A site that ever lost its
        state or its keys adds its own attempts to this list.
    """

    completed: tuple[int, int]
    own: tuple[Past, ...]
    agreed: tuple[Past, ...]

    def pack(self) -> bytes:
        head = _FAREWELL.pack(FINISHED, *self.completed, len(self.own), len(self.agreed))
        return head + b"".join(map(pack_past, (*self.own, *self.agreed)))


def read_farewell(payload: bytes) -> Farewell | None:
    """The inverse of `Farewell.pack`; None for other bytes."""
    try:
        kind, a, t, own, agreed = _FAREWELL.unpack_from(payload)
        past, _ = read_pasts(payload, _FAREWELL.size, own + agreed)
    except (struct.error, FrameRefused):
        return None
    return Farewell((a, t), past[:own], past[own:]) if kind == FINISHED else None


class Ending(RoundSteps):
    """The steps from the last round to the final result."""

    def __init__(self, setup: SiteSetup, saved: Mapping[str, bytes], volatile: Mapping[str, bytes]) -> None:
        super().__init__(setup, saved, volatile)
        self.end: tuple[int, bytes] | None = None  # (number, id) of the attempt that led to the result
        self.helped: set[int] = set()  # sites that are still in a meeting although there is a result

    def advance_meeting(self) -> None:
        """Advance the meeting. Without a common state, a site that has stated a result joins no attempt."""
        if self.common or not self._has_stated():
            super().advance_meeting()

    def _has_stated(self) -> bool:
        done = self.stored("done")
        return done is not None and (not self.common or done.scope == self.scope)

    # -- what every site states -------------------------------------------------------------------------

    def _end_digest(self) -> bytes:
        if self.common:
            return self.digest
        return digest_of(self.last_vectors())

    def last_vectors(self) -> dict[int, bytes]:
        """Without a common state: the last vector of every member, which together are the result."""
        if self.last or self.attempt is None:
            return self.last
        return {i: read_hello(frame.payload).vector for i, frame in self.attempt.hellos.items()}

    def _close(self) -> None:
        """After the last round: state this site's result, and wait for the statements of the others."""
        if self.attempt is None:
            return
        a, done = self.attempt.number, self.stored("done")
        if self._own(Kind.DONE, 0) is None:
            if done is not None and done.scope == self.scope:
                self._state(self.reseal(self.saved["done"]))
            else:
                self._store_done(a, self.scope, self._end_digest())
            return
        found = [self.find(Kind.DONE, a, 0, i, self.scope) for i in self.attempt.members]
        frames = [frame for frame in found if frame is not None]
        odd = [frame.sender for frame in frames if frame.payload != self._end_digest()]
        if odd:
            self._show_round(self.completed[1])
            self._disagree(f"{self.setup.names[odd[0]]} has a different result.", odd[0])
        elif len(frames) == len(found):
            self._leave_with(frames)
        elif (
            self.number > a
            and len(same := self.dones[a, self.scope, self._end_digest()]) >= self.setup.quorum
        ):
            self._leave_with(list(same.values()))

    def _leave_with(self, frames: list[SignedFrame]) -> None:
        """Store that the result is final, with the frames that state it; then leave."""
        self.end = frames[0].attempt, frames[0].scope
        agreed, own = () if self.attempt is None else self.attempt.past, tuple(self._stated_past())
        statement = Farewell(
            self.completed, () if self.lost else own, (*agreed, *own) if self.lost else agreed
        )
        data = self.seal(Kind.LEAVE, self.end[0], 0, payload=statement.pack())
        dones = pack_frames([self.board[frame.slot, frame.scope][1] for frame in frames])
        records = {"past": self._pack_pasts(), "left": data, "dones": dones}
        self.store(records, lambda: self._finished(data))

    def _finished(self, data: bytes) -> None:
        self.phase, self.waiting = "over", self.now
        self.helped |= {slot.sender for slot in self.hellos if slot.attempt > self.read(data).attempt}
        self.publish(data)
        self._conclude()

    def _conclude(self) -> None:
        rounds = self.completed[1]
        early = rounds < self.method.rounds
        self.effects.append(Finished(self.state, rounds, self._end_members(), self._end_digest(), early))

    def _end_members(self) -> tuple[int, ...]:
        """The members of the attempt that led to the result. If this site took over the result from others,
        these are the members of the last round of the run."""
        if self.attempt is not None and self.end == (self.attempt.number, self.scope):
            return self.attempt.members
        if not self.common:
            return tuple(sorted(self.last))
        last = self.saved.get(f"total/{self.completed[1]}")
        if last is not None:
            return read_total(last)[0].members
        return tuple(sorted(frame.sender for frame in self._end_frames()))

    def _end_frames(self) -> list[SignedFrame]:
        """The frames that state the result."""
        stated = [list(found.values()) for key, found in self.dones.items() if key[:2] == self.end]
        return max(stated, key=len, default=[])

    def _come_back(self) -> None:
        """Restart after the result was final: load the result, and send this site's last frames again."""
        self.phase = "over"
        for key in ("done", "left"):
            if key in self.saved:
                self.repeat(key)
        for data in unpack_frames(self.saved.get("dones", b"")):
            frame = self.read(data)
            self.keep(frame, data)
            self.end = frame.attempt, frame.scope
        if "end" in self.saved:  # these vectors were taken over from others, and replace this site's own
            self.last = {}
        for data in unpack_frames(self.saved.get("end", b"")):
            frame = self.read(data)
            self.last[frame.t - 1], self.completed = frame.payload, (frame.attempt, self.method.rounds)
        self._conclude()

    def _help(self, site: int, via: int) -> None:
        """Send the members' final statements to a site that is still in a meeting."""
        self.helped.add(site)
        frames = self._end_frames()
        self.effects += [SendFrame(self.board[frame.slot, frame.scope][1], (via,)) for frame in frames]

    def _tick_over(self) -> bool:
        """Whether this site may leave: all others have left, or `patience` is over. If not, ask for LEAVE."""
        number, members = (0 if self.end is None else self.end[0]), self._end_members()
        staying = [i for i in {*members, *self.helped} if not self.find(Kind.LEAVE, number, 0, i)]
        if not staying:
            return True
        self.ask([Slot(Kind.LEAVE, number, 0, i) for i in sorted(staying)])
        return self.now > self.waiting + self.setup.patience

    # -- a result that was reached without this site ----------------------------------------------------

    def _final(self) -> list[tuple[tuple[int, bytes, bytes], list[SignedFrame]]]:
        """Every result that a quorum states: at most one, unless more sites lie than are tolerated."""
        enough = self.setup.quorum
        return [(key, list(found.values())) for key, found in self.dones.items() if len(found) >= enough]

    def _others_done(self) -> bool:
        """Whether all other members have stated a result, or enough have stated the same result to make a
        quorum together with this site."""
        if self.attempt is None:
            return False
        number, own = self.attempt.number, self.setup.own
        found = [self.find(Kind.DONE, number, 0, i, self.scope) for i in self.attempt.members if i != own]
        same = [
            len(set(stated) - {own}) for key, stated in self.dones.items() if key[:2] == (number, self.scope)
        ]
        return all(found) or max(same, default=0) >= self.setup.quorum - 1

    def _another_done(self) -> bool:
        """Without a common state: whether a member has stated a result; it then joins no other attempt."""
        if self.common or self.attempt is None or self._has_stated():
            return False
        return any(key[:2] == (self.attempt.number, self.scope) for key in self.dones)

    def _end_elsewhere(self) -> bool:
        """Return to an attempt that others have completed, or take over its result."""
        if self.signed is None and any(map(self._go_back, self.dones)):
            return True
        if self.signed is None and (self._others_done() or self._another_done()):
            self.complete_round([digest for _, scope, digest in self.dones if scope == self.scope])
            if self.node is None or self.completed[1] >= self.method.rounds:
                self.phase = "run"
                return True
        return self._state_too() or any(self._take_over(key, frames) for key, frames in self._final())

    def _go_back(self, key: tuple[int, bytes, bytes]) -> bool:
        """Return to an attempt without rounds, if this site signed it, left it, and others then ended it.

        The vectors in the members' hellos are the result, so this site need not trust another site.
        """
        a, scope, digest = key
        packed, done = self.saved.get(f"sign/{a}", SIGNED), self.stored("done")
        if packed == SIGNED or scope == self.scope or (done is not None and done.scope != scope):
            return False
        agreed, _ = self.unpack_attempt(packed)
        vectors = {i: read_hello(frame.payload).vector for i, frame in agreed.hellos.items()}
        if agreed.id(self.setup.job, NOTHING) != scope or digest_of(vectors) != digest:
            return False
        self.enter(agreed, scope, None)
        self.pending |= {"live": packed, f"attempt/{a}": packed}  # for a restart
        return True

    def _state_too(self) -> bool:
        """State the result of others, once their totals or vectors lead to it, to help reach a quorum."""
        if not self.common and self._has_stated():
            return False
        for key, found in self.dones.items():
            a, scope, digest = key
            if self.setup.own in found or len(found) <= self.liars or not self._hold_end(key):
                continue
            self._store_done(a, scope, digest)
            return True
        return False

    def _store_done(self, attempt: int, scope: bytes, digest: bytes) -> None:
        data = self.seal(Kind.DONE, attempt, 0, scope, digest)
        self.store({"done": data}, lambda: self._state(data))

    def _state(self, data: bytes) -> None:
        """Send the stored statement. It binds this site, so it is sent even if a meeting has begun by now."""
        self.publish(data)
        self.waiting = self.now

    def _missing_end(self) -> list[Slot]:
        """The frames to ask for during a meeting, since others may have completed the previous attempt."""
        slots: list[Slot] = []
        if self.attempt is not None:
            number, t = self.attempt.number, self.completed[1] + 1
            slots += [Slot(Kind.DONE, number, 0, i) for i in self.attempt.members]
            if t <= self.method.rounds and self.node is not None:
                slots += [Slot(Kind.MESSAGE, number, t, i) for i in self._needed(Kind.MESSAGE, t)]
            slots = [slot for slot in slots if (slot, self.scope) not in self.board]
        widest = sorted(self.dones.items(), key=lambda item: -len(item[1]))
        for (a, _, digest), stated in widest[:MOST_ENDS]:
            said = self._farewells(a, stated)
            slots += [Slot(Kind.DONE, a, 0, i) for i in range(len(self.setup.names)) if i not in stated]
            slots += [Slot(Kind.LEAVE, a, 0, i) for i in stated if i not in said]
            if not self.common:
                slots += self._missing_vectors(a, stated)
            elif self.digest != digest:
                slots += self._missing_totals(said)
        return slots

    def _farewells(self, a: int, stated: Collection[int]) -> dict[int, Farewell]:
        """The farewells of the sites that state a result; neighbours first."""
        near = set(self.setup.neighbours)
        found: dict[int, Farewell] = {}
        for i in sorted(set(stated) - {self.setup.own}, key=lambda i: (i not in near, i)):
            frame = self.find(Kind.LEAVE, a, 0, i)
            said = None if frame is None else read_farewell(frame.payload)
            if said is not None:
                found[i] = said
        return found

    def _missing_totals(self, said: dict[int, Farewell]) -> list[Slot]:
        return [
            Slot(Kind.TOTAL, one.completed[0], t, i)
            for i, one in list(said.items())[:2]
            for t in range(1, min(one.completed[1], self.method.rounds) + 1)
            if self.find(Kind.TOTAL, one.completed[0], t, i) is None
        ]

    def _missing_vectors(self, a: int, stated: Collection[int]) -> list[Slot]:
        # a neighbour that took the result over says so with LEAVE, but may be bound to another statement
        near = [i for i in self.setup.neighbours if i in stated or self.find(Kind.LEAVE, a, 0, i)][:2]
        wanted = [Slot(Kind.TOTAL, a, i + 1, server) for server in near for i in range(len(self.setup.names))]
        return [slot for slot in wanted if (slot, NOTHING) not in self.board]

    def _total(self, slot: Slot) -> list[bytes]:
        """The frame that a returning site asks for: a total or, without a common state, a last vector."""
        if self.common:
            return super()._total(slot)
        stated, vectors = self.attempt is not None and self._has_stated(), self.last_vectors()
        number = self.end[0] if self.end is not None else self.attempt.number if self.attempt else 0
        if not (stated or self.end is not None) or slot.attempt != number or slot.t - 1 not in vectors:
            return []
        return [self.seal(Kind.TOTAL, slot.attempt, slot.t, payload=vectors[slot.t - 1])]

    def _take_over(self, key: tuple[int, bytes, bytes], frames: list[SignedFrame]) -> bool:
        """Take over a final result, and the charges of this site that led to it."""
        said = self._farewells(key[0], [frame.sender for frame in frames])
        if len(said) <= self.liars:
            return False  # more farewells than liars: at least one is honest, and lists all agreed attempts
        stated = [(*one.own, *one.agreed) for one in said.values()]
        try:
            if not all(map(self.sane_past, merge_past(stated))) or not self._hold_end(key):
                return False
        except FrameRefused:
            return False
        self.owed += self.raised(stated, [one.own for one in said.values()])
        self._leave_with(frames)
        return True

    def _hold_end(self, key: tuple[int, bytes, bytes]) -> bool:
        """Whether this site has the result `key`, or has received the totals or vectors that lead to it."""
        a, _, digest = key
        if not self.common:
            return self._hold_vectors(a, digest)
        servers = self._farewells(a, self.dones[key]).items()
        return self.digest == digest or any(self.adopt(one.completed, digest, i) for i, one in servers)

    def _hold_vectors(self, a: int, digest: bytes) -> bool:
        """Load the members' last vectors that have this digest; True if one site has sent all of them."""
        for server in range(len(self.setup.names)):
            slots = [Slot(Kind.TOTAL, a, i + 1, server) for i in range(len(self.setup.names))]
            held = [self.board[slot, NOTHING] for slot in slots if (slot, NOTHING) in self.board]
            vectors = {frame.t - 1: frame.payload for frame, _ in held}
            if held and digest_of(vectors) == digest:
                self.last, self.completed = vectors, (a, int(self.method.rounds))
                self.pending["end"] = pack_frames([data for _, data in held])
                return True
        return False
