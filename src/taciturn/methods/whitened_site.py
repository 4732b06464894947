"""The paper's method in whitened coordinates, between sites: the moments in the open, then its rounds.

Each site's own noise protects its rows in the moments, so they need no masks: a site stores its share and
sends it to all sites. A moment is never released twice. A later attempt goes on with the totals of the first,
which every site states in its hello together with its last vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.errors import StateLost
from ..core.types import Array
from ..kernels.algebra import product
from ..objective.local import LocalObjective
from ..privacy.facts import Charge
from .admm.attempt import ADMMAttempt, ADMMSite
from .admm.node import NodeState
from .base import Audience
from .sums.attempt import SumsAttempt, SumsSite
from .sums.sums import open_sum
from .whitened_penalty import PreparedWhitened, repeat_seed, whitened_objective

Totals = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class WhitenedSiteState:
    """The state of a site: the totals of the moments, the coordinates state, and the paper's state."""

    t: int
    totals: Totals
    public: Any
    rounds: NodeState | None = None


@dataclass(frozen=True, eq=False)
class WhitenedSite:
    """One site of such a run, over all of its attempts.

    sums : this site in the rounds of the moments.   links : the neighbours of every site.
    """

    prepared: PreparedWhitened
    rows: LocalObjective
    sums: SumsSite
    links: tuple[tuple[int, ...], ...]
    clip: float
    seed: int | None
    made: dict[Totals, ADMMSite] = field(default_factory=dict)
    common = False
    """Every site holds a state of its own."""

    @property
    def number(self) -> int:
        return self.sums.number

    @property
    def moments(self) -> int:
        return self.sums.rounds

    @property
    def rounds(self) -> int:
        return self.prepared.rounds

    @property
    def reader(self) -> ADMMSite:
        """The paper's site as far as it reads messages: it has no rows yet."""
        rowless: Any = None
        return ADMMSite(self.number, rowless, self.links, self.clip, self.dimension)

    @property
    def least(self) -> int:
        """After so many rounds there is a model."""
        return self.moments + 1

    @property
    def dimension(self) -> int:
        return self.prepared.network.dimension

    @property
    def colluding(self) -> int:
        """Not used: the cost does not depend on the number of colluders."""
        return 0

    def start(self) -> WhitenedSiteState:
        return WhitenedSiteState(0, (), self.sums.start())

    def vector(self, state: WhitenedSiteState) -> bytes:
        """The last vector that this site released and the totals of the moments, all public."""
        if state.rounds is None:
            return b""
        return self._on_rows(state.totals).vector(state.rounds) + b"".join(state.totals)

    def result(self, state: WhitenedSiteState, last: Mapping[int, bytes]) -> Array:
        """W u / q, u being the average of the members' last vectors; the same bits on every machine."""
        size = 8 * self.dimension
        u = self._on_rows(state.totals).result(
            self._rounds(state), {i: data[:size] for i, data in last.items()}
        )
        return product(self.coordinates(state), u)

    def coordinates(self, state: WhitenedSiteState) -> Array:
        """V = W / q: a row x counts as V'x, shrunk to norm 1."""
        at = self._public(state.totals).coordinates[0]
        return np.ascontiguousarray(at.W / at.q)

    def spent(self, base: int, left: float, upto: int) -> float:
        """A skipped round leaves its budget unspent; nothing has to be shared out again."""
        return 0.0

    def connected(self, members: Sequence[int]) -> bool:
        """Whether the members' graph is connected, so that they agree in the end."""
        return self.reader.connected(members)

    def enter(self, members: Sequence[int], vectors: Mapping[int, bytes], t: int) -> WhitenedSiteState:
        """Before the moments: the start. Afterwards every member at its last vector, the duals at 0.

        A site that lost the totals takes those that most members state. Wrong ones cost accuracy and no
        privacy: rows have norm at most 1 in any coordinates.
        """
        if t < self.moments:
            return self.start()
        read = {i: self._read(vector) for i, vector in vectors.items()}
        stated = Counter(totals for _, totals in read.values() if totals)
        totals = read[self.number][1] or max(sorted(stated), key=lambda one: stated[one], default=())
        if not totals:
            return WhitenedSiteState(t, (), self.sums.start())
        f = {i: vector for i, (vector, _) in read.items()}
        begun = self._on_rows(totals).enter(members, f, t - self.moments)
        return WhitenedSiteState(t, totals, self._public(totals), begun)

    def attempt(self, members: Sequence[int], base: int, left: float) -> WhitenedAttempt | None:
        """This site among these members; None where it has no neighbour left, or the moments were cut off."""
        near = tuple(j for j in self.links[self.number] if j in set(members))
        moments = self.sums.attempt(members, 0, 1.0) if base == 0 else None
        if not near or base >= self.rounds or 0 < base < self.moments or (base == 0 and moments is None):
            return None
        return WhitenedAttempt(self, tuple(members), near, moments)

    def _read(self, vector: bytes) -> tuple[bytes, Totals]:
        """The inverse of `vector`; None for another format."""
        sizes = [8 * self.dimension, *(8 * entry.length for entry in self.sums.tables.sums)]
        if len(vector) != sum(sizes):
            return b"", ()
        ends = np.cumsum(sizes).tolist()
        f, *totals = (vector[end - size : end] for end, size in zip(ends, sizes, strict=True))
        return f, tuple(totals)

    def _public(self, totals: Totals) -> Any:
        """The public state that the totals of the moments lead to."""
        state, attempt = self.sums.start(), self._everybody()
        for total in totals:
            state = attempt.after(state, b"", total)
        return state

    def _everybody(self) -> SumsAttempt:
        return SumsAttempt(self.sums, self.sums.tables, tuple(range(len(self.sums.samples))), 1.0)

    def _on_rows(self, totals: Totals) -> ADMMSite:
        """The paper's site on rows in the coordinates that these totals give; made once."""
        if len(totals) < self.moments:
            raise StateLost("this site lost the moments of the rows, and no member stated them.")
        if totals not in self.made:
            at = self._public(totals).coordinates[0]
            rows, seed = whitened_objective(self.rows, at), repeat_seed(self.seed, 0)
            (node,) = self.prepared.on_rows().nodes([rows], [range(1)], seed=seed, repeats=1)
            self.made.clear()
            self.made[totals] = ADMMSite(self.number, node, self.links, self.clip, self.dimension)
        return self.made[totals]

    def _rounds(self, state: WhitenedSiteState) -> NodeState:
        return state.rounds or self._on_rows(state.totals).start()


