"""After kills, cut links, full disks and clock jumps, the run ends with the bytes of an undisturbed one."""

import os
import subprocess

import pytest

from support.linkcut import until
from support.siteend import charged_rounds, check_end
from support.sitefaults import POINTS
from support.sitemasked import check_masked_end, masked_network
from support.siteprocess import Network, SiteProcess, run_all
from support.sitering import begun
from support.sitework import PATH_OF_3, RING_OF_3, network, shards
from taciturn.sites.files.site import load_site

MAKE = {"penalty": (network, check_end), "masked": (masked_network, check_masked_end)}
KINDS = pytest.mark.parametrize("kind", MAKE)


@pytest.mark.parametrize(("point", "kind"), list(zip(POINTS, ["masked", "penalty"] * 2, strict=True)))
def test_every_site_killed_at_a_point(tmp_path, point, kind):
    """Each site dies once: in the first round, in the middle and in the last.

    The simulation kills sites of both kinds at every point.
    """
    make, check = MAKE[kind]
    data = shards(3, rows=100, d=64) if (point, kind) == ("in a solve", "penalty") else None
    paths = make(tmp_path, RING_OF_3, data=data)
    last = load_site(paths[0]).job.rounds
    faults = {i: {"point": point, "t": t} for i, t in enumerate((1, 3, last))}
    assert run_all(paths, faults).restarts == 3
    check(paths)


@pytest.mark.parametrize("point", ["after the last round", "after the results"])
def test_every_site_killed_at_the_end(tmp_path, point):
    paths = network(tmp_path, PATH_OF_3)
    assert run_all(paths, {i: {"point": point} for i in range(3)}).restarts == 3
    check_end(paths)


@KINDS
def test_twenty_random_kills_in_one_run(tmp_path, kind):
    make, check = MAKE[kind]
    paths = make(tmp_path, RING_OF_3, job={"rounds": 60})
    last = {"hold": 60}
    slowly = {i: {"slow": 0.05} | last for i in range(3)}
    Network(paths, slowly, again=last).finish_despite_kills(20, pause=0.15)
    check(paths)


@KINDS
def test_a_full_disk_releases_nothing_and_loses_nothing(tmp_path, kind):
    make, check = MAKE[kind]
    paths = make(tmp_path, RING_OF_3)
    others = [SiteProcess(paths[1]), SiteProcess(paths[2])]
    struck = SiteProcess(paths[0], {"full": True, "t": 3})
    assert struck.wait() == 1
    assert "nothing may be released" in struck.text()
    assert charged_rounds(load_site(paths[0])) == [1, 2]
    again = SiteProcess(paths[0])
    assert [entry.wait() for entry in (again, *others)] == [0, 0, 0]
    check(paths)


def test_a_disk_that_is_really_full(tmp_path):
    """The same on a small mounted disk, where mounting is possible."""
    paths = network(tmp_path)
    site = load_site(paths[0])
    site.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(site.state)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        others = [SiteProcess(paths[1]), SiteProcess(paths[2])]
        struck = SiteProcess(paths[0], {"fill": True, "t": 3})
        assert struck.wait() == 1
        assert "disk is full; without it nothing may be released" in struck.text()
        assert charged_rounds(site) == [1, 2]
        (site.state / "filler").unlink()
        again = SiteProcess(paths[0])
        assert [entry.wait() for entry in (again, *others)] == [0, 0, 0]
        check_end(paths)
    finally:
        subprocess.run(["umount", str(site.state)], check=True)


@pytest.mark.parametrize("jump", [-40_000.0, 40_000.0])
def test_a_clock_that_jumps(tmp_path, jump):
    paths = network(tmp_path)
    run_all(paths, {0: {"jump": jump, "t": 2}, 1: {"jump": -jump, "t": 3}})
    check_end(paths)


def test_a_finished_site_that_is_started_again_ends_at_once(tmp_path):
    paths = network(tmp_path, [(0, 1)], site={"patience": 5.0})
    run_all(paths)
    again = SiteProcess(paths[0])
    assert again.wait() == 0
    check_end(paths)


def test_one_process_per_site(tmp_path):
    paths = network(tmp_path, RING_OF_3)
    first = SiteProcess(paths[0])
    until(lambda: begun(load_site(paths[0])))
    second = SiteProcess(paths[0])
    assert second.wait() == 1
    assert "in use by another process" in second.text()
    first.kill()
