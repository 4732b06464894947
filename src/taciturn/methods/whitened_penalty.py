"""Penalty perturbation [ZKL18] in whitened coordinates, in which rows vary equally in every direction.

    rounds 1 .. m   all sites learn noisy second moments of the rows (the mean of x x'), and compute the
                    public matrix W and the public bound q from them (`programs/coordinates.py`)
    afterwards      every row x becomes x^ = W'x min(1, q/r) / q, where r = ||W'x||, so ||x^|| <= 1; in
                    these rounds ("the paper's rounds") the method of [ZKL18] runs on the rows x^, and each
                    site sends its vector to its neighbours

Given W and q, x^ depends on x alone, so every bound on the paper's rounds holds unchanged. The moments cost
mu-GDP (Gaussian differential privacy) in addition to these rounds. A site's own noise in the moments protects
the site's records, even if all other sites collude. A model u for the rows x^ gives a row x the score
(W u / q)'x min(1, q/r).
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from ..objective.local import LocalObjective
from ..objective.rows import row_pieces
from ..privacy.facts import Charge, RoundCharges, RunFacts
from ..privacy.sums import MOMENTS, OF_ROWS, WHITENED, SumTerms
from .admm.prepared import PreparedADMM
from .base import Audience, Links, Network, UnreadRowsError
from .programs.coordinates import Coordinates, Strength
from .programs.masked_descent import most_rows, plan_sums
from .programs.whitened import Whitened
from .sums.node import SumsNode
from .sums.prepared import PreparedSums
from .sums.program import SumTables, fix_noise, pair_graph

if TYPE_CHECKING:
    from .admm.node import Node, NodeState
    from .whitened_site import WhitenedSite

SHARE = 0.1
"""The share of the squared budget mu^2 of a whole run that the planner spends on the moments."""
_SHARES = (0.4, 0.6)  # how the two releases of moments divide the mu^2 of all moments
ROUNDS = len(_SHARES)
"""The number of rounds, at the start, that release moments."""


def strength(units: int, sites: int, mu: float) -> Strength:
    """The strength of the signal compared with the noise, in a run whose moments cost mu.

    All other sites may collude, so each site adds enough noise to protect its records by itself.
    """
    return Strength(units, mu / math.sqrt(SHARE), float(sites))


def moments_of_rows(network: Network, mu: float) -> SumTables:
    """The sums that determine the coordinates. Together they are mu-GDP even if all other sites collude."""
    if not network.samples:
        raise UnreadRowsError("PenaltyPerturbation")  # `runtime/setup.py` then reads the rows
    mu, d = checks.positive("whiten", mu), network.dimension
    pairs = pair_graph(network.total, None)
    largest = most_rows(network.samples, network.persons)
    terms = SumTerms(OF_ROWS, network.units, largest, d, 1.0, network.total)
    sums = plan_sums(
        terms, (MOMENTS, WHITENED), _SHARES, partial(fix_noise, mu=mu, pairs=pairs, colluding=None)
    )
    noise = tuple(entry.grid * entry.std * math.sqrt(network.total) for entry in sums)
    whole = strength(network.units, network.total, mu)
    # `Whitened` whitens after each release of moments except the last. Here it has to whiten after the last
    # release too, so the number of releases is given as one more than there are.
    program = Whitened(d, len(sums) + 1, noise, whole, 0.0, None)
    return SumTables(sums, pairs, None, program, network.units, largest)


def whitened_objective(objective: LocalObjective, at: Coordinates) -> LocalObjective:
    """The objective of the same site with its rows in these coordinates.

    Given the coordinates, each new row depends on one original row alone.
    """
    from ..kernels.row_functions import dense_rows, sparse_rows

    W = np.ascontiguousarray(at.W / at.q)
    made = copy.copy(objective)
    parts = []
    for part in objective.parts:
        rows = np.zeros((part.rows.samples, W.shape[1]))
        for some, Z in row_pieces(part.rows.Z):
            if isinstance(Z, np.ndarray):
                dense_rows(Z, W, rows[some])
            else:
                sparse_rows(Z.data, Z.indices, Z.indptr, W, rows[some])
        rows.flags.writeable = False
        norm = float(np.sqrt(np.max(np.einsum("nd,nd->n", rows, rows))))
        parts.append(replace(part, rows=replace(part.rows, Z=rows, norm=norm, width=rows.shape[1])))
    made.hold(tuple(parts))
    made.largest_norm = max(part.rows.norm for part in parts)
    made.__dict__.pop("smoothness", None)
    return made


@dataclass(frozen=True, eq=False)
class WhitenedNodeState:
    """The state of sites after t rounds. A repeat is one of several independent runs.

    public : the public state of the rounds that release moments.
    first, heard : the public start vectors of these sites, and the sums of their neighbours' start vectors.
    rounds : after the moments, the state of the paper's rounds for each repeat.
    """

    t: int
    public: Any
    first: Array | None
    heard: Array | None
    rounds: tuple[NodeState, ...] = ()


@dataclass(frozen=True, eq=False)
class WhitenedNode:
    """A node of a run in whitened coordinates: the object that computes the messages of some of the sites.

    sums : the node that computes the messages of the rounds of moments.
    inner : for each repeat, the node for the paper's rounds, and the inverse of W / q.
    """

    prepared: PreparedWhitened
    objectives: Sequence[LocalObjective]
    sums: SumsNode
    seed: int | None
    inner: dict[int, tuple[Node, Array]] = field(default_factory=dict)

    @property
    def sites(self) -> Any:
        return self.sums.sites

    @property
    def rounds(self) -> int:
        return self.prepared.rounds

    def start(self, first: Array | None, heard: Array | None) -> WhitenedNodeState:
        return WhitenedNodeState(0, self.sums.start(), first, heard)

    def message(self, state: WhitenedNodeState) -> Any | None:
        """The messages of the sites: masked parts of the moments or, in the paper's rounds, vectors.

        None if, in a real run, a site could not solve its problem.
        """
        if state.t < self.prepared.moments.rounds:
            return self.sums.message(state.public)
        found = [self._node(state, k).message(one) for k, one in enumerate(state.rounds)]
        return None if any(f is None for f in found) else np.concatenate(found, axis=1)  # type: ignore[arg-type]

    def charges(self, t: int) -> RoundCharges:
        return self.prepared.charges(t)

    def after(self, state: WhitenedNodeState, message: Any, heard: Any) -> WhitenedNodeState:
        t = state.t + 1
        if t <= self.prepared.moments.rounds:
            public = self.sums.after(state.public, message, heard)
            state = replace(state, t=t, public=public)
            if t < self.prepared.moments.rounds:
                return state
            begun = [self._node(state, k).start(*self._first(state, k)) for k in range(self.sums.repeats)]
            return replace(state, rounds=tuple(begun))
        each = [
            self._node(state, k).after(one, message[:, k : k + 1], heard[:, k : k + 1])
            for k, one in enumerate(state.rounds)
        ]
        return replace(state, t=t, rounds=tuple(each))

    def models(self, state: WhitenedNodeState) -> Array:
        """The models W u / q; zeros before the paper's rounds.

        The score of a row x with ||W'x|| > q must still be multiplied by q / ||W'x||.
        """
        if not state.rounds:
            return np.zeros((len(self.sites), self.sums.repeats, self.prepared.model_size))
        pairs = zip(state.rounds, self.coordinates(state), strict=True)
        return np.concatenate([one.f @ V.T for one, V in pairs], axis=1)

    def metrics(self, models: Array) -> tuple[Array, Array]:
        """(mean loss, quality) of models on each site's own rows.

        In the paper's rounds, the metrics use the same rows as the training: each row x is first multiplied
        by min(1, q / ||W'x||). The quality is the accuracy, or the mean absolute error of a regression.
        """
        if not self.inner:
            return self.sums.metrics(models)
        each = [node.metrics(models[:, k : k + 1] @ back.T) for k, (node, back) in sorted(self.inner.items())]
        losses, qualities = (np.concatenate(part, axis=1) for part in zip(*each, strict=True))
        return losses, qualities

    def coordinates(self, state: WhitenedNodeState) -> Array:
        """W / q of every repeat, (repeats, d, d)."""
        return np.stack([at.W / at.q for at in state.public.coordinates])

    def _first(self, state: WhitenedNodeState, k: int) -> tuple[Array | None, Array | None]:
        if state.first is None or state.heard is None:
            return None, None
        return state.first[:, k : k + 1], state.heard[:, k : k + 1]

    def _node(self, state: WhitenedNodeState, k: int) -> Node:
        """The node for the paper's rounds of repeat k, on rows in that repeat's coordinates.

        The node is made at the first call and kept.
        """
        if k not in self.inner:
            at = state.public.coordinates[k]
            node = self.prepared.node_at(at, self.objectives, repeat_seed(self.seed, k))
            self.inner[k] = node, np.linalg.inv(at.W / at.q)
        return self.inner[k][0]


@dataclass(frozen=True, eq=False)
class PreparedWhitened(PreparedADMM):
    """One run: the moments of the rows, then the paper's rounds on rows in whitened coordinates."""

    moments: PreparedSums = field(kw_only=True)
    resumable = False

    @classmethod
    def of(cls, prepared: PreparedADMM, mu: float, whole: Network | None = None) -> PreparedWhitened:
        """The run `prepared`, preceded by rounds that release moments. The moments together cost mu-GDP.

        whole : the network of all sites, if `prepared` describes only some of them. The moments are sums over
            the rows of all sites.
        """
        network = prepared.network
        if network.total < 2:
            raise ParameterError(f"`whiten` must be None for a network of one site; got {mu:g}.")
        moments = PreparedSums(network, moments_of_rows(whole or network, mu))
        return cls(network, prepared.tables, prepared.tol, prepared.method, prepared.begin, moments=moments)

    @property
    def rounds(self) -> int:
        return self.moments.rounds + self.tables.rounds

    def on_rows(self) -> PreparedADMM:
        """The prepared run of the paper's rounds alone."""
        return PreparedADMM(self.network, self.tables, self.tol, self.method, self.begin, self.refresh)

    def node_at(self, at: Coordinates, objectives: Sequence[LocalObjective], seed: int | None) -> Node:
        """A node of the paper's method on rows in these coordinates."""
        rows = [whitened_objective(one, at) for one in objectives]
        (node,) = self.on_rows().nodes(rows, [range(len(rows))], seed=seed, repeats=1)
        return node

    def hears(self, t: int) -> Audience:
        return "everybody" if t <= self.moments.rounds else "neighbours"

    def nodes(  # type: ignore[override]
        self, objectives: Sequence[Any], cuts: Sequence[range], *, seed: int | None, repeats: int
    ) -> list[WhitenedNode]:
        sums = self.moments.nodes(objectives, cuts, seed=seed, repeats=repeats)
        return [
            WhitenedNode(self.part(own), objectives[own.start : own.stop], node, seed)
            for own, node in zip(cuts, sums, strict=True)
        ]

    def at_site(self, rows: Any, samples: Sequence[int], links: Links, seed: int | None) -> WhitenedSite:
        from .whitened_site import WhitenedSite

        sums = self.moments.at_site(rows, samples, links, seed)
        seed = repeat_seed(seed, 0)
        return WhitenedSite(sums.number, self, lambda at: self.node_at(at, [rows], seed), sums, links)

    def released(self, run: RunFacts, rounds: Sequence[int]) -> tuple[RunFacts, list[Charge]]:
        """The facts and charges of a site that sent the messages of these rounds.

        A message of moments that was sent k times is charged once, with sqrt(k) times the sensitivity. A
        message of the paper's rounds that was sent k times is charged k times.
        """
        times, m = Counter(rounds), self.moments.rounds
        sums = list(run.sums)
        for k, one in enumerate(sums):
            if times[one.t] > 1:
                whole = one.sensitivity + 2 * one.stray + one.grid * math.sqrt(one.length)
                sums[k] = replace(one, sensitivity=whole * math.sqrt(times[one.t]))
        moments = [next(self.charges(t).each()) for t in range(1, m + 1) if times[t]]
        later = self._renumbered([t for t in rounds if t > m], after=m)
        return replace(run, rounds=m + max(1, len(later)), sums=tuple(sums)), moments + later

    def warm_up(self, rows: Any, seed: int | None) -> None:
        self.moments.warm_up(rows, seed)
        self.on_rows().warm_up(rows, seed)

    def part(self, own: range) -> PreparedWhitened:
        network, tables = self.network.part(own), self.tables.part(own)
        return replace(self, network=network, tables=tables, moments=self.moments.part(own))

    def charges(self, t: int) -> RoundCharges:
        if t <= self.moments.rounds:
            return self.moments.charges(t)
        return super().charges(t - self.moments.rounds)._replace(t=t)

    def run_facts(
        self, *, simulated: bool, where: str = "", outputs: int = 1, marks: tuple[str, ...] = ()
    ) -> RunFacts:
        tables, persons = self.moments.tables, self.network.persons
        return replace(
            super().run_facts(simulated=simulated, where=where, outputs=outputs, marks=marks),
            rounds=self.rounds,
            sums=tables.sums,
            records=tables.units if persons is None else None,
            largest=tables.largest,
        )

    def coordinates(self, node: Any, state: Any) -> Array | None:
        found: Array = node.coordinates(state)
        return found


def repeat_seed(seed: int | None, k: int) -> int | None:
    """The seed for the paper's rounds of repeat k. No other round of the simulation uses the same seed."""
    if seed is None:
        return None
    return int.from_bytes(hashlib.sha256(f"whitened {seed} {k}".encode()).digest()[:6], "big")