@dataclass(frozen=True, eq=False)
class WhitenedAttempt:
    """What one site does in one attempt; `sums` is None where the moments were released before it."""

    site: WhitenedSite
    members: tuple[int, ...]
    near: tuple[int, ...]
    sums: SumsAttempt | None

    def hears(self, t: int) -> Audience:
        return "everybody" if t <= self.site.moments else "neighbours"

    def masked(self, t: int) -> bool:
        return False

    def partners(self) -> tuple[int, ...]:
        """No site: nothing is masked."""
        return ()

    def neighbours(self) -> tuple[int, ...]:
        return self.near

    def size(self, t: int) -> int:
        """Bytes of a message."""
        return 8 * self.site.dimension if t > self.site.moments else self._moments().size(t)

    def facts(self, t: int) -> bytes:
        """What all members must agree on: the numbers of the moments, and who they are."""
        return self._moments().facts(t) if t <= self.site.moments else self._reader().facts(t)

    def message(self, state: WhitenedSiteState) -> bytes | None:
        """A share of the moments, or f(t), noise included; None if the solve failed."""
        if state.t < self.site.moments:
            return self._moments().message(state.public)
        return None if state.rounds is None else self._rounds(state.totals).message(state.rounds)

    def charge(self, t: int) -> Charge:
        """The cost of the message of round t."""
        return next(self.site.prepared.charges(t).each())

    def sum_facts(self, t: int) -> None:
        """The moments are in the facts of the run."""

    def heard(self, t: int, messages: Mapping[int, bytes]) -> bytes:
        """The sum of all shares, or of the neighbours' vectors."""
        return (
            self._moments().heard(t, messages)
            if t <= self.site.moments
            else self._reader().heard(t, messages)
        )

    def impossible(self, t: int, heard: bytes, messages: Mapping[int, bytes]) -> bool:
        """Whether a site sent what no honest site sends, or the shares add up to what no rows have."""
        long = t <= self.site.moments and self._moments().impossible(t, heard, messages)
        return long or self.blamed(t, messages) is not None

    def blamed(self, t: int, messages: Mapping[int, bytes]) -> int | None:
        """The site whose message is longer than any that rows within the bounds can lead to."""
        if t > self.site.moments:
            return self._reader().blamed(t, messages)
        sums = self._moments()
        grid = sums.tables.sums[t - 1].grid
        far = {
            j: float(np.linalg.norm(open_sum(np.frombuffer(data, dtype="<u8"), grid)))
            for j, data in messages.items()
            if j != self.site.number
        }
        furthest = max(far, key=lambda j: far[j], default=None)
        return furthest if furthest is not None and not far[furthest] <= sums.bound(t) else None

    def at_edge(self, t: int, messages: Mapping[int, bytes]) -> list[int]:
        """The sites with a number near the edge: for people to know."""
        return [] if t <= self.site.moments else self._reader().at_edge(t, messages)

    def after(self, state: WhitenedSiteState, own: bytes, heard: bytes) -> WhitenedSiteState:
        """One more total of the moments, or the dual update."""
        t, site = state.t + 1, self.site
        if t > site.moments:
            rounds = self._rounds(state.totals).after(site._rounds(state), own, heard)
            return WhitenedSiteState(t, state.totals, state.public, rounds)
        public, totals = self._moments().after(state.public, own, heard), (*state.totals, heard)
        begun = site._on_rows(totals).start() if t == site.moments else None
        return WhitenedSiteState(t, totals, public, begun)

    def _moments(self) -> SumsAttempt:
        return self.sums or self.site._everybody()

    def _reader(self) -> ADMMAttempt:
        """The paper's attempt as far as it reads messages, which needs no rows."""
        return ADMMAttempt(self.site.reader, self.site.reader.node, self.members, self.near)

    def _rounds(self, totals: Totals) -> ADMMAttempt:
        """The paper's attempt on rows in the coordinates that these totals give."""
        found = self.site._on_rows(totals).attempt(self.members, 0, 1.0)
        if found is None:
            raise LookupError("this site has no neighbour among the members")
        return found
