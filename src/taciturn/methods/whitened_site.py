"""One site of a run in whitened coordinates (`whitened_penalty.py`), in which rows vary equally.

In its first rounds the site sends noisy second moments of its rows. The totals over all sites determine the
coordinates. In the later rounds ("the paper's rounds") the site sends the vectors of the paper's method
[ZKL18]. The noise that a site adds to its moments protects its rows, so masks are not needed. No site
releases its moments twice. An attempt is a part of the run with fixed member sites. Later attempts use
the totals of the first attempt: in the first message of an attempt (hello), every site sends these totals
together with its last vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.errors import StateLost
from ..core.types import Array
from ..kernels.algebra import product
from ..privacy.facts import Charge
from .admm.attempt import ADMMAttempt, ADMMSite, UnmaskedAttempt, UnmaskedSite
from .admm.node import Node, NodeState
from .admm.prepared import PreparedADMM
from .base import Audience, Links
from .programs.coordinates import Coordinates
from .sums.attempt import SumsAttempt, SumsSite
from .sums.sums import open_sum

Totals = tuple[bytes, ...]


@dataclass(frozen=True, eq=False)
class WhitenedSiteState:
    """The state of a site after t rounds.

    totals : the released totals of the moments so far.   public : the coordinates, computed from the totals.
    rounds : the state in the paper's rounds; None before the first of them.
    """

    t: int
    totals: Totals
    public: Any
    rounds: NodeState | None = None


@dataclass(frozen=True, eq=False)
class WhitenedSite(UnmaskedSite):
    """One site of a run in whitened coordinates, for all attempts.

    sums : this site in the rounds that release moments.   links : the neighbours of every site.
    node_at : makes the node for the paper's rounds from the coordinates.   made : see `_on_rows`.
    """

    number: int
    prepared: PreparedADMM
    node_at: Callable[[Coordinates], Node]
    sums: SumsSite
    links: Links
    made: dict[Totals, ADMMSite] = field(default_factory=dict)

    @property
    def moments(self) -> int:
        return self.sums.rounds

    @property
    def rounds(self) -> int:
        return self.prepared.rounds

    @property
    def least(self) -> int:
        """The number of rounds after which a model exists."""
        return self.moments + 1

    @property
    def dimension(self) -> int:
        return self.prepared.network.dimension

    def start(self) -> WhitenedSiteState:
        return WhitenedSiteState(0, (), self.sums.start())

    def vector(self, state: WhitenedSiteState) -> bytes:
        """The last vector that this site released, then the totals of the moments, as bytes; all public."""
        if state.rounds is None:
            return b""
        return self._on_rows(state.totals).vector(state.rounds) + b"".join(state.totals)

    def result(self, state: WhitenedSiteState, last: Mapping[int, bytes]) -> Array:
        """V u, where u is the average of the members' last vectors. Every machine gets the same bits."""
        vectors = {i: data[: 8 * self.dimension] for i, data in last.items()}
        u = self._on_rows(state.totals).result(self._node_state(state), vectors)
        return product(self.coordinates(state), u)

    def coordinates(self, state: WhitenedSiteState) -> Array:
        """V = W / q. The run uses V'x, shortened to norm at most 1, in place of a row x."""
        at = self._public(state.totals).coordinates[0]
        return np.ascontiguousarray(at.W / at.q)

    def enter(self, members: Sequence[int], vectors: Mapping[int, bytes], t: int) -> WhitenedSiteState:
        """The first state of an attempt that begins after round t.

        Before all moments are released, this state is `start()`. Afterwards every member continues from its
        last vector, with dual variables 0. A site that lost the totals uses the totals that most members
        send. Wrong totals cost accuracy but no privacy, because rows have norm at most 1 in any coordinates.
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
        """This site in an attempt with these members after round `base`; None if the site cannot take part.

        The site cannot take part if none of its neighbours is a member, if no round remains, if moments are
        still to be released and some site is not a member, or if an earlier attempt ended between two
        releases of moments.
        """
        near = self.near(members)
        sums = self.sums.attempt(members, 0, 1.0) if base == 0 else None
        if not near or base >= self.rounds or 0 < base < self.moments or (base == 0 and sums is None):
            return None
        return WhitenedAttempt(self, tuple(members), near, sums)

    def _read(self, vector: bytes) -> tuple[bytes, Totals]:
        """The last vector and the totals in `vector`; both are empty if `vector` has a wrong length."""
        sizes = [8 * self.dimension, *(8 * entry.length for entry in self.sums.tables.sums)]
        if len(vector) != sum(sizes):
            return b"", ()
        ends = np.cumsum(sizes).tolist()
        f, *totals = (vector[end - size : end] for end, size in zip(ends, sizes, strict=True))
        return f, tuple(totals)

    def _public(self, totals: Totals) -> Any:
        """The public state, with the coordinates, that follows from these totals of the moments."""
        state, attempt = self.sums.start(), self._everybody()
        for total in totals:
            state = attempt.after(state, b"", total)
        return state

    def _everybody(self) -> SumsAttempt:
        return SumsAttempt(self.sums, self.sums.tables, tuple(range(len(self.sums.samples))), 1.0)

    def _on_rows(self, totals: Totals) -> ADMMSite:
        """This site in the paper's rounds, with rows in the coordinates that follow from these totals.

        The result is kept for the next call.
        """
        if len(totals) < self.moments:
            raise StateLost(
                "this site lost the sums that define its whitened coordinates, and no other site sent them. "
                "Start a new run."
            )
        if totals not in self.made:
            node = self.node_at(self._public(totals).coordinates[0])
            self.made.clear()
            self.made[totals] = self.prepared.site_of(node, self.links)
        return self.made[totals]

    def _node_state(self, state: WhitenedSiteState) -> NodeState:
        return state.rounds or self._on_rows(state.totals).start()


@dataclass(frozen=True, eq=False)
class WhitenedAttempt(UnmaskedAttempt):
    """One site in one attempt. `sums` is None if an earlier attempt released the moments."""

    site: WhitenedSite
    members: tuple[int, ...]
    near: tuple[int, ...]
    sums: SumsAttempt | None

    def hears(self, t: int) -> Audience:
        return self._reader(t).hears(t)

    def size(self, t: int) -> int:
        return self._reader(t).size(t)

    def facts(self, t: int) -> bytes:
        return self._reader(t).facts(t)

    def message(self, state: WhitenedSiteState) -> bytes | None:
        """The noisy moments of this site's rows or, later, its noisy vector; None if the solve failed."""
        if state.t < self.site.moments:
            return self._moments().message(state.public)
        return None if state.rounds is None else self._on_rows(state.totals).message(state.rounds)

    def charge(self, t: int) -> Charge:
        return next(self.site.prepared.charges(t).each())

    def heard(self, t: int, messages: Mapping[int, bytes]) -> bytes:
        """The sum of all sites' moments or, in the paper's rounds, of the neighbours' vectors."""
        return self._reader(t).heard(t, messages)

    def impossible(self, t: int, heard: bytes, messages: Mapping[int, bytes]) -> bool:
        """Whether a message, or the sum of all messages, is too large to come from honest sites."""
        return self._reader(t).impossible(t, heard, messages) or self.blamed(t, messages) is not None

    def blamed(self, t: int, messages: Mapping[int, bytes]) -> int | None:
        """The site with the largest message, if no honest site sends so large a message; else None."""
        if t > self.site.moments:
            return self._reader(t).blamed(t, messages)
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
        return self._reader(t).at_edge(t, messages)

    def after(self, state: WhitenedSiteState, own: bytes, heard: bytes) -> WhitenedSiteState:
        """The state after one more round: a round of moments adds a total, others update the vectors."""
        t, site = state.t + 1, self.site
        if t > site.moments:
            rounds = self._on_rows(state.totals).after(site._node_state(state), own, heard)
            return WhitenedSiteState(t, state.totals, state.public, rounds)
        public, totals = self._moments().after(state.public, own, heard), (*state.totals, heard)
        begun = site._on_rows(totals).start() if t == site.moments else None
        return WhitenedSiteState(t, totals, public, begun)

    def _moments(self) -> SumsAttempt:
        return self.sums or self.site._everybody()

    def _reader(self, t: int) -> SumsAttempt | ADMMAttempt:
        """The object that reads the messages of round t. In the paper's rounds this object has no rows."""
        if t <= self.site.moments:
            return self._moments()
        rowless: Any = None
        site = self.site.prepared.site_of(rowless, self.site.links)
        return ADMMAttempt(site, rowless, self.members, self.near)

    def _on_rows(self, totals: Totals) -> ADMMAttempt:
        """This attempt in the paper's rounds, with rows in the coordinates that follow from these totals."""
        found = self.site._on_rows(totals).attempt(self.members, 0, 1.0)
        if found is None:
            raise LookupError("this site has no neighbour among the members")
        return found
