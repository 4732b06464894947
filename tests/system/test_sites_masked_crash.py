"""Masked sites that are killed, rolled back or copied: one message per site and round, ever."""

import shutil

from support.linkcut import until
from support.siteend import charged_rounds, rounds_of
from support.sitefaults import POINTS
from support.sitemasked import check_masked_end, masked_network
from support.siteprocess import Network, SiteProcess, run_all
from support.sitework import PATH_OF_3
from taciturn.errors import StateLost
from taciturn.sites.files.site import load_site


def test_every_site_killed_at_a_point(tmp_path):
    """Before and after the charge, and after the send, in the first round, in a middle one, in the last."""
    for point in POINTS[:3]:
        paths = masked_network(tmp_path / point.replace(" ", "-"), PATH_OF_3)
        done = run_all(paths, {i: {"point": point, "t": t} for i, t in enumerate((1, 3, 6))})
        assert done.restarts == 3
        check_masked_end(paths)


def test_twenty_random_kills_on_a_ring_of_five(tmp_path):
    paths = masked_network(tmp_path, job={"rounds": 30})
    Network(paths, {i: {"slow": 0.1} for i in range(5)}).finish_despite_kills(20, pause=0.3)
    check_masked_end(paths)


def test_without_a_seed_a_stored_message_is_the_only_one(tmp_path):
    """Real noise and real masks cannot be drawn again; two frames of one round would have ended the run."""
    paths = masked_network(tmp_path, PATH_OF_3, job={"seed": None})
    faults = {0: {"point": "after the charge", "t": 6}, 1: {"point": "after the send", "t": 6}}
    assert run_all(paths, faults).restarts == 2
    check_masked_end(paths)


def test_a_folder_that_was_put_back_sends_no_second_message(tmp_path):
    """The old folder still has the key of round 3, whose message has left: it makes no other."""
    paths = masked_network(tmp_path, PATH_OF_3, job={"seed": None})
    sites = [load_site(path) for path in paths]
    running = [SiteProcess(path) for path in paths[1:]]
    try:
        assert SiteProcess(paths[0], {"point": "before the charge", "t": 3}).wait() < 0
        shutil.copytree(sites[0].state, tmp_path / "backup")
        running.append(SiteProcess(paths[0], {"hold": 4}))
        until(lambda: all(rounds_of(site) >= 4 for site in sites[1:]))
        running.pop().kill()
        shutil.rmtree(sites[0].state)
        shutil.copytree(tmp_path / "backup", sites[0].state)
        rolled_back = SiteProcess(paths[0])
        assert rolled_back.wait() == StateLost.exit_code, rolled_back.text()
        assert rounds_of(sites[0]) == 2 and charged_rounds(sites[0]) == [1, 2]
    finally:
        for entry in running:
            entry.kill()
