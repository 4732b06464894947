"""A masked job: required and forbidden keys, and a hash that covers all of them."""

import tomllib

import pytest

from support.sitemasked import masked_network
from support.sitework import network
from taciturn.core.errors import SiteError, WrongFiles
from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.job import load_job
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.watch.checkup import costs
from taciturn.sites.wire.config import largest_payload

AGE = {"fields": [{"name": "age", "low": 0, "high": 100}]}


def loaded(folder, **job):
    return load_site(masked_network(folder, job=job)[0])


def test_every_number_follows_from_the_job(tmp_path):
    site = loaded(tmp_path)
    tables = site.job.sums
    assert largest_payload(site.job) >= max(8 * entry.length for entry in tables.sums)
    assert tables.colluding == 1 and tables.pairs.honest(1) == 4


@pytest.mark.parametrize(
    "job, words",
    [
        ({"epsilon": None}, "`epsilon` must be given: the method of this job is 'masked'"),
        ({"colluding": None}, "`colluding` must be given: the method of this job is 'masked'"),
        ({"colluding": 5}, "`colluding` must be below the number of sites, 5"),
        ({"clip": 64.0}, "`clip` belongs to method 'penalty'"),
        ({"rounds": 2}, "`rounds` must be at least 3"),
        ({"method": "other"}, "method"),
    ],
)
def test_masked_job_with_missing_or_invalid_keys_is_refused(tmp_path, job, words):
    with pytest.raises(SiteError, match=words):
        loaded(tmp_path, **job)


QUESTIONS = {"kind": "describe", "describe": {"columns": ["age"]}, "epsilon": 1.0, "schema": AGE}


@pytest.mark.parametrize("questions", [False, True], ids=["train", "describe"])
@pytest.mark.parametrize(("colluding", "least"), [(0, 3), (1, 4), (2, 4), (3, 5), (None, 5)])
def test_two_groups_of_a_quorum_share_an_honest_site(tmp_path, questions, colluding, least):
    """Otherwise colluding sites could continue the run with each of two groups of honest sites."""
    if not questions and colluding is None:
        pytest.skip("a masked job that trains states `colluding`")

    def job_with(quorum):
        given = {"quorum": quorum, "colluding": colluding}
        path = masked_network(tmp_path / str(quorum), job=None if questions else given)[0]
        if questions:
            job = tomllib.loads((path.parent.parent / "job.toml").read_text())
            facts = {key: job[key] for key in ("format", "name", "sites", "links")} | QUESTIONS | given
            (path.parent.parent / "job.toml").write_text(write_toml(facts))
        return load_job(path.parent.parent / "job.toml")

    assert [job_with(quorum).quorum for quorum in {least, 5}] == list({least, 5})
    for quorum in (least - 1, 6):
        with pytest.raises(WrongFiles, match=rf"`quorum` must be from {least} to 5 \(all sites\)"):
            job_with(quorum)


def test_penalty_job_refuses_keys_of_masked_jobs(tmp_path):
    with pytest.raises(SiteError, match="`colluding` belongs to method 'masked'"):
        load_site(network(tmp_path, job={"colluding": 1, "method": "penalty"})[0])
    with pytest.raises(SiteError, match="`tol` must be given: the method of this job is 'penalty'"):
        load_site(network(tmp_path / "again", job={"tol": None})[0])
    with pytest.raises(SiteError, match="`quorum` needs method 'masked'; the job has 'penalty'"):
        load_site(network(tmp_path / "third", job={"quorum": 3})[0])


def test_a_site_of_a_masked_job_has_no_noise_of_its_own(tmp_path):
    path = masked_network(tmp_path)[0]
    path.write_text(path.read_text() + 'noise = { kind = "gaussian", std = 1.0 }\n')
    with pytest.raises(SiteError, match="`noise` must be left out: the method 'masked'"):
        load_site(path)


def test_the_hash_covers_epsilon_and_colluders(tmp_path):
    changes = [{}, {"epsilon": 2.0}, {"colluding": 2}, {"delta": 1e-6}, {"rounds": 7}]
    text = [masked_network(tmp_path / str(k), job=job)[0] for k, job in enumerate(changes)]
    assert len({load_site(path).job.hash for path in text}) == len(changes)


def test_check_names_the_assumed_colluders(tmp_path):
    ready = make_ready(loaded(tmp_path))
    worst = ready.forecast().epsilon_against(4)
    cost, seeded = costs(ready)
    assert cost.good and seeded.good
    said = "if at most one other site colludes, "
    assert said in cost.text and "if all other sites collude; the budget is 1" in cost.text
    figure = float(cost.text.split(said)[1].split()[0])
    assert worst <= figure < worst + 0.01
