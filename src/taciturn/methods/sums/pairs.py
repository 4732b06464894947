"""The graph of the pairs of sites that share a mask, a random vector that hides the messages of both.

A colluder is a site that works with the attacker; all others are honest. Remove the colluders from the graph,
and consider the connected component of an honest site. The attacker can learn only the sum of the messages of
this component, which contains the noise of all its sites. So the protection of a record depends on the size
of the component, for the worst choice of colluders.
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
    """The pairs that share masks: a graph that stays connected without any `connectivity` - 1 of its sites.

    connectivity = sites - 1 gives the complete graph. A smaller connectivity gives a Harary graph, which has
    the fewest pairs for this connectivity.

    >>> PairGraph(5, 4).partners(0), PairGraph(5, 2).partners(0)
    ((1, 2, 3, 4), (1, 4))
    """

    sites: int
    connectivity: int

    def __post_init__(self) -> None:
        sites = checks.whole("sites", self.sites, least=1)
        if not min(1, sites - 1) <= checks.whole("connectivity", self.connectivity) < sites:
            raise ParameterError(
                f"`connectivity` must be from {min(1, sites - 1)} to {sites - 1}, the number of other sites; "
                f"got {self.connectivity}."
            )

    @classmethod
    def against(cls, colluding: int, sites: int) -> PairGraph:
        """The pairs if up to `colluding` sites may collude: all pairs for up to 128 sites, else fewer."""
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
        """The number of sites whose noise protects a record, for the worst choice of `colluding` colluders.

        The site of the record is not among the colluders. Fewer than `connectivity` colluders leave all
        honest sites connected. With `connectivity` or more colluders, all partners of a site may collude, and
        then only the site's own noise protects its records.
        """
        colluding = checks.among_sites("colluding", colluding, self.sites)
        return self.sites - colluding if colluding < max(self.connectivity, 1) else 1
