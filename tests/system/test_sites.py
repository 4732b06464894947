"""Five processes on loopback with mutual TLS do what one process does, to the last bit."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from support.siteend import check_end, in_process
from support.siteprocess import run_all
from support.sitework import network
from taciturn.data import deal_evenly
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.trust import load_trust

RING_OF_5 = tuple((i, (i + 1) % 5) for i in range(5))


@pytest.fixture(scope="module")
def trained(adult, tmp_path_factory):
    """Adult over five sites, 400 rows each: site files after the run."""
    rows = np.random.default_rng(0).permutation(len(adult))[:2000]
    shards = deal_evenly(adult.X[rows], adult.y[rows], 5, seed=0)
    paths = network(
        tmp_path_factory.mktemp("adult"),
        RING_OF_5,
        data=shards,
        job={"C": 100.0, "rounds": 8, "regularization": 10**-2.5},
        site={"noise": {"kind": "norm", "rate": 3.0}, "output_noise": {"kind": "norm", "rate": 1e6}},
    )
    run_all(paths)
    return paths


def test_the_network_agrees_with_the_in_process_engine_to_the_last_bit(trained):
    check_end(trained)


def test_every_site_holds_the_same_average(trained):
    sites = [load_site(path) for path in trained]
    history = in_process(sites)
    for site in sites:
        model = json.loads((site.state / "model.json").read_text())
        assert model["coef"] == [history[-1].mean(axis=0).tolist()]
        assert model["simulated"] is True and len(model["features"]) == 105


def test_every_site_states_what_it_cost_and_signs_it(trained):
    for path in trained:
        site = load_site(path)
        certificate = Certificate.from_json((site.state / "certificate.json").read_text())
        certificate.verify()
        assert certificate.run.simulated and certificate.rounds == 8
        trust = load_trust(site.path(site.file.keys.authority))
        facts = verify_statement(site.state / "statement.json", trust)
        assert facts["site"] == site.name and facts["epsilon"] == certificate.epsilon
        assert facts["simulated"] is True


def test_a_network_of_processes_comes_up_with_one_command(tmp_path):
    """`taciturn site up --local 2`: real processes from the command line, real noise, one model."""
    command = [sys.executable, "-m", "taciturn", "site", "up", "--local", "2", "--rounds", "6"]
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "net")],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all 2 sites have the same model" in done.stdout
    model = json.loads((tmp_path / "net" / "site-0" / "state" / "model.json").read_text())
    assert model["simulated"] is False


def test_every_site_has_a_folder_that_fits_together(trained, capsys):
    from taciturn.cli.app import run

    for path in trained[:2]:
        state = load_site(path).state
        assert run(["verify", str(state)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "ok statement.json" in said and "ok site.sqlite" in said
