"""The paper's methods between sites that come and go: an attempt is a graph, and the duals begin at 0.

Rounds keep their numbers. An attempt begins after the last round that any member was charged for, so no site
ever releases a round twice: one that was away, or was rolled back, skips rounds and never repeats one.
Every member goes on from its last released vector. Dual variables that do not add up to 0 would move the
optimum, so they start again at 0.

A site that loses neighbours keeps eta V as it was planned: eta' = eta V / V'. Sensitivity and cost depend on
that product alone, so that the charge of a round stays the planned one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ...core.types import Array
from ...privacy.facts import Charge
from ..base import Audience
from .averaging import network_average
from .node import Node, NodeState

EDGE = 0.75  # of the clip: noise alone brings single numbers there, never half of a vector


@dataclass(frozen=True, eq=False)
class ADMMSite:
    """One site of a run, over all of its attempts.

    node : the site with the neighbours that the job gives it.   links : the neighbours of every site.
    """

    number: int
    node: Node
    links: tuple[tuple[int, ...], ...]
    clip: float
    dimension: int
    common = False
    """Every site holds a state of its own."""
    least = 1
    """After so many rounds there is a model."""

    @property
    def rounds(self) -> int:
        return self.node.rounds

    @property
    def colluding(self) -> int:
        """Not used: the cost does not depend on the number of colluders."""
        return 0

    def start(self) -> NodeState:
        zeros = np.zeros((1, 1, self.dimension))
        return NodeState.start(zeros, zeros)

    def vector(self, state: NodeState) -> bytes:
        """The last vector that this site released; it is public."""
        return np.ascontiguousarray(state.f, dtype="<f8").tobytes()

    def result(self, state: NodeState, last: Mapping[int, bytes]) -> Array:
        """The average of the members' last vectors."""
        return np.asarray(network_average(np.stack([_vector(last[i]) for i in sorted(last)])))

    def coordinates(self, state: NodeState) -> None:
        """Rows count as they are."""

    def spent(self, base: int, left: float, upto: int) -> float:
        """A skipped round leaves its budget unspent; nothing has to be shared out again."""
        return 0.0

    def connected(self, members: Sequence[int]) -> bool:
        """Whether the members' graph is connected, so that they agree in the end."""
        return _connected(tuple(members), self.links)

    def enter(self, members: Sequence[int], vectors: Mapping[int, bytes], t: int) -> NodeState:
        """Every member at its last vector, the duals at 0."""
        f = self._read(vectors[self.number])
        heard = sum((self._read(vectors[j]) for j in self._near(members)), np.zeros_like(f))
        return NodeState(t, f, np.zeros_like(f), heard)

    def attempt(self, members: Sequence[int], base: int, left: float) -> ADMMAttempt | None:
        """This site among these members; None where it has no neighbour left."""
        near, planned = self._near(members), len(self.links[self.number])
        if not near or base >= self.rounds:
            return None
        node = self.node
        if len(near) < planned:
            tables = replace(node.tables, eta=node.tables.eta * (planned / len(near)))
            node = replace(node, tables=tables, degrees=np.array([len(near)]))
        return ADMMAttempt(self, node, tuple(members), near)

    def _near(self, members: Sequence[int]) -> tuple[int, ...]:
        return tuple(j for j in self.links[self.number] if j in set(members))

    def _read(self, data: bytes) -> Array:
        """A vector of another site, within the public range; one of another form counts as 0."""
        if len(data) != 8 * self.dimension:
            return np.zeros((1, 1, self.dimension))
        return np.clip(np.nan_to_num(_vector(data)), -self.clip, self.clip)[None, None]


@dataclass(frozen=True, eq=False)
class ADMMAttempt:
    """One site in one attempt; messages are little-endian floats."""

    site: ADMMSite
    node: Node
    members: tuple[int, ...]
    near: tuple[int, ...]

    def hears(self, t: int) -> Audience:
        return "neighbours"

    def masked(self, t: int) -> bool:
        return False

    def partners(self) -> tuple[int, ...]:
        """No site: nothing is masked."""
        return ()

    def neighbours(self) -> tuple[int, ...]:
        return self.near

    def size(self, t: int) -> int:
        """Bytes of a message."""
        return 8 * self.site.dimension

    def facts(self, t: int) -> bytes:
        """The facts that all members must agree on: the members. Each site has its own schedules."""
        return hashlib.sha256(repr((t, self.members, self.site.clip)).encode()).digest()

    def message(self, state: NodeState) -> bytes | None:
        """f(t), noise included; None if the solve failed."""
        f = self.node.message(state)
        return None if f is None else np.ascontiguousarray(f, dtype="<f8").tobytes()

    def charge(self, t: int) -> Charge:
        """The cost of the message of round t, as planned, because eta V is as planned."""
        return next(self.site.node.charges(t).each())

    def sum_facts(self, t: int) -> None:
        """No sum of all sites."""

    def heard(self, t: int, messages: Mapping[int, bytes]) -> bytes:
        """The sum of the neighbours' vectors, clipped to the public range, in increasing order."""
        total = np.zeros((1, 1, self.site.dimension))
        for j in self.near:
            total += self.site._read(messages[j])
        return np.ascontiguousarray(total, dtype="<f8").tobytes()

    def impossible(self, t: int, heard: bytes, messages: Mapping[int, bytes]) -> bool:
        """Whether a neighbour sent what no honest site sends."""
        return self.blamed(t, messages) is not None

    def blamed(self, t: int, messages: Mapping[int, bytes]) -> int | None:
        """The site that is furthest out, where one has half of its numbers near the edge, or one beyond it.

        A site that drives the others there is ahead of them: they follow a round later.
        """
        far = {j: self._reach(_vector(data)) for j, data in messages.items() if j != self.site.number}
        furthest = max(far, key=lambda j: far[j], default=None)
        return furthest if furthest is not None and far[furthest] >= EDGE * self.site.clip else None

    def _reach(self, vector: Array) -> float:
        """The median size of the numbers; infinite if one is out of range."""
        largest = float(np.abs(vector).max(initial=0.0))
        return float(np.median(np.abs(vector))) if largest <= self.site.clip else math.inf

    def at_edge(self, t: int, messages: Mapping[int, bytes]) -> list[int]:
        """The sites with a number near the edge: for people to know."""
        largest = {j: np.abs(_vector(data)).max(initial=0.0) for j, data in messages.items()}
        return [j for j, value in largest.items() if value >= EDGE * self.site.clip]

    def after(self, state: NodeState, own: bytes, heard: bytes) -> NodeState:
        """The dual update, from what was released and heard."""
        f, near = (_vector(data)[None, None] for data in (own, heard))
        return self.node.after(state, f, near)


def _vector(data: bytes) -> Array:
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


@lru_cache(maxsize=256)
def _connected(members: tuple[int, ...], links: tuple[tuple[int, ...], ...]) -> bool:
    chosen, reached, new = set(members), set[int](), list(members[:1])
    while new:
        i = new.pop()
        if i not in reached:
            reached.add(i)
            new += [j for j in links[i] if j in chosen]
    return reached == chosen
