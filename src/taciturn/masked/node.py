"""The loop of one masked site: it yields its message and is sent the sum of all messages mod 2^64. No I/O.

What it and whoever drives it agree on is in `privacy/release.py`: one loop for one process and for the open
network. A key leaves a site's memory as soon as its message is made, before that is even committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import ParameterError
from ..privacy.facts import Charge
from ..privacy.release import Loop, Release
from ..rng import Streams
from . import discrete
from .masks import Message, PairKeys
from .method import MaskedTables
from .public.descent import DescentState
from .shares import Share
from .sums import add_mask, to_integers


@dataclass(frozen=True)
class MaskedNode:
    """All that site `site` needs for its run; fixed before the first round, but for its keys.

    `after` stands in for `tables.after` where several sites in one process share the work.
    """

    site: int
    share: Share
    tables: MaskedTables
    keys: PairKeys
    streams: Streams
    repeats: int = 1
    after: Callable[[DescentState, Message], DescentState] | None = None

    def message(self, state: DescentState) -> Message:
        """The next round's message, (repeats, length): the site's share on the grid, noised and masked."""
        facts = self.tables.sums[state.t]
        shape = (self.repeats, facts.length)
        if state.t == 1 and np.any(state.y):
            raise ParameterError("`state` must be 0 in round 2: its noise is made for the slopes at 0.")
        h = self.share.moments() if state.t == 0 else self.share.gradient(state.y)
        values = np.ascontiguousarray(np.broadcast_to(to_integers(h, facts.grid), shape))
        noise = discrete.draw(self.streams, facts.std, shape, site=self.site, t=facts.t)
        return add_mask(values, noise, self.keys.mask(facts.t, facts.part, shape))

    def charge_of(self, t: int) -> Charge:
        """What the release of round t costs."""
        return Charge(self.site, t, scale=self.tables.sums[t - 1].std)


def loop(
    node: MaskedNode,
    state: DescentState,
    *,
    commit: Callable[[Release[Message, DescentState]], None],
    released: Message | None = None,
) -> Loop[Message, DescentState, Message]:
    """Rounds state.t + 1 .. T: yield the site's message, be sent the sum of all, return the last state.

    `released` is the message of round state.t + 1 where that one was committed before a crash: it is sent
    again as it stands, and `node.keys` are then those of round state.t + 2. A message made anew would carry
    new noise under the same mask, which lays the site bare.
    """
    for t in range(state.t + 1, node.tables.rounds + 1):
        if released is None:
            release = Release(node.charge_of(t), node.message(state), state)
            node.keys.advance()
            commit(release)  # before the release: a crash over-counts, never under-counts
        else:
            release, released = Release(node.charge_of(t), released, state), None
        total = yield release
        state = (node.after or node.tables.after)(state, total)
    return state
