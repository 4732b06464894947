"""The methods of [ZKL18] between sites that join and leave. An attempt is a part of a run with fixed members.

Attempts share one numbering of rounds. An attempt begins after the last round for which any member was
charged (for which a privacy cost was recorded). So no site ever releases a round twice: a site that was away,
or was restored from an old backup, skips rounds. Every member continues from its last released vector. The
dual variables start at 0 in each attempt, because dual variables that do not add up to 0 would move the
optimum.

If a site loses neighbours, its penalty becomes eta' = eta V / V', where V and V' are the planned and the
present number of neighbours. Sensitivity and cost depend on eta V alone, so the charges stay as planned.
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
from ..base import Audience, Links
from .node import Node, NodeState
from .updates import network_average

EDGE = 0.75  # an entry of at least EDGE * clip is near the clip; noise alone moves a few entries there


class UnmaskedSite:
    """One site of a method without masks (random numbers that hide a message): all messages are open."""

    number: int
    links: Links
    common = False
    """False: every site has a state of its own."""
    colluding = 0
    """Always 0: the cost is the same for any number of colluding sites."""

    def spent(self, base: int, left: float, upto: int) -> float:
        """Always 0: the noise of a round is fixed, whatever earlier attempts have spent."""
        return 0.0

    def connected(self, members: Sequence[int]) -> bool:
        """Whether the members' graph is connected, so that their models converge to one model."""
        return _connected(tuple(members), self.links)

    def near(self, members: Sequence[int]) -> tuple[int, ...]:
        """The neighbours of this site among the members."""
        return tuple(j for j in self.links[self.number] if j in set(members))


class UnmaskedAttempt:
    """One site in one attempt of a method without masks. `near` : the neighbours among the members."""

    near: tuple[int, ...]

    def padded(self, t: int) -> bool:
        """False: no mask hides the messages."""
        return False

    def partners(self) -> tuple[int, ...]:
        """Empty: no site shares a mask with this site."""
        return ()

    def neighbours(self) -> tuple[int, ...]:
        return self.near

    def sum_facts(self, t: int) -> None:
        """None: the facts of the run already list the sums, if the run has any."""


@dataclass(frozen=True, eq=False)
class ADMMSite(UnmaskedSite):
    """One site of a run, for all attempts.

    node : computes this site's rounds if all its neighbours take part.   links : the neighbours of each site.
    clip : the largest allowed size of an entry of a vector.
    """

    number: int
    node: Node
    links: Links
    clip: float
    dimension: int
    least = 1
    """The number of rounds after which a model exists."""

    @property
    def rounds(self) -> int:
        return self.node.rounds

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
        """None: the method does not transform rows."""

    def enter(self, members: Sequence[int], vectors: Mapping[int, bytes], t: int) -> NodeState:
        """The first state of an attempt: the last vectors of this site and its neighbours; lam is 0."""
        f = self._read(vectors[self.number])
        heard = sum((self._read(vectors[j]) for j in self.near(members)), np.zeros_like(f))
        return NodeState(t, f, np.zeros_like(f), heard)

    def attempt(self, members: Sequence[int], base: int, left: float) -> ADMMAttempt | None:
        """This site in an attempt with these members after round `base`.

        None if no neighbour of the site is a member, or if no round remains.
        """
        near, planned = self.near(members), len(self.links[self.number])
        if not near or base >= self.rounds:
            return None
        node = self.node
        if len(near) < planned:
            tables = replace(node.tables, eta=node.tables.eta * (planned / len(near)))
            node = replace(node, tables=tables, degrees=np.array([len(near)]))
        return ADMMAttempt(self, node, tuple(members), near)

    def _read(self, data: bytes) -> Array:
        """The vector of a site, clipped to the public range; data of a wrong length counts as zeros."""
        if len(data) != 8 * self.dimension:
            return np.zeros((1, 1, self.dimension))
        return np.clip(np.nan_to_num(_vector(data)), -self.clip, self.clip)[None, None]


@dataclass(frozen=True, eq=False)
class ADMMAttempt(UnmaskedAttempt):
    """One site in one attempt. Its messages are little-endian floats."""

    site: ADMMSite
    node: Node
    members: tuple[int, ...]
    near: tuple[int, ...]

    def hears(self, t: int) -> Audience:
        return "neighbours"

    def size(self, t: int) -> int:
        """The length of a message in bytes."""
        return 8 * self.site.dimension

    def facts(self, t: int) -> bytes:
        """A hash of what all members must agree on: the round, the members and the clip."""
        return hashlib.sha256(repr((t, self.members, self.site.clip)).encode()).digest()

    def message(self, state: NodeState) -> bytes | None:
        """f(t), noise included; None if the solve failed."""
        f = self.node.message(state)
        return None if f is None else np.ascontiguousarray(f, dtype="<f8").tobytes()

    def charge(self, t: int) -> Charge:
        """The cost of the message of round t. It is the planned cost, because eta V is as planned."""
        return next(self.site.node.charges(t).each())

    def heard(self, t: int, messages: Mapping[int, bytes]) -> bytes:
        """The sum of the neighbours' vectors, each clipped to the public range, in order of site number."""
        total = np.zeros((1, 1, self.site.dimension))
        for j in self.near:
            total += self.site._read(messages[j])
        return np.ascontiguousarray(total, dtype="<f8").tobytes()

    def impossible(self, t: int, heard: bytes, messages: Mapping[int, bytes]) -> bool:
        """Whether a neighbour sent a vector that no honest site sends."""
        return self.blamed(t, messages) is not None

    def blamed(self, t: int, messages: Mapping[int, bytes]) -> int | None:
        """The site with the largest vector, if half of its entries are near the clip or one exceeds the clip.

        The largest vector is the attacker's: a site that pulls its neighbours' vectors to the clip reaches
        the clip one round before them.
        """
        far = {j: self._reach(_vector(data)) for j, data in messages.items() if j != self.site.number}
        furthest = max(far, key=lambda j: far[j], default=None)
        return furthest if furthest is not None and far[furthest] >= EDGE * self.site.clip else None

    def _reach(self, vector: Array) -> float:
        """The median absolute value of the entries; infinite if an entry exceeds the clip."""
        largest = float(np.abs(vector).max(initial=0.0))
        return float(np.median(np.abs(vector))) if largest <= self.site.clip else math.inf

    def at_edge(self, t: int, messages: Mapping[int, bytes]) -> list[int]:
        """The sites that sent an entry near the clip, the largest allowed size; for the operators' log."""
        largest = {j: np.abs(_vector(data)).max(initial=0.0) for j, data in messages.items()}
        return [j for j, value in largest.items() if value >= EDGE * self.site.clip]

    def after(self, state: NodeState, own: bytes, heard: bytes) -> NodeState:
        """The dual update, from the released and the received vectors."""
        f, near = (_vector(data)[None, None] for data in (own, heard))
        return self.node.after(state, f, near)


def _vector(data: bytes) -> Array:
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


@lru_cache(maxsize=256)
def _connected(members: tuple[int, ...], links: Links) -> bool:
    chosen, reached, new = set(members), set[int](), list(members[:1])
    while new:
        i = new.pop()
        if i not in reached:
            reached.add(i)
            new += [j for j in links[i] if j in chosen]
    return reached == chosen
