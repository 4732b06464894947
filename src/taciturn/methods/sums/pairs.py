"""P: which sites share a mask. Whatever is connected in P without the colluders protects each other.

Take the colluders out of P. The honest sites in the component of site i hide behind each other: of their
messages nothing but the sum can be read, and the noises of all of them are in that sum. So their number is
what counts, at worst over who colludes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from ...core import checks
from ...core.errors import ParameterError

_COMPLETE = 128  # up to this number of sites, every pair shares a mask


@dataclass(frozen=True)
class PairGraph:
    """The pairs that share masks: a graph that stays connected without any `connectivity` - 1 sites.

    connectivity = sites - 1 is the complete graph, one less a Harary graph, which has the fewest pairs.

    >>> PairGraph(5, 4).partners(0), PairGraph(5, 2).partners(0)
    ((1, 2, 3, 4), (1, 4))
    """

    sites: int
    connectivity: int

    def __post_init__(self) -> None:
        sites = checks.whole("sites", self.sites, least=1)
        if not min(1, sites - 1) <= checks.whole("connectivity", self.connectivity) < sites:
            raise ParameterError(
                f"`connectivity` must be from 1 to {sites - 1}, one less than the sites; "
                f"got {self.connectivity}."
            )

    @classmethod
    def against(cls, colluding: int, sites: int) -> PairGraph:
        """The pairs of a run in which up to `colluding` sites may work together: all, or few of very many."""
        colluding = checks.among_sites("colluding", colluding, checks.whole("sites", sites, least=1))
        return cls(sites, sites - 1 if sites <= _COMPLETE else min(colluding + 1, sites - 1))

    @cached_property
    def graph(self) -> nx.Graph[int]:
        """The pairs as edges between 0 .. sites - 1."""
        n, k = self.sites, self.connectivity
        pairs: nx.Graph[int] = nx.complete_graph(n) if k == n - 1 else nx.hkn_harary_graph(k, n)
        return pairs

    def partners(self, site: int) -> tuple[int, ...]:
        """The sites that share a mask with this site, in increasing order."""
        return tuple(sorted(self.graph.neighbors(site)))

    def honest(self, colluding: int) -> int:
        """|K|: the smallest number of noises that cover a record, if any `colluding` other sites collude.

        Fewer than `connectivity` colluders leave all the others connected. As many may surround a site, and
        then nothing but its own noise is counted.
        """
        colluding = checks.among_sites("colluding", colluding, self.sites)
        return self.sites - colluding if colluding < max(self.connectivity, 1) else 1
