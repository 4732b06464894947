"""A link that is cut and healed costs time and nothing else."""

import time

import pytest

from support.linkcut import Cable, Proxy, cable, until, why_no_namespaces
from support.siteend import check_end, rounds_of
from support.sitemasked import check_masked_end, masked_network
from support.siteprocess import Network
from support.sitework import network, shards
from taciturn.sites.files.site import load_site

NO_NAMESPACES = why_no_namespaces()
LEASE = 2000  # ms, of these sites: less than the real one, for which the test would wait


def by_proxy(tmp_path, make):
    """Two sites; the second calls the first through a proxy."""
    paths = make(tmp_path, [(0, 1)], job={"rounds": 30})
    first = load_site(paths[0])
    proxy = Proxy(int(first.listens().rsplit(":", 1)[1]))
    with paths[1].open("a") as file:
        file.write(f'endpoints = {{ site-0 = "tls/127.0.0.1:{proxy.port}" }}\n')
    return paths, first, proxy


@pytest.mark.parametrize(("hang_up", "masked"), [(False, False), (True, False), (True, True)])
def test_a_link_through_a_proxy_is_cut_and_healed(tmp_path, hang_up, masked):
    paths, first, proxy = by_proxy(tmp_path, masked_network if masked else network)
    running = Network(paths, {0: {"holds": (5, 15)}})
    try:
        for mark in (5, 15):
            until((first.folder / "held").exists)
            proxy.cut()
            if hang_up:
                proxy.hang_up()
            (first.folder / f"go-{mark}").touch()
            until(lambda mark=mark: rounds_of(first) >= mark)
            time.sleep(0.8)
            assert rounds_of(first) <= mark + 1  # the other's frame may have come before the cut
            proxy.heal()
        running.finish()
    finally:
        proxy.close()
        running.stop()
    (check_masked_end if masked else check_end)(paths)


@pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))
def test_a_cable_between_namespaces_is_pulled_out_for_longer_than_the_lease(tmp_path):
    with cable() as link:
        paths = network(tmp_path, [(0, 1)], job={"rounds": 30}, data=shards(2), hosts=Cable.HOSTS)
        first = load_site(paths[0])
        own = [{"netns": name, "lease": LEASE} for name in link.names]
        running = Network(paths, {0: own[0] | {"hold": 10}, 1: own[1]})
        try:
            until((first.folder / "held").exists)
            link.cut()
            (first.folder / "go").touch()
            time.sleep(LEASE / 1000 + 1.0)
            assert rounds_of(first) <= 11
            link.heal()
            running.finish()
        finally:
            running.stop()
    check_end(paths)
