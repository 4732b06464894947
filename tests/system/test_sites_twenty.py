"""Twenty sites on a ring: what must not happen to five does not happen to them."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from support.linkcut import until
from support.siteend import charged_rounds, rounds_of
from support.sitemasked import masked_network
from support.siteprocess import Network, SiteProcess
from support.sitework import network
from taciturn.errors import ExitCode
from taciturn.sites.files.site import load_site

RING_OF_20 = [(i, (i + 1) % 20) for i in range(20)]
REAL = {"job": {"seed": None, "rounds": 3}, "site": {"output_noise": {"kind": "gaussian", "std": 1e-3}}}


LONG = pytest.mark.skipif("TACITURN_LONG" not in os.environ, reason="takes long; set TACITURN_LONG to run it")


@pytest.mark.parametrize("make", [network, pytest.param(masked_network, marks=LONG)])
def test_a_site_that_lies_ends_the_run_for_all_twenty_with_a_proof(tmp_path, make):
    """Site 10 is ten links away from the one that signs two frames of a round."""
    paths = make(tmp_path, RING_OF_20, job={"rounds": 3})
    running = Network(paths, {0: {"lie": "twice", "t": 2}})
    codes = [entry.wait(180.0) for entry in running.running]
    assert codes == [ExitCode.CONTRADICTION] * 20, running.logs()
    for path in paths:
        (proof,) = load_site(path).state.glob("proof-*.json")
        assert json.loads(proof.read_text())["site"] == "site-0"
        assert not (proof.parent / "model.json").exists()


def begun(site):
    """Whether a site has made its tables."""
    if not site.database.exists():
        return False
    with closing(sqlite3.connect(f"file:{site.database}?mode=ro", uri=True)) as db:
        return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchone() is not None


def test_nobody_spends_before_the_twentieth_is_there_and_a_lost_state_releases_nothing(tmp_path):
    paths = network(tmp_path, RING_OF_20, **REAL)
    sites = [load_site(path) for path in paths]
    running = [SiteProcess(path) for path in paths[:-1]]
    last = None
    try:
        until(lambda: all(begun(site) for site in sites[:-1]), seconds=120.0)
        assert [charged_rounds(site) for site in sites[:-1]] == [[]] * 19
        last = SiteProcess(paths[-1], {"hold": 2})
        until(lambda: rounds_of(sites[0]) == 2, seconds=120.0)
        running[0].kill()
        shutil.rmtree(sites[0].state)
        robbed = SiteProcess(paths[0])
        assert robbed.wait(120.0) == ExitCode.STATE_LOST, robbed.text()
        assert charged_rounds(sites[0]) == []
    finally:
        for entry in (*running, *([last] if last else [])):
            if entry.process.exitcode is None:
                entry.kill()
