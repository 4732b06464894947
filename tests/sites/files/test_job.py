"""job.toml and site.toml: complete, checked as a whole, with errors that name file and key."""

import json
import sys
import tomllib

import pytest

from support.sitework import JOB, PATH_OF_3, RING_OF_3, SCHEMA, SITE, network, sites
from taciturn.core.errors import SiteError
from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.difference import difference, show_keys
from taciturn.sites.files.job import NetworkJob, load_job
from taciturn.sites.files.site import load_site

HASH = "19e247b3e6d103547f32cf06ba961599a7e3e0ff3ed97645dadc3f239b4ef1b2"


def job(**changes):
    entries = {
        "format": 2,
        "kind": "train",
        "dimension": 4,
        "sites": [{"name": n, "endpoint": f"tls/{n}.example:7447", "samples": 24} for n in ("a", "b", "c")],
        "links": [["a", "b"], ["b", "c"]],
    }
    return {k: v for k, v in (JOB | entries | changes).items() if v is not None}


def written(tmp_path, **changes):
    path = tmp_path / "job.toml"
    path.write_text(write_toml(job(**changes)))
    return path


def test_a_job_reads_as_written(tmp_path):
    read = load_job(written(tmp_path))
    assert read.names == ("a", "b", "c") and read.neighbours("b") == ("a", "c")
    assert read.dimension == 4 and read.simulated and read.graph.n == 3


def test_a_job_of_arrays_needs_nothing_of_tables(tmp_path, monkeypatch):
    """pandas and scikit-learn would cost every site more than a second, at the end of its run."""
    monkeypatch.setitem(sys.modules, "taciturn.data.tables.unit_ball", None)
    assert load_job(written(tmp_path)).ball is None


def test_a_job_with_whitened_rows_needs_rounds_beside_those_of_the_moments(tmp_path):
    assert load_job(written(tmp_path, whiten=0.3)).sums.rounds == 2
    with pytest.raises(SiteError, match="`rounds` must be at least 3 with `whiten`; got 2") as caught:
        load_job(written(tmp_path, whiten=0.3, rounds=2))
    assert "\n" not in str(caught.value)


def test_a_job_without_epsilon_needs_the_numbers_of_its_feature_map(tmp_path):
    table = {"dimension": None, "schema": SCHEMA, "label": {"column": "y", "positive": "a"}}
    mapped = load_job(written(tmp_path, **table, whiten=0.3, encoding={"curves": 5, "surfaces": 0}))
    assert mapped.dimension == 11  # age: a line, five hats, an indicator; sex: three columns; the constant
    with pytest.raises(SiteError, match="must be numbers, such as 9 and 0, in a job without `epsilon`"):
        load_job(written(tmp_path, **table, encoding={"curves": "auto", "surfaces": 0}))


def test_a_key_that_only_one_side_has_is_named(tmp_path):
    """This happens when a newer release on one side knows one more optional key."""
    ours = load_job(written(tmp_path))
    shown = json.loads(show_keys(ours))
    newer, older = dict(shown["keys"]) | {"margin": "0.5"}, dict(shown["keys"])
    del older["C"]
    assert (
        difference(ours, json.dumps(shown | {"keys": newer}).encode())
        == "`margin` is 0.5 in its job, not set in this site's"
    )
    assert (
        difference(ours, json.dumps(shown | {"keys": older}).encode())
        == "`C` is not set in its job, 10.0 in this site's"
    )


def test_the_hash_counts_facts_and_not_layout(tmp_path):
    one = load_job(written(tmp_path))
    lines = written(tmp_path).read_text().splitlines()
    other = tmp_path / "other.toml"
    other.write_text("# a comment\n" + "\n".join(reversed(lines)).replace("C = 10.0", "C   =  10"))
    assert load_job(other).hash == one.hash


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 6},
        {"name": "other"},
        {"C": 9.0},
        {"seed": 2},
        {"seed": None},
        {"delta": 1e-6},
        {"loss": {"kind": "smooth-hinge", "h": 0.5}},
        {"dual_step": 0.4},
        {"grid": 2.0**-39},
        {"links": [["a", "b"], ["a", "c"]]},
        {"sites": [{"name": n, "endpoint": f"tls/{n}.example:7447", "samples": 25} for n in ("a", "b", "c")]},
    ],
)
def test_any_other_fact_gives_another_hash(change):
    assert NetworkJob.model_validate(job(**change)).hash != NetworkJob.model_validate(job()).hash


def test_moving_a_site_does_not_change_the_job():
    moved = [{"name": n, "endpoint": f"tls/{n}.example:7448", "samples": 24} for n in ("a", "b", "c")]
    relay = {"name": "r", "endpoint": "tls/r.example:1"}
    before = NetworkJob.model_validate(job(relay=relay))
    after = NetworkJob.model_validate(job(sites=moved, relay=relay | {"endpoint": "tls/r.example:2"}))
    assert after.hash == before.hash != NetworkJob.model_validate(job()).hash


