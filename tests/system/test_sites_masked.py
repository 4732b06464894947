"""A masked job on real sites: one model for all, from sums of which no part is visible."""

import json

import numpy as np
import pytest

from support.siteend import charged_rounds
from support.sitemasked import masked_network, model_in_process, totals
from support.siteprocess import run_all
from taciturn.data import deal_evenly
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.trust import load_trust


@pytest.fixture(scope="module")
def trained(adult, tmp_path_factory):
    """Adult over five sites on a ring: the sites after the run."""
    rows = np.random.default_rng(0).permutation(len(adult))[:2000]
    data = deal_evenly(adult.X[rows], adult.y[rows], 5, seed=0)
    paths = masked_network(tmp_path_factory.mktemp("masked"), data=data, job={"C": 100.0, "rounds": 8})
    run_all(paths)
    return [load_site(path) for path in paths]


def test_five_processes_on_a_ring_agree_with_the_in_process_engine_to_the_last_bit(trained):
    expected = model_in_process(trained)
    assert expected.any()
    models = {(site.state / "model.json").read_bytes() for site in trained}
    assert len(models) == 1
    coef = json.loads(models.pop())["coef"]
    assert np.array(coef[0]).tobytes() == expected.tobytes()


def test_every_site_has_the_same_sums_and_is_charged_once_for_its_own_messages(trained):
    for site in trained:
        assert charged_rounds(site) == list(range(1, 9))
        assert [one.tobytes() for one in totals(site)] == [one.tobytes() for one in totals(trained[0])]


def test_every_site_signs_what_it_cost_and_against_whom(trained):
    for site in trained:
        certificate = Certificate.from_json((site.state / "certificate.json").read_text())
        certificate.verify()
        assert certificate.run.masked and certificate.run.colluding == 1
        assert 0.999 < certificate.epsilon <= 1.0
        assert certificate.epsilon_against(0) < certificate.epsilon < certificate.epsilon_against(4)
        trust = load_trust(site.path(site.file.keys.authority))
        facts = verify_statement(site.state / "statement.json", trust)
        assert facts["epsilon"] == certificate.epsilon_against(1)
        assert facts["colluding"] == 1
        assert facts["epsilon_against"] == [certificate.epsilon_against(c) for c in range(5)]
