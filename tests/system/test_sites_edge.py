"""A neighbour that drives the model to the bound of the range is noticed, and said once."""

import json

from support.siteprocess import Network
from support.sitework import PATH_OF_3, network
from taciturn.cli.app import run

WORDS = "site-1 sends values at the edge of the job's range of +-64 since round 1:"


def test_a_neighbour_at_the_edge_is_named_in_the_log_once_and_in_the_status(tmp_path, capsys):
    paths = network(tmp_path, PATH_OF_3, job={"clip": 64.0})
    running = Network(paths, {1: {"edge": 64.0}})
    running.finish()
    for i in (0, 2):
        assert running.running[i].text().count(WORDS) == 1
        assert run(["site", "status", str(paths[i])]) == 0
        assert "sends values at the edge of the range" in capsys.readouterr().out
        assert run(["site", "status", str(paths[i]), "--json"]) == 0
        assert [entry["at_edge"] for entry in json.loads(capsys.readouterr().out)["neighbours"]] == [True]