def test_a_job_of_the_first_format_is_still_read():
    """In that format, a missing `intercept` meant no intercept."""
    table = {"dimension": None, "schema": SCHEMA, "label": {"column": "y", "positive": "a"}}
    before = NetworkJob.model_validate(job(format="taciturn-job/1", kind=None, **table))
    assert before.hash == NetworkJob.model_validate(job(intercept=False, **table)).hash
    assert before.hash != NetworkJob.model_validate(job(**table)).hash


def test_the_hash_does_not_move_between_versions():
    assert NetworkJob.model_validate(job()).hash.hex() == HASH


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "`rounds`"),
        ({"rounds": "many"}, "`rounds`"),
        ({"roundz": 3}, "`roundz`"),
        ({"loss": "cubic"}, "`loss`.*one of logistic"),
        ({"loss": {"kind": "logistic", "h": 3}}, "`loss`.*does not accept.*it accepts kind"),
        ({"dual_step": {"kind": "geometric", "start": -1.0}}, "`dual_step`.*above 0"),
        ({"C": 25.0}, "`C` must not exceed the samples of a, 24"),
        ({"grid": 0.3}, "whole multiple"),
        ({"delta": 1.0}, "`delta`"),
        ({"dimension": None}, "give either `dimension`, if rows are arrays, or `schema`"),
        ({"links": [["a", "b"]]}, "`links` must connect all sites.*c has no link"),
        ({"kind": "guess"}, "`kind` must be 'train', .*; got 'guess'"),
        ({"format": 3}, "`format` must be 2; got 3"),
        ({"max_rounds": 3}, "`max_rounds` is read by `taciturn train` only"),
        ({"budget": {"epsilon": 1.0}}, "`budget` belongs in site.toml"),
        ({"missing": "field"}, "`missing` needs a `schema`"),
        ({"intercept": True}, "`intercept` needs a `schema`"),
        ({"unit": "person"}, "must be given if `unit` is 'person', and only then"),
        ({"links": [["a", "z"], ["b", "c"]]}, "`links`.*'z'"),
        ({"sites": [{"name": "A b", "samples": 24}]}, r"`sites\.0\.name`"),
        ({"sites": [{"name": n, "samples": 24} for n in "abc"]}, "neither a nor b has an endpoint"),
        ({"sites": [{"name": "a", "endpoint": "tcp/a:1", "samples": 24}] * 3}, r"`sites\.0\.endpoint`"),
        ({"relay": {"name": "a", "endpoint": "tls/r.example:7447"}}, r"`relay\.name`"),
    ],
)
def test_errors_name_the_file_and_the_key(tmp_path, change, words):
    with pytest.raises(SiteError, match=words) as raised:
        load_job(written(tmp_path, **change))
    assert "job.toml" in str(raised.value) and "\n" not in str(raised.value)


def test_a_file_that_is_no_toml_is_named_with_its_line(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text("name = \n")
    with pytest.raises(SiteError, match=r"job\.toml is not TOML.*line 1"):
        load_job(path)
    with pytest.raises(SiteError, match=r"none\.toml cannot be read"):
        load_job(tmp_path / "none.toml")


def test_later_site_of_a_link_connects_to_the_earlier_one(tmp_path):
    made = sites(tmp_path, RING_OF_3)
    assert [sorted(site.dials()) for site in made] == [[], ["site-0"], ["site-0", "site-1"]]
    assert all(site.listens() for site in made)


def test_site_without_endpoint_only_connects_outward(tmp_path):
    paths = network(tmp_path, PATH_OF_3)
    entries = tomllib.loads((tmp_path / "job.toml").read_text())
    del entries["sites"][0]["endpoint"]
    (tmp_path / "job.toml").write_text(write_toml(entries))
    first, second, _ = (load_site(path) for path in paths)
    assert first.listens() is None and list(first.dials()) == ["site-1"]
    assert second.dials() == {}


def test_owner_endpoint_overrides_the_job(tmp_path):
    last = network(tmp_path, PATH_OF_3, site={"endpoints": {"site-1": "tls/10.9.9.9:1"}})[2]
    assert load_site(last).dials() == {"site-1": "tls/10.9.9.9:1"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"site": "elsewhere"}, "`site`.*no site 'elsewhere'"),
        ({"penalty": 0.0}, "`penalty`"),
        ({"noise": {"kind": "norm"}}, "`noise`.*`rate`"),
        ({"noise": 3.0}, "`noise`.*table"),
        ({"budget": {"epsilon": 0}}, r"`budget\.epsilon`"),
        ({"keys": {"private": "a"}}, r"`keys\.certificate`"),
        ({"endpoints": {"nobody": "tls/a:1"}}, r"`endpoints\.nobody`"),
        ({"patience": -1.0}, "`patience`"),
    ],
)
def test_errors_of_a_site_name_the_file_and_the_key(tmp_path, change, words):
    with pytest.raises(SiteError, match=words) as raised:
        load_site(network(tmp_path, site=change)[0])
    assert "site.toml" in str(raised.value) and "\n" not in str(raised.value)


def test_a_real_run_needs_output_noise(tmp_path):
    with pytest.raises(SiteError, match="`output_noise`"):
        load_site(network(tmp_path, job={"seed": None})[0])
    assert SITE.get("output_noise") is None
