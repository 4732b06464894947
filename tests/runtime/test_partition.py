"""Shards: every site is in one, and only required vectors cross between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.runtime.shards import cut

graphs = st.one_of(
    st.integers(3, 20).map(tt.Graph.ring),
    st.integers(2, 12).map(tt.Graph.star),
    st.integers(2, 9).map(tt.Graph.complete),
    st.integers(0, 9).map(lambda seed: tt.Graph.random_regular(16, 3, seed=seed)),
)


@given(graphs, st.integers(1, 25))
def test_a_cut_holds_the_whole_network_once(graph, shards):
    parts = cut(graph, shards)
    assert len(parts) == min(shards, graph.n)
    assert [i for part in parts for i in part.own] == list(range(graph.n))
    sizes = [len(part.own) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert np.array_equal(np.concatenate([part.degrees for part in parts]), graph.degrees)
    for part in parts:
        columns = part.columns.tolist()
        assert [columns[k] for k in part.places] == list(part.own)
        for k, i in enumerate(part.own):
            row = part.rows.indices[part.rows.indptr[k] : part.rows.indptr[k + 1]]
            assert [columns[c] for c in row] == list(graph.neighbors(i)), "in the order of the local engine"


@given(graphs, st.integers(1, 25))
def test_only_required_vectors_cross_shards(graph, shards):
    parts = cut(graph, shards)
    for b, part in enumerate(parts):
        outside = {j for i in part.own for j in graph.neighbors(i)} - set(part.own)
        came = [int(part.columns[k]) for places in part.inbound.values() for k in places]
        assert sorted(came) == sorted(outside), "each once"
        for a, places in part.inbound.items():
            sent = [parts[a].own[k] for k in parts[a].outbound[b]]
            assert sent == part.columns[places].tolist()
    assert sum(len(part.inbound) for part in parts) == sum(len(part.outbound) for part in parts)


def test_a_ring_sends_two_vectors_per_shard():
    parts = cut(tt.Graph.ring(1000), 4)
    assert [sum(map(len, part.outbound.values())) for part in parts] == [2, 2, 2, 2]


def test_at_least_one_shard():
    with pytest.raises(ParameterError, match="`shards` must be at least 1; got 0"):
        cut(tt.Graph.ring(5), 0)
