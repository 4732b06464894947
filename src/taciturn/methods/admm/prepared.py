"""A run of ADMM or of one of its private variants, with all its numbers fixed before the first round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ...core.types import Array
from ...privacy.facts import RoundCharges
from ...privacy.noise import GaussianNoise, draw
from ...rng import streams_of
from ..base import Audience, Links, Network, SitesMethod, site_numbers
from .tables import Tables, loss_facts

if TYPE_CHECKING:
    from .attempt import ADMMSite
    from .node import Node


@dataclass(frozen=True, eq=False)
class PreparedADMM(SitesMethod):
    """One run of ADMM or of one of its private variants."""

    network: Network
    tables: Tables  # one row for each of `network.sites`
    tol: float  # the tolerance of the solver
    method: str  # the method and its settings, as text
    begin: str = "zeros"  # the start vectors: "zeros" or "random"
    refresh: int = 10  # the solver gets a new preconditioner every `refresh` rounds
    resumable = True
    solves = True

    @property
    def private(self) -> bool:  # type: ignore[override]
        return self.tables.private

    @property
    def rounds(self) -> int:
        return self.tables.rounds

    def hears(self, t: int) -> Audience:
        return "neighbours"

    def first(self, sites: Sequence[int], repeats: int, seed: int | None) -> Array:
        """f(0): zeros, or standard normal random numbers. f(0) never depends on the data."""
        shape = (repeats, self.network.dimension)
        if self.begin == "zeros":
            return np.broadcast_to(0.0, (len(sites), *shape))  # takes no memory
        ones, normal = np.ones(len(sites)), GaussianNoise(1.0)
        return draw(normal, streams_of(seed), "start", 0, np.array(sites), ones, shape)

    def nodes(
        self, objectives: Sequence[Any], cuts: Sequence[range], *, seed: int | None, repeats: int
    ) -> list[Node]:
        from ...objective.solver.many import ManySites
        from .node import Node

        for objective in objectives:
            objective.hold_rows()
        solvers, streams = ManySites(objectives), streams_of(seed)
        solvers.warm_up()
        numbers, degrees = site_numbers(self.network), np.array(self.network.degrees, dtype=np.int64)
        return [
            Node(
                sites=numbers[own.start : own.stop],
                solvers=solvers.part(own.start, own.stop),
                degrees=degrees[own.start : own.stop],
                tables=self.tables.part(own),
                tol=self.tol,
                streams=streams,
                refresh=self.refresh,
            )
            for own in cuts
        ]

    def at_site(self, rows: Any, samples: Sequence[int], links: Links, seed: int | None) -> Any:
        (node,) = self.nodes([rows], [range(1)], seed=seed, repeats=1)
        return self.site_of(node, links)

    def site_of(self, node: Node, links: Links) -> ADMMSite:
        """This site, for all attempts (parts of the run with fixed members)."""
        from .attempt import ADMMSite

        clip = np.inf if self.tables.clip is None else self.tables.clip
        return ADMMSite(self.network.sites[0], node, links, clip, self.network.dimension)

    def warm_up(self, rows: Any, seed: int | None) -> None:
        """Load the code of the first round: solve a problem of the same size on made-up rows, with noise."""
        from ...objective.local import LocalObjective
        from ...objective.solver.small.sites import small_form
        from .attempt import ADMMSite  # noqa: F401  `site_of` needs this later

        form, network = small_form(rows), self.network
        if form is None:
            return  # the general solver has no compiled code to load
        samples = sum(part.rows.samples for part in rows.parts)
        X = np.zeros((samples, network.dimension))
        X[:, 0] = 0.5
        objective = LocalObjective(
            sparse.csr_array(X) if form == "sparse" else X,
            np.resize([1.0, -1.0], samples),
            loss=network.loss,
            C=1.0,
            regularization=network.regularization,
            sites=network.total,
        )
        (node,) = self.nodes([objective], [range(1)], seed=seed, repeats=1)
        node.primal(node.start(None, None))

    def part(self, own: range) -> PreparedADMM:
        return replace(self, network=self.network.part(own), tables=self.tables.part(own))

    def charges(self, t: int) -> RoundCharges:
        return self.tables.charges(t, site_numbers(self.network))

    def describe(self) -> dict[str, Any]:
        return {"tol": self.tol, "start": self.begin, "method": self.method}

    def fingerprint(self) -> Mapping[str, Any]:
        tables = self.tables
        columns = (tables.eta, tables.theta, tables.scale, tables.output_scale)
        return {
            "refresh": self.refresh,
            "tables": [None if c is None else c.tobytes().hex() for c in columns],
        }

    def schedules_of(self, row: int) -> dict[str, Any]:
        return self.tables.site(row).schedules()

    def method_facts(self, *, simulated: bool) -> dict[str, Any]:
        tables, network = self.tables, self.network
        return {
            "method": tables.method,
            "noise": "none" if tables.noise is None else tables.noise.kind,
            "loss": loss_facts(network.loss),
            "rounds": tables.rounds,
            "regularization": network.regularization * network.regularizer.strong_convexity,
            "output_noise": None if tables.output_noise is None else tables.output_noise.kind,
            "tol": self.tol,
            "grid": tables.grid,
            "clip": tables.clip,
            "integers": tables.covered and not simulated,
            "start": self.begin,
        }
