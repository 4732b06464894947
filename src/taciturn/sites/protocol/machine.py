"""The state machine of one site: `handle` takes an event and returns effects, in order.

A frame is a signed message between sites. A hello is the frame with which a site joins an attempt: a sequence
of rounds with fixed members. Volatile memory holds the keys of the current attempt.

If volatile memory matches the disk, a restarted site continues where it was: it sends the stored bytes again.
After a reboot, or if the state was restored or copied, the two do not match, and the site asks for a new
attempt.

A site is in one of five phases: "new" (it has not started), "look" (its keys are lost, and it asks for the
frames of others), "meet" (it agrees with others on an attempt), "run" (it takes part in rounds), "over" (it
has the result).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from .core import MOST_VARIANTS, SiteSetup, read_total
from .ending import Ending
from .events import (
    Effect,
    Event,
    FinishAsked,
    Heard,
    Leave,
    QuestionAsked,
    Reason,
    SendFrame,
    Started,
    Stored,
    StoreFailed,
    Tick,
)
from .frames import NOTHING, Kind, SignedFrame, Slot, read_question, signed_with, unpack_frames
from .membership import read_hello, read_past
from .pads import RoundKeys
from .rounds import GAVE_UP


class SiteProtocol(Ending):
    """The protocol of one site."""

    def __init__(self, setup: SiteSetup, saved: Mapping[str, bytes], volatile: Mapping[str, bytes]) -> None:
        super().__init__(setup, saved, volatile)
        self.looked = 0
        self._recall()

    def handle(self, event: Event, now: float, entropy: bytes) -> list[Effect]:
        """React to one event."""
        self.now, self._entropy, self._drawn = now, entropy, 0
        self.effects = []
        if self.stopped and not isinstance(event, QuestionAsked):
            return []
        match event:
            case Heard(data, via):
                if not self._hear(data, via):
                    return self.effects
            case QuestionAsked(question, by):
                self._answer(question, by)
                return self.effects
            case Started():
                self._start()
            case Stored(number):
                self.then.pop(number, lambda: None)()
            case StoreFailed(number, why, budget):
                self.then.pop(number, None)
                self._give_up(Reason.BUDGET if budget else Reason.DISK, why)
            case Tick():
                self._tick()
            case FinishAsked(without):
                self._finish_with(without)
        self._advance()
        return self.effects

    def _finish_with(self, without: frozenset[int]) -> None:
        """Ask to end the run after the last complete round; from now on, this site takes part in no round."""
        if self.phase == "over" or (self.phase == "meet" and self.finishing == without):
            return
        self.finishing = without
        self.meet()

    def _recall(self) -> None:
        """Load the state that was on disk."""
        saved = self.saved
        if "finish" in saved:
            self.finishing = frozenset(number for (number,) in struct.iter_unpack("<H", saved["finish"]))
        place, past = 0, saved.get("past", b"")
        while place < len(past):
            entry, place = read_past(past, place)
            self.past[entry.number] = entry
        if "number" in saved:
            (self.number,) = struct.unpack("<I", saved["number"])
        self.seen = self.number
        agreed = None
        if "live" in saved:
            agreed, signs = self.unpack_attempt(saved["live"])
            for sign in signs:
                self.keep(self.read(sign), sign)
        if self.common:
            self._replay()
        if agreed is None:
            return
        node, numbers = self.numbers(agreed)
        self.enter(agreed, agreed.id(self.setup.job, numbers), node)
        if not self.common:
            self._replay()
        over = not self.common and self.completed[1] >= self.method.rounds
        for data in unpack_frames(saved.get("frames", b"")):
            frame = self.read(data)
            self.keep(frame, self.reseal(data) if frame.sender == self.setup.own else data)
            if over and self._is_now(frame, self.method.rounds):
                self.last[frame.sender] = self._said(frame.t, frame.payload) or b""
        self.phase = "new"

    def _replay(self) -> None:
        """Recompute the state from the stored totals; every bit is the same as before."""
        t = 1 if self.common else self.completed[1] + 1
        while f"total/{t}" in self.saved:
            facts, own, heard = read_total(self.saved[f"total/{t}"])
            if not self.common and (self.attempt is None or facts.number != self.attempt.number):
                break
            node = self.method.attempt(facts.members, facts.base, facts.left)
            self.take(facts, t, own, heard, node)
            t += 1
        self.pending = {}

    def _start(self) -> None:
        self.since = self.waiting = self.now
        self.charge_marked()
        self.lost = self.lost or (self.setup.paid and not self.past)  # the state was reset to its start
        if "left" in self.saved:
            self._come_back()
        elif self.number == 0:
            self.meet()
        elif self._continues():
            self._go_on()
        else:
            self.note("the keys of this attempt are gone: this site asks for a new attempt", warning=True)
            self.phase, self.lost = "look", True
            self.ask([])
        done = self.stored("done")
        if done is not None and "left" not in self.saved and done.scope == self.scope:
            self.repeat("done")  # the other sites may still need it

    def _continues(self) -> bool:
        """Whether volatile memory matches the disk: then only the process was restarted, not the machine."""
        if not self._live():
            secret = self.volatile.get("secret", b"")
            return secret[:4] == struct.pack("<I", self.number) and "hello" in self.saved
        if self.node is None:
            return True
        try:
            self.keys = RoundKeys.unpack(self.volatile["keys"])
        except (KeyError, struct.error):
            return False
        t = self.completed[1] + 1
        sent = self._stored_message(t) is not None
        fits = self.keys.t == t or (sent and self.keys.t == t + 1) or t > self.method.rounds
        return fits and self.keys.attempt == self.number

    def _live(self) -> bool:
        """Whether the newest attempt of this site has begun."""
        return self.attempt is not None and self.attempt.number == self.number

    def _go_on(self) -> None:
        """Continue after a restart with intact volatile memory: send the stored bytes again."""
        if self._live():
            self.phase = "run"
            last = self.find(Kind.MESSAGE, self.number, self.completed[1], self.setup.own, self.scope)
            if last is not None:  # under the current key of this site: others may refuse an earlier key
                self.publish(self.board[last.slot, last.scope][1])
            for key in ("commit", "message"):
                frame = self.stored(key)
                if frame is not None and self._is_now(frame, self.completed[1] + 1):
                    self.repeat(key)
            self._forget_key()
            return
        self.phase, self.entered = "meet", self.now
        self.hello = self.repeat("hello")
        if "signed" in self.saved:
            agreed, _ = self.unpack_attempt(self.saved["signed"])
            if agreed.number == self.number:
                self.signed = agreed, self.repeat("sign").scope

    def _is_now(self, frame: SignedFrame, t: int) -> bool:
        return frame.t == t and frame.scope == self.scope

    def _hear(self, data: bytes, via: int) -> bool:
        """Process a frame, and return whether it was new."""
        frame = self.accept(data, via)
        if frame is None:
            return False
        if frame.sender == self.setup.own:
            self._own_frame(frame, data)
        elif frame.kind == Kind.HELLO:
            if self.phase == "over":
                self._help(frame.sender, via)
            self.greet(frame)
        elif frame.kind == Kind.LEAVE and frame.payload == GAVE_UP:
            self.gone[frame.sender] = max(frame.attempt, self.gone.get(frame.sender, 0))
        else:
            self.seen = max(self.seen, frame.attempt if frame.kind in (Kind.SIGN, Kind.COMMIT) else 0)
        return True

    def _own_frame(self, frame: SignedFrame, data: bytes) -> None:
        """Handle a frame with this site's signature that another process made."""
        earlier = frame.kind in (Kind.MESSAGE, Kind.DONE) and self.phase == "meet"
        few = len(self.hellos.get(frame.slot, ())) < MOST_VARIANTS
        if earlier or (frame.kind == Kind.HELLO and few):
            self.keep(frame, data)  # it may be from before a rollback, and others may have used it
        self.seen = max(self.seen, frame.attempt)
        mine = self.attempt is not None and frame.scope == self.scope and self.phase == "run"
        if mine and frame.kind in (Kind.COMMIT, Kind.MESSAGE) and frame.t > self.completed[1]:
            self.stop(Reason.COPY, "another process signs with the name and key of this site.", data)
        elif not self.lost and self.phase != "over" and self._is_forgotten(frame):
            self._learn_of_loss()

    def _is_forgotten(self, frame: SignedFrame) -> bool:
        """Whether this site signed a frame that its disk does not know: its state was restored or copied.

        A site stores its hello before it sends it, and its signature before it takes part in an attempt. Only
        frames under the site's present key count, because a thief may have an earlier key.
        """
        if frame.kind == Kind.HELLO:
            kept = self._past_hellos(frame.attempt).get(frame.slot)
            known = frame.digest in (
                self.saved.get(f"hello/{frame.attempt}"),
                kept and self.read(kept).digest,
            )
        else:
            steps = (Kind.SIGN, Kind.COMMIT, Kind.MESSAGE)
            known = frame.kind not in steps or f"sign/{frame.attempt}" in self.saved
        return not known and signed_with(frame, self.read(self.setup.seal(frame.content)).certificate)

    def _learn_of_loss(self) -> None:
        """This site may have forgotten rounds that it released: accept the charges that others state."""
        self.lost = True
        agreed = self.attempt if self.signed is None else self.signed[0]
        hellos = () if agreed is None else agreed.hellos.values()
        releases = self.raised([read_hello(frame.payload).past for frame in hellos], ())
        self.store({"lost": b"1", "past": self._pack_pasts()}, lambda: None, releases)

    def _answer(self, question: bytes, by: int) -> None:
        """Send a neighbour the frames that it asks for, and a hello if the neighbour's attempt is older."""
        slots = read_question(question)
        if not slots:
            return
        found: list[bytes] = []
        past: dict[int, dict[Slot, bytes]] = {}
        if slots[0].attempt < self.number and self.hello is not None:
            found.append(self.hellos[self.hello.slot][self.hello.digest][1])
        if self.phase == "over" and "left" in self.saved:
            found += [self.reseal(self.saved[key]) for key in ("done", "left") if key in self.saved]
        elif self.phase == "meet" and not self.common and "done" in self.saved:
            # this site joins no other attempt, so a site that was away needs the statement
            found.append(self.reseal(self.saved["done"]))
        scopes, board = {NOTHING, self.scope, *([self.signed[1]] if self.signed else [])}, self.board
        for slot in dict.fromkeys(slots[1:]):
            if slot.kind == Kind.HELLO:
                found += [data for _, data in self.hellos.get(slot, {}).values()]
                if slot.attempt not in past:
                    past[slot.attempt] = self._past_hellos(slot.attempt)
                found += [past[slot.attempt][slot]] if slot in past[slot.attempt] else []
            elif slot.kind == Kind.TOTAL and slot.sender == self.setup.own:
                found += self._total(slot)
            else:
                for scope in scopes:
                    if (slot, scope) in board:
                        found.append(board[slot, scope][1])
        self.effects += [SendFrame(data, (by,)) for data in dict.fromkeys(found)]

    def _past_hellos(self, attempt: int) -> dict[Slot, bytes]:
        """The members' hellos of an attempt, from the disk, for a member that has since lost its state."""
        frames = unpack_frames(self.saved.get(f"attempt/{attempt}", bytes(6))[6:])
        return {self.read(data).slot: data for data in frames}

    def _tick(self) -> None:
        if self.phase == "look":
            self.looked += 1
            self.ask([])
            if self.looked >= 3:
                self.meet()
        elif self.phase == "meet":
            self.ask(self.wanted_in_meeting() + self.forgotten() + self._missing_end())
            self.look_at_meeting()
        elif self.phase == "run":
            self._tick_round()
        elif self.phase == "over" and self._tick_over():
            self.stopped = True
            self.effects.append(Leave())

    def _tick_round(self) -> None:
        """Ask for missing frames. If sites stay silent, begin a new attempt; stop if all sites are needed."""
        missing = self._missing()
        if missing:
            self.ask(missing + (self._outdated() if self.rarely(self.waiting) else []))
        gone = any(self.gone.get(slot.sender, -1) >= self.number for slot in missing)
        if missing and (gone or self.now > self.waiting + self.setup.patience):
            names = sorted({self.setup.names[s.sender] for s in missing})
            if self.setup.all_needed:
                self.stop(Reason.LEFT_ALONE, f"no message from {', '.join(names[:5])}; all sites are needed.")
                return
            self.note(f"no message from {', '.join(names[:5])}: the sites start a new attempt", warning=True)
            self.meet()

    def waits_for(self) -> frozenset[int]:
        """The other sites whose frames this site waits for."""
        if self.phase == "run":
            missing = self._missing()
            first = [slot for slot in missing if slot.kind == Kind.COMMIT]
            found = {slot.sender for slot in first or missing}
        elif self.phase == "meet":
            found = self.absent()
        elif self.phase == "over" and self.attempt is not None:
            number = self.attempt.number
            found = {i for i in self.attempt.members if self.find(Kind.LEAVE, number, 0, i) is None}
        else:
            found = set()
        return frozenset(found - {self.setup.own})

    def _advance(self) -> None:
        """Take every step that is possible now; take none while records are being stored."""
        before = -1
        while not self.stopped and not self.then and before != len(self.effects):
            before = len(self.effects)
            if self.phase == "meet" and not self._end_elsewhere():
                self.advance_meeting()
            elif self.phase == "run":
                self._advance_round()
