"""A figure of the paper on a cluster: the same numbers, one cluster for all its curves."""

from __future__ import annotations

import numpy as np

from support.small import write_small
from taciturn.paper.reproduce import reproduce


def test_a_figure_is_the_same_on_a_cluster(joined, tmp_path):
    path = str(write_small(tmp_path))
    here = reproduce([path], tmp_path / "here", quick=True)
    there = reproduce([path], tmp_path / "there", quick=True, engine="ray")
    for one, other in zip(here.drawn[path].outcomes, there.drawn[path].outcomes, strict=True):
        assert np.array_equal(one.run.coef, other.run.coef) and np.array_equal(one.run.loss, other.run.loss)
