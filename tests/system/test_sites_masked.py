"""A masked job on real sites: one model for all, of sums of which nobody sees a part."""

import json

import numpy as np
import pytest
from scipy import stats

from support.siteend import charged_rounds
from support.sitemasked import (
    bare_values,
    frames_heard,
    frames_sent,
    masked_network,
    messages_sent,
    model_in_process,
    opened,
)
from support.siteprocess import run_all
from taciturn.data import deal_evenly
from taciturn.masked.sums import add_up
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.results import verify_statement
from taciturn.sites.wire.form import HELLO
from taciturn.sites.wire.trust import load_trust


@pytest.fixture(scope="module")
def trained(adult, tmp_path_factory):
    """Adult over five sites on a ring: the sites after the run."""
    rows = np.random.default_rng(0).permutation(len(adult))[:2000]
    data = deal_evenly(adult.X[rows], adult.y[rows], 5, seed=0)
    paths = masked_network(tmp_path_factory.mktemp("masked"), data=data, job={"C": 100.0, "rounds": 8})
    run_all(paths, {i: {"leak": True} for i in range(1, 5)})  # who may collude keeps the key of the run
    return [load_site(path) for path in paths]


def test_five_processes_on_a_ring_agree_with_the_in_process_engine_to_the_last_bit(trained):
    expected = model_in_process(trained)
    assert expected.any()
    models = {(site.state / "model.json").read_bytes() for site in trained}
    assert len(models) == 1
    coef = json.loads(models.pop())["coef"]
    assert np.array(coef[0]).tobytes() == expected.tobytes()


def test_every_site_has_every_message_and_is_charged_once_for_its_own(trained):
    for site in trained:
        assert charged_rounds(site) == list(range(1, 9))
        for other in trained:
            if other is not site:
                sent, heard = frames_sent(other), frames_heard(site, other.number)
                rounds = (HELLO, *range(1, 10))
                assert [heard[t].digest for t in rounds] == [sent[t].digest for t in rounds]


def test_two_honest_sites_show_their_sum_and_nothing_else_to_all_the_others_keys(trained):
    """Everything that was sent, opened with all keys but those of sites 0 and 1."""
    left = [opened(trained, site, colluders=(2, 3, 4)) for site in (0, 1)]
    assert uniform(left[0]) and uniform(left[1])
    both = [first + second for first, second in zip(*left, strict=True)]
    assert not uniform(both)
    bare = zip(bare_values(trained, 0), bare_values(trained, 1), strict=True)
    assert [one.tobytes() for one in both] == [(first + second).tobytes() for first, second in bare]


def test_with_the_last_key_too_a_site_stands_bare(trained):
    """So the test above looks at the right thing: four colluders see what the noise of one site leaves."""
    left = opened(trained, 0, colluders=(1, 2, 3, 4))
    assert not uniform(left)
    assert [one.tobytes() for one in left] == [one.tobytes() for one in bare_values(trained, 0)]


def uniform(messages):
    """Whether the bytes of some messages look as if every value were as likely, at p = 1e-9."""
    data = np.frombuffer(b"".join(one.tobytes() for one in messages), dtype=np.uint8)
    return stats.chisquare(np.bincount(data, minlength=256)).pvalue > 1e-9


def test_a_site_s_message_is_not_what_it_sends_without_masks(trained):
    """Single messages are spread over all of 2^64; their sum is as small as the gradients are."""
    each = [messages_sent(site)[-1] for site in trained]
    assert all(np.abs(one.view(np.int64).astype(float)).max() > 2.0**60 for one in each)
    assert np.abs(add_up(each).view(np.int64).astype(float)).max() < 2.0**50


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
