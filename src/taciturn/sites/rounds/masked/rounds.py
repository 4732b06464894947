"""The rounds of a masked site: its message, stored before it is sent, and the sum of everybody's.

Messages are passed on until every site has all of them, so that any connected graph will do. A message is
made once: after any stop the stored bytes are sent again, and its key is gone by then, so that no second one
can be made for the same round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ....errors import BudgetExceeded, RunOver, SiteError
from ....masked.masks import Message, PairKeys
from ....masked.node import MaskedNode, loop
from ....masked.public.descent import DescentState
from ....masked.sums import add_up
from ....privacy.release import Release, drive
from ....types import Array
from ...wire.form import HELLO, READY
from ..exchange import Exchange
from ..opening import seal_release
from ..prepare import Ready
from ..store import SavedRound
from .keys import agree, key_shown, public_of
from .part import MaskedPart
from .store import MaskedState, MaskedStore


@dataclass
class MaskedRounds:
    """The rounds of one masked site; `frame` was committed and is not answered yet."""

    ready: Ready
    part: MaskedPart
    store: MaskedStore
    exchange: Exchange
    step: Callable[[int], None]
    frame: bytes | None = None
    heard: dict[int, bytes] = field(default_factory=dict)
    total: Message | None = None
    node: MaskedNode | None = None

    def greeting(self) -> bytes:
        """What 'hello' shows besides its nonce: a key for this run."""
        return public_of(self.store.secret())

    def run(self, resumed: SavedRound[MaskedState]) -> None:
        """From the round after `resumed.state` to the last."""
        state, released = resumed.state, None
        if state.keys is None and (state.t > 0 or resumed.frame is not None):
            raise RunOver(
                f"the run was ended after round {state.t}, and the keys of later rounds are gone: this site "
                "sends nothing more. For another run, agree on a new job and a new `state` folder."
            )
        if resumed.frame is not None:
            self.frame = resumed.frame
            released = to_integers(self.ready.open_frame(resumed.frame).message)
        self.total = state.total
        self.node = self.part.node(state.keys or self._agree())
        last = drive(loop(self.node, state.descent, commit=self.commit, released=released), self.hear)
        self.store.finish(MaskedState(last, self.total), self.heard)

    def commit(self, release: Release[Message, DescentState]) -> None:
        """Charge, bytes, and the sum and frames that led to them: on disk, or nothing may be sent."""
        if self.node is None:
            raise SiteError(f"round {release.t} has no keys; nothing may be sent.")
        frame = seal_release(self.exchange, release.t, to_bytes(release.message))
        state = MaskedState(release.state, self.total, self.node.keys)
        try:
            self.store.release(state, release.charge, frame, self.heard)
        except BudgetExceeded:  # the run ends after the round before this
            self.store.finish(MaskedState(release.state, self.total), self.heard)
            raise
        self.frame = frame

    def hear(self, release: Release[Message, DescentState]) -> Message:
        """Send what was committed; the sum of what everybody sent, this site included."""
        if self.frame is None:
            raise SiteError(f"round {release.t} was not committed; nothing may be sent.")
        letters = self.exchange.send(release.t, self.frame)
        self.frame, self.heard = None, {number: letter.data for number, letter in letters.items()}
        others = (to_integers(letter.frame.message) for letter in letters.values())
        self.total = add_up([release.message, *others])
        self.step(1)
        return self.total

    def model(self) -> Array:
        """What all sites hold after the last round."""
        return np.asarray(self.store.resume().state.descent.f.reshape(-1))

    def model_after(self, t: int) -> Array:
        """What all sites hold after round t, where the run ends there."""
        return self.store.end_after(t)

    def note_edge(self, t: int, vectors: Mapping[int, Array]) -> None:
        """A masked message may be any number."""

    def _agree(self) -> PairKeys:
        """The keys of round 1, from everybody's 'hello'."""
        mailbox = self.exchange.mailbox
        shown = {n: key_shown(letter.frame.message) for n, letter in mailbox.letters(HELLO).items()}
        return agree(
            self.part.site,
            self.store.secret(),
            shown,
            run=mailbox.common(READY),
            names=self.ready.site.job.names,
            partners=self.part.tables.pairs.partners(self.part.site),
        )


def to_bytes(message: Message) -> bytes:
    """A message as it travels: little-endian."""
    return np.ascontiguousarray(message, dtype="<u8").tobytes()


def to_integers(message: bytes) -> Message:
    """The same as numbers mod 2^64, (1, length)."""
    return np.frombuffer(message, dtype="<u8").astype(np.uint64)[None, :]
