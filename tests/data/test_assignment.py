"""Assignment of rows to sites, by label or at random."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError
from taciturn.data.tables.dealing import assign_sites


def test_rows_are_dealt_evenly_and_replayed_by_a_seed_only():
    first, again = (assign_sites(103, None, 5, "ring", seed=3) for _ in range(2))
    secret = assign_sites(103, None, 5, "ring", seed=None)
    assert first.samples == secret.samples == [21, 21, 21, 20, 20]
    assert np.array_equal(first.site, again.site) and not np.array_equal(first.site, secret.site)


def test_labels_of_any_kind_name_the_sites():
    assert assign_sites(4, ["b", "a", "b", "c"], 5, "complete", None).names == ("a", "b", "c")
    numbers = assign_sites(4, [7, 7, 2, 2], 5, "ring", None)
    assert numbers.names == ("site 2", "site 7") and numbers.site.tolist() == [1, 1, 0, 0]
    assert numbers.graph.edges == ((0, 1),), "two sites have one link, whatever the family"


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a"] * 3, "for each of 4 rows"),
        ([1.0, 2.0, np.nan, 1.0], "some entries are missing"),
        (np.array(["a", None, "b", "a"], dtype=object), "values of one type"),
    ],
)
def test_invalid_site_labels_are_refused(labels, words):
    with pytest.raises(DataError, match=words):
        assign_sites(4, labels, 5, "complete", None)


def test_the_graph_must_fit_the_sites():
    assert assign_sites(9, None, 3, tt.Graph.star(3), 0).graph == tt.Graph.star(3)
    with pytest.raises(ParameterError, match="must have 3 nodes, one per site; got 4"):
        assign_sites(9, None, 3, tt.Graph.ring(4), 0)
    with pytest.raises(ParameterError, match="`graph` must be one of"):
        assign_sites(9, None, 3, "mesh", 0)
    with pytest.raises(DataError, match="got 5 with n_samples = 3"):
        assign_sites(3, None, 5, "complete", 0)
