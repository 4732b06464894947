"""Killed, cut off, out of disk, out of time: the run ends with the bytes of an undisturbed one."""

import os
import sqlite3
import subprocess
from contextlib import closing

import numpy as np
import pytest

from support.linkcut import until
from support.siteend import charged_rounds, check_end, kept_vector, released_vectors
from support.sitefaults import POINTS
from support.siteprocess import Network, SiteProcess, run_all
from support.sitering import begun
from support.sitework import PATH_OF_3, RING_OF_3, network, shards
from taciturn.errors import ExitCode
from taciturn.sites.files.site import load_site


@pytest.mark.parametrize("point", POINTS)
def test_every_site_killed_at_a_point(tmp_path, point):
    """Each site dies once: in the first round, in the middle and in the last."""
    data = shards(3, rows=64, d=64) if point == "in a solve" else None  # smaller ones are solved in one go
    paths = network(tmp_path, data=data)
    done = run_all(
        paths, {0: {"point": point, "t": 1}, 1: {"point": point, "t": 3}, 2: {"point": point, "t": 5}}
    )
    assert done.restarts == 3
    check_end(paths)


@pytest.mark.parametrize("point", ["after the last round", "after the results"])
def test_every_site_killed_at_the_end(tmp_path, point):
    paths = network(tmp_path, PATH_OF_3)
    assert run_all(paths, {i: {"point": point} for i in range(3)}).restarts == 3
    check_end(paths)


def test_twenty_random_kills_in_one_run(tmp_path):
    paths = network(tmp_path, job={"rounds": 60})
    last = {"hold": 60}
    slowly = {i: {"slow": 0.05} | last for i in range(3)}
    Network(paths, slowly, again=last).finish_despite_kills(20, pause=0.15)
    check_end(paths)


def test_without_a_seed_a_charged_round_keeps_its_bytes(tmp_path):
    """Real noise cannot be drawn again: what the neighbours heard is what the outbox holds."""
    paths = network(tmp_path, job={"seed": None}, site={"output_noise": {"kind": "gaussian", "std": 1e-3}})
    running = Network(
        paths, {0: {"point": "after the charge", "t": 5}, 1: {"point": "after the send", "t": 5}}
    )
    running.finish()
    assert running.restarts == 2
    sites = [load_site(path) for path in paths]
    for site in sites:
        assert charged_rounds(site) == [1, 2, 3, 4, 5]
        went_on_with, released = kept_vector(site), released_vectors(site)[-1]
        assert went_on_with.tobytes() == released.tobytes()
        for neighbour in site.neighbours:
            j = site.job.names.index(neighbour)
            with closing(sqlite3.connect(site.database)) as db:
                (heard,) = db.execute("SELECT frame FROM heard WHERE t = 5 AND sender = ?", (j,)).fetchone()
            with closing(sqlite3.connect(sites[j].database)) as db:
                (sent,) = db.execute("SELECT frame FROM outbox WHERE t = 5").fetchone()
            assert heard == sent
    assert not np.array_equal(released_vectors(sites[0]), released_vectors(sites[1]))
    assert "a second, different" not in running.logs()
    assert len({(site.state / "model.json").read_bytes() for site in sites}) == 1


def test_a_full_disk_releases_nothing_and_loses_nothing(tmp_path):
    paths = network(tmp_path)
    others = [SiteProcess(paths[1]), SiteProcess(paths[2])]
    struck = SiteProcess(paths[0], {"full": True, "t": 3})
    assert struck.wait() == 1
    assert "nothing may be released" in struck.text()
    site = load_site(paths[0])
    assert charged_rounds(site) == [1, 2]
    with closing(sqlite3.connect(site.database)) as db:
        assert db.execute("SELECT max(t) FROM outbox").fetchone() == (2,)
    again = SiteProcess(paths[0])
    assert [entry.wait() for entry in (again, *others)] == [0, 0, 0]
    check_end(paths)


def test_a_disk_that_is_really_full(tmp_path):
    """The same on a small disk of its own, where one can be mounted."""
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
        assert "disk is full; nothing may be released" in struck.text()
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


def test_a_silent_neighbour_is_named_and_the_run_resumes(tmp_path):
    paths = network(tmp_path, PATH_OF_3)
    other, waiting = SiteProcess(paths[0]), SiteProcess(paths[1], {"silent": "site-2"})
    assert waiting.wait() == ExitCode.NEIGHBOUR
    other.kill()
    assert "site-2 silent since" in waiting.text() and "run the same command to go on" in waiting.text()
    assert "waiting for site-2 since" in waiting.text()
    assert charged_rounds(load_site(paths[1])) == []  # nothing is spent before everybody is there
    run_all(paths)
    check_end(paths)


def test_a_finished_site_that_is_started_again_ends_at_once(tmp_path):
    paths = network(tmp_path, [(0, 1)])
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
    assert "held by another process" in second.text()
    first.kill()
