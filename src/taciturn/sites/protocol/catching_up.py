"""The state of a run at one site, and how a site that was away catches up.

In a run of masked sums, random masks hide the messages, and only the total of each round is visible. The
sites then have a common state: one public state, which follows from these totals. Otherwise each site
continues from its own state.

A frame is a signed message between sites. A hello is the frame with which a site joins an attempt: a sequence
of rounds with fixed members. An attempt begins after the last round that any member completed. A site that
missed messages of that round asks for them. A site that was away longer takes over the totals of another
member. These totals must lead to a digest that an honest member states; so the number of members that state
it must exceed the number of sites that may lie. If the site took part in one of these rounds, but its state
was restored from a backup and lacks the charge, the site is charged for the round again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from .core import Core, SiteSetup, chain, first_digest, pack_total, read_total
from .events import ChargedRelease, Reason
from .frames import FrameRefused, Kind, SignedFrame, Slot, pack_frames, unpack_frames
from .membership import MOST_PAST, Agreed, Past, agree, pack_past, read_hello
from .pads import RoundKeys


class CatchingUp(Core):
    """What one site knows about a run: attempts, charges, and the state after the last complete round."""

    def __init__(self, setup: SiteSetup, saved: Mapping[str, bytes], volatile: Mapping[str, bytes]) -> None:
        super().__init__(setup, saved, volatile)
        self.phase = "new"
        self.entered = self.since = self.waiting = 0.0
        self.fails = 0
        self.hello: SignedFrame | None = None
        self.signed: tuple[Agreed, bytes] | None = None
        self.attempt: Agreed | None = None
        self.scope = b""
        self.node: Any = None
        self.keys: RoundKeys | None = None
        self.state = self.method.start()
        self.completed, self.digest = (0, 0), first_digest(setup.job)
        self.past: dict[int, Past] = {}
        self.finishing: frozenset[int] | None = None
        self.gone: dict[int, int] = {}
        self.doubles = 0
        self.lost = "lost" in saved
        self.last: dict[int, bytes] = {}
        self.edged: set[int] = set()
        self.aside: dict[Slot, tuple[SignedFrame, bytes]] = {}  # see `RoundSteps.set_aside`
        self.lacked: tuple[Slot, bytes] | None = None
        self.routes: dict[int, tuple[int, ...] | None] = {}
        self._gathered: tuple[tuple[int, int, bytes], dict[int, SignedFrame]] = ((-1, 0, b""), {})

    @property
    def common(self) -> bool:
        """Whether all sites have one public state."""
        return bool(self.method.common)

    @property
    def liars(self) -> int:
        """How many sites may lie: `colluding`; without masks, as many as the quorum tolerates."""
        quorum = self.setup.quorum
        bears = min(2 * quorum - len(self.setup.names) - 1, quorum - 2)
        return int(self.method.colluding) if self.common else max(0, bears)

    def reach(self, agreed: Agreed) -> bool:
        """Whether this site has the state that an attempt starts from, or can compute it from its frames."""
        if not self.common or self.completed == agreed.base:
            return not self.common or self.digest == agreed.digest
        if agreed.base < self.completed:
            return False  # this site has completed more rounds since its hello
        if self.attempt is not None and agreed.base == (self.attempt.number, self.completed[1] + 1):
            self.complete_round({agreed.digest})
            if self.completed == agreed.base:
                return self.digest == agreed.digest
        scope = agreed.id(self.setup.job, self.numbers(agreed)[1])
        read = {i: read_hello(agreed.hellos[i].payload) for i in agreed.members if i != self.setup.own}
        servers = [i for i, hello in read.items() if hello.completed == agreed.base]
        signers = [i for i in read if self.find(Kind.SIGN, self.number, 0, i, scope)]  # they know the state
        vouched = len({*servers, *signers}) > self.method.colluding
        return vouched and any(self.adopt(agreed.base, agreed.digest, i) for i in servers)

    def complete_round(self, stated: Collection[bytes] = ()) -> None:
        """Complete the round in progress from the members' messages, if all have arrived.

        stated : the digests that others state after this round. A message whose certificate became invalid
            after the attempt was signed counts only if the round leads to one of these digests.
        """
        raise NotImplementedError

    def adopt(self, base: tuple[int, int], wanted: bytes, server: int) -> bool:
        """Take over the totals up to `base` that `server` has sent, if they lead to the digest `wanted`."""
        state, digest = self.method.start(), first_digest(self.setup.job)
        pending: dict[str, bytes | None] = {}
        owed: list[tuple[Any, Past, int]] = []
        for t in range(1, base[1] + 1):
            frame = self.find(Kind.TOTAL, base[0], t, server)
            if frame is None:
                return False
            try:
                facts, _, heard = read_total(frame.payload)
                node = self.method.attempt(facts.members, facts.base, facts.left)
                if not self.sane_past(facts) or node is None or len(heard) != node.size(t):
                    return False
            except (FrameRefused, struct.error, ValueError, LookupError):
                return False
            if node.impossible(t, heard, {}):
                self.stop(Reason.IMPOSSIBLE, f"the sum of round {t} is impossible.")
                return False
            state, digest = node.after(state, b"", heard), chain(digest, facts, t, heard)
            pending[f"total/{t}"] = pack_total(facts, b"", heard)
            if self.setup.own in facts.members and t > self.charged(facts.number):
                owed.append((node, facts, t))  # its state was rolled back after it took part in round t
        if digest != wanted:
            return False
        for node, facts, t in owed:
            self.owed += (self.release(node, facts, b"", t),)
            self.past[facts.number] = replace(facts, charged=t)
            pending["past"] = self._pack_pasts()
        beyond = base[1] + 1  # rounds that this site completed, but that the adopted result does not contain
        while f"total/{beyond}" in self.saved or f"total/{beyond}" in self.pending:
            pending[f"total/{beyond}"] = None
            beyond += 1
        self.state, self.digest, self.completed = state, digest, base
        self.pending.update(pending)
        return True

    def _total(self, slot: Slot) -> list[bytes]:
        """The total that a returning site asks for."""
        record = self.saved.get(f"total/{slot.t}") or self.pending.get(f"total/{slot.t}")
        if record is None or not self.common or self.completed[0] != slot.attempt:
            return []
        facts, _, heard = read_total(record)
        return [self.seal(Kind.TOTAL, slot.attempt, slot.t, payload=pack_total(facts, b"", heard))]

    def take(self, facts: Past, t: int, own: bytes, heard: bytes, node: Any) -> None:
        """Advance the public state: round t is complete."""
        self.state = node.after(self.state, own, heard)
        self.digest = chain(self.digest, facts, t, heard)
        self.completed = (facts.number, t)
        self.pending[f"total/{t}"] = pack_total(facts, own, heard)

    def release(self, node: Any, entry: Past, scope: bytes, t: int) -> ChargedRelease:
        """The charge of a round, with the facts for its certificate.

        scope : the id of the attempt. If this site forgot the id, `scope` is empty; a hash then replaces it.
        """
        scope = scope or hashlib.sha256(b"forgotten attempt" + struct.pack("<I", entry.number)).digest()
        return ChargedRelease(node.charge(t), entry.number, scope, entry.members, node.sum_facts(t))

    def forgotten(self) -> list[Slot]:
        """Hellos that this site may have sent before its state was restored from a backup: the latest ones,
        and those of attempts in which others state that this site was a member."""
        if self.lost or not self.rarely(self.entered):
            return []
        own, latest = self.setup.own, range(max(1, self.number - MOST_PAST + 1), self.number + 1)
        hellos = [frame for slot in self.hellos for frame, _ in self.hellos[slot].values()]
        past = [p for frame in hellos if frame.attempt == self.number for p in read_hello(frame.payload).past]
        numbers = [*latest, *sorted(self.unsigned(past) - set(latest))[-MOST_PAST:]]
        return [Slot(Kind.HELLO, number, 0, own) for number in numbers]

    def unsigned(self, past: Iterable[Past]) -> set[int]:
        """The numbers of those attempts that have this site as a member, but no signature of it on disk."""
        return {
            p.number for p in past if self.setup.own in p.members and f"sign/{p.number}" not in self.saved
        }

    def charge_marked(self) -> None:
        """Charge every round that may have been released, but that a restored ledger does not contain."""
        known = max([self.marked, *(entry.charged for entry in self.past.values())])
        everybody = tuple(range(len(self.setup.names)))
        node = None if self.common or self.setup.mark <= known else self.method.attempt(everybody, 0, 1.0)
        if node is None:
            return
        entry = Past(0, (self.setup.own,), known, 1.0, self.setup.mark)
        rounds = range(known + 1, self.setup.mark + 1)
        self.owed += tuple(self.release(node, entry, b"", t) for t in rounds)
        self.pending["marked"] = self.setup.mark.to_bytes(4, "little")
        self.note("this site released rounds that its `state` lacks: they are charged again", warning=True)

    @property
    def marked(self) -> int:
        """The last round that `charge_marked` has charged. Without masks, no attempt repeats a round."""
        return int.from_bytes(self.pending.get("marked") or self.saved.get("marked", b""), "little")

    def charged(self, attempt: int) -> int:
        """The last round for which this site was charged in an attempt; 0 if there is no such round."""
        return self.past[attempt].charged if attempt in self.past else 0

    def numbers(self, agreed: Agreed) -> tuple[Any, bytes]:
        """This site's computation in an attempt, and a hash of the settings of the attempt's rounds.

        The computation is None if the attempt has no rounds.
        """
        if agreed.finish or agreed.base[1] >= self.method.rounds:
            return None, bytes(32)
        node = self.method.attempt(agreed.members, agreed.base[1], agreed.left)
        if node is None:
            return None, bytes(32)
        rounds = range(agreed.base[1] + 1, self.method.rounds + 1)
        return node, hashlib.sha256(b"".join(node.facts(t) for t in rounds)).digest()

    def _pack_attempt(self, agreed: Agreed, signs: Any) -> bytes:
        """An attempt as bytes: its members' hellos, which define it, and its members' frames of kind SIGN."""
        slot = [self.hellos[f.slot][f.digest][1] for f in agreed.hellos.values()]
        return struct.pack("<IH", agreed.number, len(slot)) + pack_frames([*slot, *signs])

    def unpack_attempt(self, data: bytes) -> tuple[Agreed, list[bytes]]:
        """The inverse of `_pack_attempt`: the attempt, computed again, and the frames of kind SIGN."""
        number, count = struct.unpack_from("<IH", data)
        frames, hellos = unpack_frames(data[6:]), {}
        for frame_data in frames[:count]:
            frame = self.read(frame_data)
            self.keep(frame, frame_data)
            hellos[frame.sender] = frame
        return agree(number, hellos, self.method.spent, common=self.common), frames[count:]

    def _pack_pasts(self) -> bytes:
        return b"".join(pack_past(entry) for _, entry in sorted(self.past.items()))

    @property
    def live(self) -> Agreed:
        """The attempt that this site takes part in."""
        if self.attempt is None:
            raise LookupError("no attempt is live")
        return self.attempt

    def current(self) -> Past:
        """The live attempt as an entry of a hello, with none of its rounds charged."""
        agreed = self.live
        return Past(agreed.number, agreed.members, agreed.base[1], agreed.left, charged=agreed.base[1])

    def _variant(self, sender: int, digest: bytes) -> SignedFrame | None:
        found = self.hellos.get(Slot(Kind.HELLO, self.number, 0, sender), {}).get(digest)
        return None if found is None else found[0]
