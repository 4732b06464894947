"""Jobs on a cluster: each runs once, on any node, in any order."""

from __future__ import annotations

from functools import partial

import pytest

from support.raywork import cores, die_at, square
from taciturn.core.errors import DataError, WorkerLost
from taciturn.paper.sweeps.grid import run_each
from taciturn.runtime.ray.tasks import scatter


def test_every_job_is_done_once(joined):
    assert dict(scatter(square, [1, 2, 3])) == {0: 1, 1: 4, 2: 9}
    assert list(scatter(square, [])) == []
    assert dict(run_each(cores, [0], engine="ray", address=joined)) == {0: 1}


def test_a_lost_worker_loses_its_job_and_no_other(joined, tmp_path):
    found = {}
    with pytest.raises(WorkerLost, match="1 of 3 jobs lost their worker"):
        for place, result in scatter(partial(die_at, 2, str(tmp_path)), [1, 2, 3]):
            found[place] = result
    assert found == {0: 1, 2: 9}
    assert len(list(tmp_path.iterdir())) == 1, "a lost job is not run again"


def test_taciturn_error_is_raised_unchanged(joined):
    with pytest.raises(DataError, match=r"^three is odd$"):
        list(scatter(partial(square, forbidden=3), [3]))
