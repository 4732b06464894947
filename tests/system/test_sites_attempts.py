"""A masked job with a quorum on real sites: rule R over Zenoh, and sites that vanish or are killed."""

import json
import shutil
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

from support.sitemasked import masked_network, model_in_process
from support.siteprocess import SiteProcess
from taciturn.jobs.job_reports import write_site_report
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.watch.status import read_status
from taciturn.sites.wire.trust import load_trust

pytestmark = pytest.mark.process
FEW_SECONDS = 20.0  # for 36 rounds and the end; about 6 on a machine that does nothing else
COMPLETE = tuple((i, j) for i in range(5) for j in range(i))


def verified(site):
    """The statement of a site, checked with its files; and its certificate."""
    trust = load_trust(site.path(site.file.keys.authority))
    facts = verify_statement(site.state / "statement.json", trust)
    certificate = Certificate.from_json((site.state / "certificate.json").read_text())
    certificate.verify()
    return facts, certificate


def test_five_sites_with_a_quorum_agree_with_the_in_process_engine(tmp_path):
    paths = masked_network(tmp_path, COMPLETE, job={"quorum": 4})
    running = [SiteProcess(path) for path in paths]
    assert [process.wait() for process in running] == [0] * 5
    sites = [load_site(path) for path in paths]
    models = {(site.state / "model.json").read_bytes() for site in sites}
    assert len(models) == 1
    coef = json.loads(models.pop())["coef"][0]
    assert np.array(coef).tobytes() == model_in_process(sites).tobytes()
    for site in sites:
        facts, certificate = verified(site)
        assert not certificate.run.attempts
        assert facts["epsilon"] <= 1.0
        seen = read_status(site)
        assert (seen.completed, seen.released, seen.finished) == (6, 6, True)
        assert seen.epsilon == facts["epsilon"]
        assert write_site_report(site).exists()


def test_four_sites_finish_without_an_operator_after_the_fifth_vanishes(tmp_path):
    """On a complete graph, within `patience` and a few seconds, with a correct certificate."""
    job = {"quorum": 4, "rounds": 40, "colluding": 1}
    paths = masked_network(tmp_path, COMPLETE, job=job, site={"patience": 4.0})
    running = [SiteProcess(path, {"slow": 0.05}) for path in paths]
    _wait_for(paths[0], 3)
    running[4].kill()
    gone, before = time.monotonic(), _rounds(paths[0])
    assert before < 30, "it vanished too late to be missed"
    assert [process.wait() for process in running[:4]] == [0] * 4, running[0].text()
    assert time.monotonic() - gone < 4.0 + FEW_SECONDS, running[0].text()
    sites = [load_site(path) for path in paths[:4]]
    assert len({(site.state / "model.json").read_bytes() for site in sites}) == 1
    for site in sites:
        facts, certificate = verified(site)
        assert facts["epsilon"] <= 1.0
        assert certificate.run.attempts[-1].members == (0, 1, 2, 3)
        assert certificate.run.attempts[0].members == (0, 1, 2, 3, 4)
        released = json.loads((site.state / "model.json").read_text())["run"]["sites"]
        assert released == ["site-0", "site-1", "site-2", "site-3"]
        assert read_status(site).finished


def test_a_killed_site_goes_on_with_the_keys_in_volatile_memory(tmp_path):
    paths = masked_network(tmp_path, COMPLETE, job={"quorum": 4, "rounds": 200}, site={"patience": 60.0})
    running = [SiteProcess(path) for path in paths]
    _wait_for(paths[0], 3)
    running[2].kill()
    running[2] = SiteProcess(paths[2])
    assert [process.wait() for process in running] == [0] * 5
    sites = [load_site(path) for path in paths]
    coef = json.loads((sites[2].state / "model.json").read_bytes())["coef"][0]
    assert np.array(coef).tobytes() == model_in_process(sites).tobytes()
    assert not any(verified(site)[1].run.attempts for site in sites)


def test_a_state_that_was_restored_goes_on_in_a_new_attempt_and_its_figures_are_at_least(tmp_path):
    """With real noise: an earlier message is not sent again under the same masks (rule R)."""
    real = {"quorum": 4, "rounds": 300, "seed": None}
    paths = masked_network(tmp_path, COMPLETE, job=real, site={"patience": 8.0})
    running = [SiteProcess(path) for path in paths]
    state = load_site(paths[2]).state
    _wait_for(paths[2], 3)
    running[2].kill()
    shutil.copytree(state, tmp_path / "yesterday")
    running[2] = SiteProcess(paths[2])
    _wait_for(paths[2], 12)
    running[2].kill()
    shutil.rmtree(state)
    shutil.copytree(tmp_path / "yesterday", state)
    running[2] = SiteProcess(paths[2])
    assert [process.wait() for process in running] == [0] * 5
    sites = [load_site(path) for path in paths]
    assert len({(site.state / "model.json").read_bytes() for site in sites}) == 1
    stated = [verified(site)[0].get("at_least", False) for site in sites]
    assert stated == [False, False, True, False, False]
    last = verified(sites[0])[1].run.attempts
    assert len(last) > 1 and last[-1].members == (0, 1, 2, 3, 4)


def _wait_for(path, rounds):
    until = time.monotonic() + 60
    while time.monotonic() < until and not _rounds(path) > rounds:
        time.sleep(0.05)


def _rounds(path):
    """How many rounds a running site has completed."""
    try:
        with closing(sqlite3.connect(f"file:{load_site(path).database}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM records WHERE key LIKE 'total/%'").fetchone()[0]
    except sqlite3.Error:
        return 0
