"""A round: each site sends a commit and then a message, and computes the total of all messages.

A frame is a signed message between sites, and an attempt is a sequence of rounds with fixed members. y is
what the site adds to the total, noise included. C = H(salt, y) is a commitment to y, with a random salt.
Two sites are partners if they share a pad: a random vector that hides the y of both, and cancels in the
total. K_ij is the key of the partners i and j.

    commit     draw the noise; keep y and the salt in volatile memory, store the charge and C; send C, the
               digest of the public state and the round's settings, and H(K_ij) for every partner
    message    once every member's commit has arrived, with equal digests and matching key hashes: derive the
               pads from the commitments, store the masked message, send it
    total      once every message has arrived: refuse an impossible sum; else advance the state

A round without masks has no commit: the message is stored together with its charge, and then sent.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import replace

from .core import chain
from .events import ChargedRelease, Reason, SendFrame
from .frames import NOTHING, Kind, SignedFrame, Slot, pack_frames, pack_plain, read_plain, signed_with
from .meeting import MOST_ATTEMPTS, Meeting
from .membership import MOST_PAST
from .pads import commitment, mask, pack_commit, read_commit

_Y = struct.Struct("<II32s")
GAVE_UP = b"\2"


class RoundSteps(Meeting):
    """The rounds of a live attempt."""

    def onward(self, frame: SignedFrame, via: int) -> tuple[int, ...]:
        """The neighbours to pass a frame on to: in a round of masked sums, along one path to each member.

        A member that lacks a frame asks for it. If a site sends different frames of a round to two sites, the
        sums of these two differ. They then show all frames of the round to their neighbours, which reveals
        the contradiction.
        """
        if self.common and self.attempt is not None and frame.scope == self.scope and frame.t:
            if frame.sender not in self.routes:
                self.routes[frame.sender] = self.setup.route(frame.sender, self.attempt.members)
            if (to := self.routes[frame.sender]) is not None:
                return to
        return super().onward(frame, via)

    def _missing(self) -> list[Slot]:
        """The frames that the round in progress waits for."""
        if self.attempt is None:
            return []
        a, t = self.attempt.number, self.completed[1] + 1
        if self.node is None or t > self.method.rounds:
            kinds: tuple[tuple[Kind, int], ...] = ((Kind.DONE, 0),)
        else:
            kinds = ((Kind.COMMIT, t), (Kind.MESSAGE, t))
        needed = [Slot(kind, a, k, i) for kind, k in kinds for i in self._needed(kind, k)]
        return [slot for slot in needed if (slot, self.scope) not in self.board]

    def _outdated(self) -> list[Slot]:
        """Messages of the last complete round whose certificates are no longer valid.

        Other members may refuse these messages. A member that lacks the total of this round needs them under
        the new certificates of their senders.
        """
        if self.attempt is None or not self.completed[1]:
            return []
        a, t = self.attempt.number, self.completed[1]
        slots = [Slot(Kind.MESSAGE, a, t, i) for i in self.attempt.members]
        held = {slot: self.board[slot, self.scope][0] for slot in slots if (slot, self.scope) in self.board}
        return [slot for slot, frame in held.items() if not self.believed(frame)]

    def _needed(self, kind: Kind, t: int) -> tuple[int, ...]:
        """The members whose frame of round t this site needs."""
        members = () if self.attempt is None else self.attempt.members
        if kind == Kind.DONE:
            return members
        if kind == Kind.COMMIT and not self.node.padded(t):
            return ()
        if self.node.hears(t) == "everybody" or t == self.method.rounds:
            return members
        return tuple(self.node.neighbours())

    def _lacks(self, kind: Kind, attempt: int, t: int) -> bool:
        """Whether a frame of round t is missing; the frame that was missing last time is checked first."""
        key = self.lacked
        if key is not None and key[0][:3] == (kind, attempt, t) and key[1] == self.scope:
            if key not in self.board:
                return True
        for i in self._needed(kind, t):
            key = Slot(kind, attempt, t, i), self.scope
            if key not in self.board:
                self.lacked = key
                return True
        return False

    def _advance_round(self) -> None:
        t = self.completed[1] + 1
        if self.node is None or t > self.method.rounds:
            self._close()
        elif self.node.padded(t):
            if self._own(Kind.COMMIT, t) is None:
                self._commit(t)
            elif self._own(Kind.MESSAGE, t) is None:
                self._send_masked(t)
            else:
                self.complete_round()
        elif self._own(Kind.MESSAGE, t) is None:
            self._send_plain(t)
        else:
            self.complete_round()

    def _own(self, kind: Kind, t: int) -> SignedFrame | None:
        """This site's frame of round t, if it has sent one."""
        return self.find(kind, self.live.number, t, self.setup.own, self.scope)

    def _state_digest(self, t: int) -> bytes:
        return hashlib.sha256(self.digest + self.node.facts(t) + self.scope).digest()

    def _charge(self, t: int) -> tuple[ChargedRelease, ...]:
        facts = self.current()
        self.past[facts.number] = replace(facts, charged=t)
        return (self.release(self.node, facts, self.scope, t),)

    def _may_charge(self, t: int) -> bool:
        """Whether this site may be charged for round t. If not, it asks for a new attempt, or stops."""
        if self.keys is None or self.keys.t != t:
            self.meet()
            return False
        most = MOST_ATTEMPTS if self.node.padded(t) else MOST_PAST
        if len(self.past) >= most and self.number not in self.past:
            text = (
                f"this site was charged in {most} attempts, the most that a run allows: agree on a new job."
            )
            self._give_up(Reason.LEFT_ALONE, text)
            return False
        return True

    def _commit(self, t: int) -> None:
        """Step 1: draw y, store the charge and the commitment to y, and send the commitment."""
        if not self._may_charge(t) or self.keys is None:
            return
        salt, y = self._drawn_before(t) or (self.fresh(), self.node.message(self.state))
        self.hold(y=_Y.pack(self.number, t, salt) + y)
        payload = pack_commit(commitment(salt, y), self._state_digest(t), self.keys.hashes(self.scope))
        data = self.seal(Kind.COMMIT, self.number, t, self.scope, payload)
        releases = self._charge(t)
        records = {"commit": data, "past": self._pack_pasts()}
        self.store(records, lambda: self._say(data), releases)

    def _drawn_before(self, t: int) -> tuple[bytes, bytes] | None:
        """The salt and y of round t, if they are in volatile memory, which survives a restart; else None."""
        drawn = self.volatile.get("y", b"")
        if drawn[:8] != struct.pack("<II", self.number, t):
            return None
        return drawn[8:40], drawn[_Y.size :]

    def _say(self, data: bytes) -> None:
        """Send a stored frame, unless the attempt has ended meanwhile."""
        frame = self.read(data)
        if self.phase == "run" and frame.scope == self.scope:
            self.publish(data, frame)
            self.waiting = self.now

    def _commits(self, t: int) -> dict[int, bytes] | None:
        """Every member's commitment, if all are present and consistent."""
        if self._lacks(Kind.COMMIT, self.number, t):
            return None
        found, digests, hashes = {}, {}, {}
        for i in self._needed(Kind.COMMIT, t):
            frame, _ = self.board[Slot(Kind.COMMIT, self.number, t, i), self.scope]
            read = read_commit(frame.payload)
            if read is None:
                self._disagree(f"{self.setup.names[i]} sent a commitment in another format.", i)
                return None
            found[i], digests[i], hashes[i] = read
        own = self.setup.own
        for i in found:
            if digests[i] != digests[own]:
                self._show_round(self.completed[1])
                self._disagree(f"{self.setup.names[i]} has a different state before round {t}.", i)
                return None
            if any(hashes[j].get(i) != shown for j, shown in hashes[i].items() if j in hashes):
                self._disagree(
                    f"in round {t}, {self.setup.names[i]} and another site state different keys.", i
                )
                return None
        return found

    def _disagree(self, text: str, about: int) -> None:
        self.stop(Reason.DISAGREEMENT, f"{text} Nothing of this round was sent.", about=about)

    def _show_round(self, t: int) -> None:
        """Show all frames of a round to the neighbours, to detect equivocation."""
        for slot, scope in list(self.board):
            if scope == self.scope and slot.t == t:
                self.effects.append(SendFrame(self.board[slot, scope][1]))

    def _send_masked(self, t: int) -> None:
        """Step 2: derive the pads from all commitments, and send the masked message."""
        commits = self._commits(t)
        if commits is None:
            return
        drawn = self._drawn_before(t)
        lost = drawn is None or commitment(*drawn) != commits[self.setup.own]
        if drawn is None or lost or self.keys is None or self.keys.t != t:
            self.meet()
            return
        payload = mask(self.setup.own, drawn[1], self.keys, self.scope, commits)
        data = self.seal(Kind.MESSAGE, self.number, t, self.scope, payload)
        self.store({"message": data}, lambda: self._say_message(data))

    def _say_message(self, data: bytes) -> None:
        self._forget_key()
        self._say(data)

    def _forget_key(self) -> None:
        """Once the message of a round is stored, delete the noise and the keys of this round."""
        if self.keys is not None and self._stored_message(self.keys.t) is not None:
            self.keys = self.keys.next()
            self.hold(keys=self.keys.pack(), y=None)

    def _stored_message(self, t: int) -> SignedFrame | None:
        """This site's message on disk, if it is of round t of this attempt."""
        frame = self.stored("message")
        return frame if frame is not None and (frame.scope, frame.t) == (self.scope, t) else None

    def _send_plain(self, t: int) -> None:
        """Send the message of a round without masks, after it is charged and stored."""
        if not self._may_charge(t):
            return
        payload = self.node.message(self.state)
        releases = self._charge(t)
        if payload is None:
            charged = replace(releases[0], charge=releases[0].charge._replace(aborted=True))
            text = f"the solver failed in round {t}. The round is charged; nothing of it was sent."
            self.store({"past": self._pack_pasts()}, lambda: self._give_up(Reason.ABORTED, text), (charged,))
            return
        before = self._stored_message(t - 1)
        payload = pack_plain(NOTHING if before is None else before.digest, payload)
        data = self.seal(Kind.MESSAGE, self.number, t, self.scope, payload)
        records = {"message": data, "past": self._pack_pasts()}
        self.store(records, lambda: self._say_message(data), releases)

    def _said(self, t: int, payload: bytes) -> bytes | None:
        """The numbers in a message of round t; None if the message has another format."""
        if not self.node.padded(t):
            plain = read_plain(payload)
            payload = b"" if plain is None else plain[1]
        return payload if len(payload) == self.node.size(t) else None

    def set_aside(self, frame: SignedFrame, data: bytes) -> None:
        """Keep a message whose certificate is no longer valid, if the same key signed the attempt.

        Other members may have completed the round with this message while its certificate was valid.
        """
        sign = self.find(Kind.SIGN, frame.attempt, 0, frame.sender, self.scope)
        now = frame.kind == Kind.MESSAGE and (frame.scope, frame.t) == (self.scope, self.completed[1] + 1)
        if now and sign is not None and signed_with(frame, sign.certificate):
            self.aside = {slot: held for slot, held in self.aside.items() if slot.t == frame.t}
            self.aside[frame.slot] = frame, data

    def _messages(self, t: int, stated: Collection[bytes]) -> dict[int, tuple[SignedFrame, bytes]] | None:
        """Every message that round t needs, or None if one is missing.

        A message that was set aside counts only if the round then leads to a digest in `stated`.
        """
        whole = not self._lacks(Kind.MESSAGE, self.live.number, t)
        if not whole and not (stated and self.aside):
            return None
        slots = [Slot(Kind.MESSAGE, self.live.number, t, i) for i in self._needed(Kind.MESSAGE, t)]
        found = {slot.sender: self.board.get((slot, self.scope)) or self.aside.get(slot) for slot in slots}
        held = {i: pair for i, pair in found.items() if pair is not None}
        if len(held) < len(found) or (not whole and self._leads_to(t, held) not in stated):
            return None
        for frame, data in held.values():
            self.keep(frame, data)
        return held

    def _leads_to(self, t: int, held: Mapping[int, tuple[SignedFrame, bytes]]) -> bytes:
        """The digest after round t with these messages; empty if the round has no public result."""
        said = {i: self._said(t, frame.payload) or b"" for i, (frame, _) in held.items()}
        if not all(said.values()) or (not self.common and t < self.method.rounds):
            return b""
        return (
            chain(self.digest, self.current(), t, self.node.heard(t, said))
            if self.common
            else digest_of(said)
        )

    def complete_round(self, stated: Collection[bytes] = ()) -> None:
        """Compute the total of the round in progress, once every message that it needs has arrived."""
        if self.attempt is None or self.node is None or self.completed[1] >= self.method.rounds:
            return
        a, t = self.attempt.number, self.completed[1] + 1
        held = self._messages(t, stated)
        if held is None:
            return
        said = {i: self._said(t, frame.payload) for i, (frame, _) in held.items()}
        payloads = {i: payload for i, payload in said.items() if payload is not None}
        odd = [i for i in said if i not in payloads]
        if odd:
            self._disagree(f"{self.setup.names[odd[0]]} sent a message in another format.", odd[0])
            return
        if t == self.method.rounds:
            self.last = payloads
        own = self._own(Kind.MESSAGE, t)
        if own is None and not self.common:
            return  # this site was rolled back; its state depends on its own message, which it lacks
        heard = self.node.heard(t, payloads)
        if self.node.impossible(t, heard, payloads):
            blamed = self.node.blamed(t, payloads)
            self._show_round(t)
            who = "" if blamed is None else f" The values of {self.setup.names[blamed]} make it impossible."
            self.stop(
                Reason.IMPOSSIBLE,
                f"the sum of round {t} is impossible: no rows within the public bounds add up to it.{who} A "
                "site lies or has a fault. Nothing more is spent, and no model of this round is written.",
                about=blamed,
            )
            return
        for i in self.node.at_edge(t, payloads):
            if i not in self.edged:
                self.edged.add(i)
                name = self.setup.names[i]
                self.note(f"since round {t}, {name} has sent values at the edge of the range", warning=True)
        if own is not None and t > self.charged(a):  # it left before this site's state was restored
            self.owed += self._charge(t)
            self.pending["past"] = self._pack_pasts()
        mine = b"" if own is None else self._said(t, own.payload) or b""
        self.take(self.current(), t, mine, heard, self.node)
        for key in [key for key in self.board if key[1] == self.scope and 0 < key[0].t < t - 1]:
            del self.board[key]
        if own is not None:
            held[self.setup.own] = self.board[own.slot, own.scope]  # a neighbour may still need it
        self.pending["frames"] = pack_frames([data for _, data in held.values()])
        self.waiting = self.now
        self.note(f"round {t} is complete", round=t)

    def _close(self) -> None:
        """State the result after the last round; a subclass does this."""
        raise NotImplementedError

    def _give_up(self, reason: Reason, text: str) -> None:
        """Stop, and tell the other sites (unless the disk failed) that this site sends nothing more."""
        if reason is not Reason.DISK:
            self.publish(self.seal(Kind.LEAVE, self.number, 0, payload=GAVE_UP))
        self.stop(reason, text)


def digest_of(vectors: Mapping[int, bytes]) -> bytes:
    """The digest of the members' last vectors. If the sites have no common state, these are the result."""
    return hashlib.sha256(b"".join(vectors[i] for i in sorted(vectors))).digest()
