"""A neighbour that drives the model to the bound of the range is noticed, and said once."""

import json

from support.sitering import SIZES
from taciturn.cli.app import run

WORDS = "site-1 sends values at the edge of the job's range of +-64 since round 1:"


@SIZES
def test_a_neighbour_at_the_edge_is_named_in_the_log_once_and_in_the_status(ring_of, capsys, size):
    """A masked job has no such bound: whatever a site sends there is any number mod 2^64."""
    ring = ring_of(size, "penalty", clip=64.0, rounds=3)
    ring.start(1, edge=64.0)
    ring.start(*(i for i in range(size) if i != 1))
    assert ring.codes() == [0] * size, ring.logs()
    assert [ring.text(i).count(WORDS) for i in range(size)] == [1, 0, 1, *[0] * (size - 3)]
    for i in (0, 2):
        assert run(["site", "status", str(ring.paths[i])]) == 0
        assert "sends values at the edge of the range" in capsys.readouterr().out
        assert run(["site", "status", str(ring.paths[i]), "--json"]) == 0
        neighbours = json.loads(capsys.readouterr().out)["neighbours"]
        assert [entry["name"] for entry in neighbours if entry["at_edge"]] == ["site-1"]
