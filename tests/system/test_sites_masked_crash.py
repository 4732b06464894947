"""Masked sites that are killed, rolled back or copied: one message per site and round, ever."""

from support.sitefaults import POINTS
from support.sitemasked import check_masked_end, masked_network
from support.siteprocess import Network, run_all
from support.sitework import PATH_OF_3


def test_every_site_killed_at_a_point(tmp_path):
    """Before and after the charge, and after the send, in the first round, in a middle one, in the last."""
    for point in POINTS[:3]:
        paths = masked_network(tmp_path / point.replace(" ", "-"), PATH_OF_3)
        done = run_all(paths, {i: {"point": point, "t": t} for i, t in enumerate((1, 3, 6))})
        assert done.restarts == 3
        check_masked_end(paths)


def test_twenty_random_kills_on_a_ring_of_five(tmp_path):
    paths = masked_network(tmp_path, job={"rounds": 30})
    last = {"hold": 30}
    slowly = {i: {"slow": 0.1} | last for i in range(5)}
    Network(paths, slowly, again=last).finish_despite_kills(20, pause=0.3)
    check_masked_end(paths)


def test_without_a_seed_a_stored_message_is_the_only_one(tmp_path):
    """Real noise and real masks cannot be drawn again; two frames of one round would have ended the run."""
    paths = masked_network(tmp_path, PATH_OF_3, job={"seed": None})
    faults = {0: {"point": "after the charge", "t": 6}, 1: {"point": "after the send", "t": 6}}
    assert run_all(paths, faults).restarts == 2
    check_masked_end(paths)
