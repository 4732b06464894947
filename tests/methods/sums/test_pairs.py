"""The pair graph: honest sites stay connected whichever other sites collude."""

import itertools

import networkx as nx
import pytest

from taciturn.core.errors import ParameterError
from taciturn.methods.sums.pairs import PairGraph

SIZES = [(n, k) for n in (2, 3, 4, 5, 6, 7, 9) for k in range(1, n)]


@pytest.mark.parametrize(("sites", "connectivity"), SIZES)
@pytest.mark.parametrize("colluding", range(4))
def test_honest_sites_are_counted_at_their_worst(sites, connectivity, colluding):
    pairs = PairGraph(sites, connectivity)
    if colluding >= sites:
        return
    worst = sites
    for gone in itertools.combinations(range(sites), colluding):
        left = pairs.graph.copy()
        left.remove_nodes_from(gone)
        worst = min(worst, min(len(component) for component in nx.connected_components(left)))
    assert pairs.honest(colluding) <= worst
    if colluding < connectivity:
        assert pairs.honest(colluding) == worst == sites - colluding


@pytest.mark.parametrize(("sites", "colluding"), [(129, 1), (150, 2), (151, 2)])
def test_hundreds_of_sites_share_few_masks(sites, colluding):
    pairs = PairGraph.against(colluding, sites)
    assert nx.node_connectivity(pairs.graph) == colluding + 1
    assert pairs.graph.number_of_edges() == -(-sites * (colluding + 1) // 2)
    assert pairs.honest(colluding) == sites - colluding
    assert pairs.honest(colluding + 1) == 1


def test_up_to_128_sites_every_pair_shares_a_mask():
    pairs = PairGraph.against(1, 128)
    assert pairs.partners(5) == tuple(i for i in range(128) if i != 5)
    assert [pairs.honest(c) for c in (0, 1, 42, 126, 127)] == [128, 127, 86, 2, 1]


def test_single_site_has_no_masks():
    assert PairGraph.against(0, 1).partners(0) == ()
    assert PairGraph.against(0, 1).honest(0) == 1


@pytest.mark.parametrize(("colluding", "sites"), [(5, 5), (1, 1), (-1, 5)])
def test_invalid_number_of_colluders_is_refused(colluding, sites):
    with pytest.raises(ParameterError, match="`colluding`"):
        PairGraph.against(colluding, sites)


@pytest.mark.parametrize("connectivity", [0, 5])
def test_impossible_connectivity_is_refused(connectivity):
    with pytest.raises(ParameterError, match="`connectivity` must be from 1 to 4"):
        PairGraph(5, connectivity)
