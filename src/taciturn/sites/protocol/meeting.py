"""The meeting: the sites agree on the members of an attempt, by hellos, a proposal and signatures.

A frame is a signed message between sites. A hello is the frame in which a site states facts about itself
before an attempt. A proposal names the members' hellos. An attempt is a sequence of rounds with fixed
members. It is live once every member has signed its id. A site signs one id for each attempt number, and the
numbers only increase. The id is a hash of the members' hellos, the first round and the remaining budget, so a
site knows all of these before it signs. Before it signs, it also deletes the keys of earlier attempts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .catching_up import CatchingUp
from .events import ChargedRelease, Reason
from .frames import NOTHING, FrameRefused, Kind, SignedFrame, Slot
from .membership import (
    Agreed,
    Hello,
    Past,
    agree,
    merge_past,
    pack_proposal,
    read_hello,
    read_proposal,
    set_bits,
)
from .pads import RoundKeys, agree_keys, public_key, valid_key

MOST_ATTEMPTS = 24  # a site stops after it was charged (recorded privacy cost) in this many attempts
MOST_ADMITTED = 8  # after this many attempts, the members do not interrupt a run to admit another site
MOST_DOUBLES = 3  # a site stops after this many proposals that name a hello other than its latest one
LONGEST_BACKOFF = 5
SIGNED = b"1"


class Meeting(CatchingUp):
    """The steps that lead to a live attempt."""

    def meet(self, number: int = 0) -> None:
        """Send a hello for attempt `number`; by default, for the first number that no site has used.

        After this, the site sends no commit (the hash of its message) in an earlier attempt.
        """
        number = number or max(self.number, self.seen) + 1
        if self.phase not in ("meet", "look"):
            self.since = self.now
            self.fails = 0
        self.phase, self.number, self.entered, self.signed = "meet", number, self.now, None
        secret = self.fresh()
        hello = Hello(
            nonce=self.fresh(),
            key=public_key(secret),
            finish=self.finishing is not None,
            without=set_bits(self.finishing or ()),
            completed=(self.completed[0], max(self.completed[1], self.setup.mark)),
            digest=self.digest,
            past=tuple(self._stated_past()),
            vector=self.method.vector(self.state),
            lost=self.lost,
        )
        data = self.seal(Kind.HELLO, number, payload=hello.pack())
        self.hold(secret=struct.pack("<I", number) + secret)
        records = {"number": struct.pack("<I", number), "hello": data, "commit": None, "message": None}
        records |= {"lost": b"1" if self.lost else None, f"hello/{number}": self.read(data).digest}
        if self.finishing is not None:
            records["finish"] = b"".join(struct.pack("<H", i) for i in sorted(self.finishing))
        self.store(records, lambda: self._say_hello(data))

    def _say_hello(self, data: bytes) -> None:
        frame = self.read(data)
        if frame.attempt == self.number and self.phase == "meet":
            self.hello = self.publish(data)
            self.ask(self.wanted_in_meeting() + self.forgotten())

    def _stated_past(self) -> list[Past]:
        """The attempts in which this site was charged.

        Each entry states a round: the last round in which this site was charged, or the last round of which
        this site has a commit or a message, whichever is later.
        """
        seen: dict[int, int] = {}
        for slot, _ in self.board:
            if slot.kind in (Kind.COMMIT, Kind.MESSAGE):
                seen[slot.attempt] = max(slot.t, seen.get(slot.attempt, 0))
        return [
            replace(entry, charged=max(entry.charged, min(seen.get(number, 0), int(self.method.rounds))))
            for number, entry in sorted(self.past.items())
        ]

    def greet(self, frame: SignedFrame) -> None:
        """Handle a hello: its sender is a member that cannot continue, or wants to become a member."""
        self.seen = max(self.seen, frame.attempt)
        if frame.attempt <= self.number or self.phase in ("over", "new", "look"):
            return
        member = self.attempt is not None and frame.sender in self.attempt.members
        if self.phase == "run" and not member and len(self.past) >= MOST_ADMITTED:
            return
        self.meet(frame.attempt)

    def advance_meeting(self) -> None:
        """Propose, sign or begin, as far as the received frames allow."""
        if self.hello is None or self.hello.attempt != self.number:
            return
        if self.signed is None:
            for sender in range(len(self.setup.names)):
                frame = self.find(Kind.PROPOSE, self.number, 0, sender)
                if frame is not None and self._consider(frame):
                    return
            self._propose()
        elif not self._unsigned():
            self._begin(*self.signed)

    def _present(self) -> dict[int, SignedFrame]:
        """For each site, a hello for this attempt number that fits this site's own hello (see `_fits`)."""
        if self.hello is None:
            return {}
        known = (self.number, self.greeted, self.hello.digest)
        if self._gathered[0] == known:
            return self._gathered[1]
        own, mine = self.setup.own, read_hello(self.hello.payload)
        found = {own: self.hello}
        for i in range(len(self.setup.names)):
            for frame, _ in self.hellos.get(Slot(Kind.HELLO, self.number, 0, i), {}).values():
                if i != own and i not in found and self._fits(mine, frame):
                    found[i] = frame
        self._gathered = known, found
        return found

    def absent(self) -> set[int]:
        """The sites for which this site waits.

        Before this site signs, these are the sites without a fitting hello, except those that the operators
        excluded. Afterwards they are the members that have not signed.
        """
        if self.signed is not None:
            return set(self._unsigned())
        return set(range(len(self.setup.names))) - set(self._present()) - (self.finishing or frozenset())

    def _unsigned(self) -> list[int]:
        """The members that have not signed the attempt yet, although this site has."""
        agreed, scope = self.signed or (None, NOTHING)
        members = () if agreed is None else agreed.members
        return [i for i in members if self.find(Kind.SIGN, self.number, 0, i, scope) is None]

    def finishers(self) -> list[int]:
        """The sites whose newest hello asks for an early end; empty if this site asks for it too."""
        if self.finishing is not None:
            return []
        newest = {slot.sender: slot for slot in sorted(self.hellos)}
        said = {i: self.hellos[slot].values() for i, slot in newest.items() if i != self.setup.own}
        return [i for i, found in said.items() if any(read_hello(frame.payload).finish for frame, _ in found)]

    def _fits(self, mine: Hello, frame: SignedFrame) -> bool:
        """Whether a hello has a valid key and agrees with `mine` about the state and an early end."""
        try:
            theirs = read_hello(frame.payload)
        except FrameRefused:
            return False
        if not valid_key(theirs.key):
            return False
        same = theirs.completed != mine.completed or theirs.digest == mine.digest or not self.common
        return same and (theirs.finish, theirs.without) == (mine.finish, mine.without)

    def _propose(self) -> None:
        """Propose the present sites as members, once all sites are present or a waiting time is over."""
        if self.find(Kind.PROPOSE, self.number, 0, self.setup.own) is not None:
            return
        present, sites = self._present(), len(self.setup.names)
        if self.finishing is not None:
            if set(present) != set(range(sites)) - self.finishing:
                return
        elif len(present) < self.setup.quorum or self.now < self._may_propose(present):
            return
        payload = pack_proposal({i: frame.digest for i, frame in present.items()})
        self.publish(self.seal(Kind.PROPOSE, self.number, payload=payload))
        self.advance_meeting()

    def _may_propose(self, present: Mapping[int, SignedFrame]) -> float:
        """The time at which this site may propose: sites take turns, in the order of their numbers."""
        rank = sorted(present).index(self.setup.own)
        if len(present) == len(self.setup.names):
            return self.entered + rank * self.setup.gather / 2
        opening = self.attempt is None and not self.past and self.seen <= 1  # no attempt has begun yet
        wait = self.setup.patience if opening and self.fails == 0 else self.setup.gather
        return self.entered + wait + rank * self.setup.gather / 2

    def _consider(self, frame: SignedFrame) -> bool:
        """Sign the attempt of a proposal; False if this site does not sign it, or not yet."""
        own = self.setup.own
        try:
            chosen = read_proposal(frame.payload)
            if self.hello is None or own not in chosen or frame.sender not in chosen:
                return False
            if chosen[own] != self.hello.digest:
                self._look_for_copy(chosen[own])
                return False
            found = {i: self._variant(i, digest) for i, digest in chosen.items()}
            hellos = {i: hello for i, hello in found.items() if hello is not None}
            if len(hellos) < len(found):
                return False
            if not all(valid_key(read_hello(hello.payload).key) for hello in hellos.values()):
                return False
            agreed = agree(self.number, hellos, self.method.spent, common=self.common)
        except FrameRefused:
            return False
        if not self._acceptable(agreed) or not self.reach(agreed):
            return False
        self._sign(agreed)
        return True

    def _acceptable(self, agreed: Agreed) -> bool:
        """Whether an attempt has enough members and counts every charge of this site.

        There are enough if they reach the quorum and their graph is connected. For an attempt that ends the
        run early, the members must be all sites that the operators did not exclude.
        """
        wanted = read_hello(agreed.hellos[self.setup.own].payload)
        if wanted.finish:
            everybody = set(range(len(self.setup.names))) - (self.finishing or frozenset())
            if not agreed.finish or set(agreed.members) != everybody:
                return False
        elif len(agreed.members) < self.setup.quorum or not self.method.connected(agreed.members):
            return False
        known = {entry.number: entry.charged for entry in agreed.past}
        return all(known.get(number, -1) >= entry.charged for number, entry in self.past.items())

    def _look_for_copy(self, digest: bytes) -> None:
        """Handle a proposal that names another hello of this site. That hello may be old or from a copy."""
        if self._variant(self.setup.own, digest) is None:
            return
        self.doubles += 1
        self.lost = True  # this site may have forgotten charges, so it accepts those that others state
        if self.doubles < MOST_DOUBLES:  # the hello may be from before this site's state was restored
            self.meet()
        else:
            self.stop(
                Reason.COPY,
                "another process signs with the name and key of this site: a copy of this site is running. "
                "This process releases nothing more. Stop one of the two permanently.",
                about=self.setup.own,
            )

    def _sign(self, agreed: Agreed) -> None:
        node, numbers = self.numbers(agreed)
        scope = agreed.id(self.setup.job, numbers)
        self.signed = agreed, scope
        self.hold(keys=None, y=None)  # these keys belong to the previous attempt
        self.keys = None
        packed = self._pack_attempt(agreed, ())
        # Without a common state, each hello contains the last vector of its site. If no round is left to run,
        # these vectors are the result.
        result = node is None and not self.common
        records = {"signed": packed, f"sign/{agreed.number}": packed if result else SIGNED}
        hellos = [read_hello(frame.payload) for frame in agreed.hellos.values()]
        releases = self.raised([h.past for h in hellos], [h.past for h in hellos if not h.lost])
        data = self.seal(Kind.SIGN, self.number, scope=scope)
        if not self.lost and (unsigned := self.unsigned(agreed.past)):  # others may have these hellos
            self.ask([Slot(Kind.HELLO, number, 0, self.setup.own) for number in sorted(unsigned)])
        self.store(
            {**records, "past": self._pack_pasts(), "sign": data}, lambda: self._say_signed(data), releases
        )

    def raised(
        self, stated: Sequence[Sequence[Past]], lived: Sequence[Sequence[Past]]
    ) -> tuple[ChargedRelease, ...]:
        """Charges of this site that other sites state, but of which this site has no record.

        This happens, for example, after the site's state was restored from an older copy.

        stated : the charged attempts that each site states.
        lived : the same, from the sites that never lost their state or their keys.

        If this site ever lost its state or keys, it accepts every stated charge. Otherwise it knows its
        charges in the attempts that it signed, and ignores statements about these. For an attempt that it did
        not sign, it accepts a charge only if more than `self.liars` of the sites in `lived` state it.
        """
        releases: list[ChargedRelease] = []
        for entry in merge_past(stated):
            if not self.lost and f"sign/{entry.number}" in self.saved:
                continue
            told = stated if self.lost else lived
            levels = sorted(p.charged for past in told for p in past if p.number == entry.number)[::-1]
            least = 0 if self.lost else self.liars
            own = self.past.get(entry.number)
            known = max(self.marked, entry.base if own is None else own.charged)
            charged = levels[least] if least < len(levels) else 0
            if self.setup.own not in entry.members or known >= charged:
                continue
            node = self.method.attempt(entry.members, entry.base, entry.left)
            for t in range(known + 1, charged + 1) if node is not None else ():
                releases.append(self.release(node, entry, b"", t))
            self.past[entry.number] = replace(entry, charged=charged)
        return tuple(releases)

    def _say_signed(self, data: bytes) -> None:
        if self.signed is not None and self.read(data).attempt == self.number:
            self.publish(data)
            self.advance_meeting()

    def _begin(self, agreed: Agreed, scope: bytes) -> None:
        """Begin the attempt, which all members have signed: derive the keys, and store that it is live."""
        node, _ = self.numbers(agreed)
        if node is not None:
            keys = self._derive(agreed, node, scope)
            if keys is None:
                return
            self.keys = keys
            self.hold(keys=keys.pack(), secret=None)
        signs = [self.board[Slot(Kind.SIGN, agreed.number, 0, i), scope][1] for i in agreed.members]
        live = self._pack_attempt(agreed, signs)
        self.enter(agreed, scope, node)
        self.store({"live": live, f"attempt/{agreed.number}": live}, self._resume)

    def _resume(self) -> None:
        self.waiting = self.now

    def _derive(self, agreed: Agreed, node: Any, scope: bytes) -> RoundKeys | None:
        secret = self.volatile.get("secret", b"")
        if secret[:4] != struct.pack("<I", agreed.number):
            self.meet(self.number + 1)  # the key of this hello was lost in a reboot
            return None
        shown = {j: read_hello(agreed.hellos[j].payload).key for j in node.partners()}
        first = agreed.base[1] + 1
        return agree_keys(self.setup.own, secret[4:], shown, scope=scope, attempt=agreed.number, t=first)

    def enter(self, agreed: Agreed, scope: bytes, node: Any) -> None:
        """Enter a live attempt."""
        self.attempt, self.scope, self.node, self.last, self.routes = agreed, scope, node, {}, {}
        self.phase, self.since, self.waiting, self.fails = "run", self.now, self.now, 0
        vectors = {i: read_hello(frame.payload).vector for i, frame in agreed.hellos.items()}
        if not self.common:
            self.completed = agreed.base
            self.state = self.method.enter(agreed.members, vectors, agreed.base[1])

    def wanted_in_meeting(self) -> list[Slot]:
        """The frames that this site waits for during a meeting."""
        sites = [i for i in range(len(self.setup.names)) if i != self.setup.own]
        hellos, proposals = (
            [Slot(kind, self.number, 0, i) for i in sites] for kind in (Kind.HELLO, Kind.PROPOSE)
        )
        wanted = [slot for slot in hellos if slot not in self.hellos]
        wanted += [slot for slot in proposals if (slot, NOTHING) not in self.board and self.signed is None]
        wanted += self._unknown_variants()
        if self.signed is not None:
            return [Slot(Kind.SIGN, self.number, 0, i) for i in self._unsigned()] + wanted
        if not self.common:
            return wanted
        ahead = [read_hello(f.payload).completed for f in self._present().values()]
        base = max(ahead, default=self.completed)
        if base > self.completed:
            if self.attempt is not None and base == (self.attempt.number, self.completed[1] + 1):
                wanted += [Slot(Kind.MESSAGE, *base, i) for i in self.attempt.members]
            servers = [i for i, f in self._present().items() if read_hello(f.payload).completed == base]
            wanted += [Slot(Kind.TOTAL, base[0], t, i) for i in servers for t in range(1, base[1] + 1)]
            wanted += [Slot(Kind.SIGN, self.number, 0, i) for i in sites]
        return wanted

    def _unknown_variants(self) -> list[Slot]:
        """The hellos that proposals name and that this site has not received, even hellos in its own name."""
        found: list[Slot] = []
        for sender in range(len(self.setup.names)):
            frame = self.find(Kind.PROPOSE, self.number, 0, sender)
            chosen = {} if frame is None else read_proposal(frame.payload)
            found += [
                Slot(Kind.HELLO, self.number, 0, i) for i, d in chosen.items() if not self._variant(i, d)
            ]
        return found

    def look_at_meeting(self) -> None:
        """Handle a tick during a meeting without progress: try the next attempt number, or stop."""
        setup = self.setup
        opening = self.attempt is None and not self.past and self.seen <= 1 and self.fails == 0
        longest = setup.gather * (2 + len(setup.names) / 2) * 2 ** min(self.fails, LONGEST_BACKOFF)
        longest += setup.patience if opening or self.finishing is not None else 0.0
        needed = setup.quorum if self.finishing is None else len(setup.names) - len(self.finishing)
        bound = setup.patience if setup.all_needed or self.finishing is not None else 2 * setup.patience
        alone = self.now > self.since + bound and len(self._present()) < needed
        if self.now < self.entered + longest and not (alone and setup.all_needed):
            return
        if alone:
            names = [setup.names[i] for i in sorted(self.absent())]
            self.stop(
                Reason.LEFT_ALONE,
                f"too few sites to continue: no answer from {', '.join(names[:5])}, and {needed} of the "
                f"{len(setup.names)} sites must take part. Everything is stored: run the same command to "
                "continue.",
            )
            return
        self.fails += 1
        self.meet()
