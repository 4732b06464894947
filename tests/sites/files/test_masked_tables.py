"""Masked jobs of tables: several classes, persons and an intercept, as in one process to the last bit."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from support.masking import all_keys
from support.sitemasked import JOB, SITE
from support.sitework import network, shards
from taciturn.core.errors import SiteError, WrongFiles
from taciturn.data.model_file import ModelFile
from taciturn.methods.loop import Send, loop
from taciturn.methods.programs.masked_descent import MANY_ROWS
from taciturn.methods.sums.node import SumsNode
from taciturn.methods.sums.prepared import PreparedSums
from taciturn.methods.sums.sums import add_up
from taciturn.objective.softmax import SoftmaxProblem
from taciturn.rng import SeededStreams
from taciturn.sites.files import rows
from taciturn.sites.files.rows import load_rows, load_weighted_rows
from taciturn.sites.files.site import load_site
from taciturn.sites.rounds.prepare import make_ready
from taciturn.sites.rounds.results import model_facts

SCHEMA = {"fields": [{"name": "age", "low": 0, "high": 100}, {"name": "sex", "values": ["f", "m"]}]}
TRIANGLE = [(0, 1), (1, 2), (0, 2)]
CLASSES = ["red", "green", "blue"]
PERSONS = 40


def tables(rows=60, seed=1):
    """The text of three tables: 40 persons with one to three rows each, three classes, some cells missing."""
    rng = np.random.default_rng(seed)
    texts = []
    for site in range(3):
        whose = np.concatenate([np.arange(PERSONS), rng.integers(0, PERSONS, rows - PERSONS)])
        age, sex = rng.integers(0, 100, rows), rng.choice(["f", "m"], rows)
        colour = np.where(age < 35, "red", np.where(age < 65, "green", "blue")).astype(object)
        colour[3], colours = "", colour
        lines = [f"{a},{s},{c},{site}-{w}" for a, s, c, w in zip(age, sex, colours, whose, strict=True)]
        texts.append("\n".join(["age,sex,colour,patient", *lines]) + "\n")
    return texts


def masked_sites(folder: Path, texts=None, **job):
    facts = {"schema": SCHEMA, "dimension": None, "C": 1.0, "intercept": True, "seed": 5, "rounds": 4}
    facts |= {"label": {"column": "colour", "classes": CLASSES}, "person": "patient"}
    data = shards(3, rows=PERSONS)
    site = SITE | {"data": "rows.csv"}
    paths = network(folder, TRIANGLE, job=JOB | facts | job, site=site, data=data)
    for path, text in zip(paths, texts or tables(), strict=True):
        (path.parent / "rows.csv").write_text(text)
    return [load_site(path) for path in paths]


def half_of(ready):
    """What this site adds to each sum."""
    return ready.prepared.tables.program.private_half(ready.rows, ready.prepared.tables.units)


def run_by_hand(made):
    """All rounds of these sites, each with keys of its own, in this process; the model."""
    loops = []
    for ready, keys in zip(made, all_keys(len(made)), strict=True):
        streams = SeededStreams(ready.site.job.seed)
        one = np.array([ready.site.number]), [half_of(ready)], ready.prepared.tables, [keys], streams
        loops.append(loop(SumsNode(*one), ready.prepared.tables.program.start(1)))
    answers = [_sent(one, None) for one in loops]
    while isinstance(answers[0], Send):
        total = add_up(answer.message[0] for answer in answers)
        answers = [_sent(one, total) for one in loops]
    return answers[0].f.reshape(-1)


def _sent(one, total):
    """What a site sends next; after the last round its state."""
    try:
        one.send(total)  # to be stored
        return next(one)
    except StopIteration as end:
        return end.value


def test_a_network_with_classes_persons_and_an_intercept_is_the_engine_s_run(tmp_path):
    sites = masked_sites(tmp_path)
    ready = [make_ready(site) for site in sites]
    assert all(isinstance(one.prepared, PreparedSums) for one in ready)
    model = run_by_hand(ready)
    rows = [load_rows(site) for site in sites]
    ids = [np.loadtxt(site.path(site.file.data), str, delimiter=",", skiprows=1)[:, 3] for site in sites]
    job = sites[0].job
    problem = SoftmaxProblem(rows, classes=3, C=1.0, regularization=job.regularization, persons=ids)
    method = tt.MaskedDescent(epsilon=job.epsilon, delta=job.delta, colluding=1, constant=job.ball.constant)
    run = tt.simulate(problem, "complete", method, rounds=4, seed=5, progress=False)
    assert np.array_equal(model, run.coef[0, 0])
    facts, own = run.certificate(job.delta), ready[0].forecast()
    assert own.run.unit == "person" and own.run.persons == 3 * PERSONS and own.run.largest == MANY_ROWS
    assert own.epsilon == facts.epsilon and "all records of the target person" in own.statement()


def test_the_model_file_has_classes_and_an_intercept_of_its_own(tmp_path):
    sites = masked_sites(tmp_path)
    job = sites[0].job
    model = run_by_hand([make_ready(site) for site in sites])
    written = ModelFile.model_validate_json(json.dumps(model_facts(job, model)))
    assert written.loss == "softmax" and written.classes == CLASSES
    assert len(written.features) == 3 and len(written.intercept) == 3
    X, _ = load_rows(sites[0])
    known = X.any(axis=1)
    table = {"age": [50, 20], "sex": ["f", "m"]}
    z = job.ball.rows(written.encoder().transform(table))
    scores = written.encoder().transform(table) @ np.array(written.coef).T + np.array(written.intercept)
    np.testing.assert_allclose(scores, z @ model.reshape(3, -1).T, rtol=1e-12)
    np.testing.assert_allclose(X[known, -1], job.ball.constant)
    assert not X[3].any()  # no label: the constant too is 0


def test_the_weights_of_a_person_add_up_to_one(tmp_path):
    site = masked_sites(tmp_path)[0]
    weights = load_weighted_rows(site)[2]
    assert len(weights) == 60 and weights.sum() == pytest.approx(PERSONS, rel=1e-12)


def test_rows_and_weights_of_two_versions_of_a_file_are_never_combined(tmp_path, monkeypatch):
    """With the weights of other rows, a person could count more than once."""
    site = masked_sites(tmp_path)[0]
    load, path, before = rows.read_tables, site.rows.path, load_weighted_rows(site)

    def load_and_sort(*given):
        found = load(*given)
        head, *lines = path.read_text().splitlines()
        path.write_text("\n".join([head, *sorted(lines)]) + "\n")
        return found

    monkeypatch.setattr(rows, "read_tables", load_and_sort)
    for found, expected in zip(load_weighted_rows(site), before, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(load_weighted_rows(site)[2], before[2])  # the file did change


def test_arrays_and_persons_of_two_versions_of_a_file_are_never_combined(tmp_path, monkeypatch):
    site = sites_of_persons(tmp_path, [1, 1, 2, 3, 3, 3])[0]
    assert load_weighted_rows(site)[2].tolist() == pytest.approx([1 / 2, 1 / 2, 1, 1 / 3, 1 / 3, 1 / 3])
    load, path = rows.read_arrays, site.rows.path

    def load_and_replace(*given, **options):
        found = load(*given, **options)
        np.savez(path, X=np.zeros((6, 4)), y=np.ones(6), id=np.arange(6) % 3)
        os.utime(path, (0, 0))
        return found

    monkeypatch.setattr(rows, "read_arrays", load_and_replace)
    with pytest.raises(
        WrongFiles, match="changed while it was read; run again when no program writes to the file"
    ):
        make_ready(site)


def test_arrays_need_one_person_per_row(tmp_path):
    site = sites_of_persons(tmp_path, [1, 2, 3, 3, 3])[0]
    with pytest.raises(WrongFiles, match="`id` must have one id per row; got 5 for 6 rows"):
        make_ready(site)


def sites_of_persons(tmp_path, ids):
    """Sites with six rows of three persons in arrays; `ids` are the persons of the first site's rows."""
    job = JOB | {"C": 1.0, "seed": 5, "rounds": 4, "unit": "person", "person": "id"}
    paths = network(tmp_path, TRIANGLE, job=job, site=SITE, data=shards(3, rows=3))
    found = [load_site(path) for path in paths]
    np.savez(found[0].rows.path, X=np.full((6, 4), 0.1), y=np.ones(6), id=np.array(ids))
    return found


def test_one_person_moves_a_sum_no_further_than_one_record_would(tmp_path):
    """All rows of a person are replaced, their number too; the share moves by at most S."""
    old = tables()
    lines = old[0].splitlines()
    kept = [line for line in lines if not line.endswith(",0-7")]
    new = ["\n".join([*kept, *["99,m,blue,0-7"] * 9]) + "\n", *old[1:]]
    parts = [
        make_ready(masked_sites(tmp_path / name, texts)[0]) for name, texts in (("old", old), ("new", new))
    ]
    y = np.random.default_rng(0).normal(size=(1, 3, 4))
    sums, (one, other) = parts[0].prepared.tables.sums, [half_of(ready) for ready in parts]
    first, gradient = sums[0], sums[2]
    assert 0 < np.linalg.norm(one.moments() - other.moments()) <= first.sensitivity
    moved = one.gradient(y) - other.gradient(y)
    assert 0 < np.linalg.norm(moved) <= gradient.sensitivity


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"label": {"column": "colour", "classes": ["red"]}}, "classes"),
        ({"label": {"column": "colour", "classes": ["red", "green", "red"]}}, "must not list a class twice"),
        (
            {"label": {"column": "colour", "classes": CLASSES, "positive": "red"}},
            "one of `classes` and `positive`",
        ),
        ({"loss": {"kind": "smooth-hinge", "h": 0.5}}, "need method 'masked' and the loss 'logistic'"),
        ({"person": "age"}, "`person` must name a column that is neither"),
        ({"person": "colour"}, "`person` must name a column that is neither"),
    ],
)
def test_contradictory_job_keys_are_refused(tmp_path, job, words):
    with pytest.raises(SiteError, match=words):
        masked_sites(tmp_path, **job)


def test_persons_are_counted_and_never_quoted(tmp_path):
    texts = tables()
    texts[0] = texts[0].replace(",0-7\n", ",0-8\n")
    with pytest.raises(SiteError, match="says 40 persons for site-0; the file has 39") as raised:
        make_ready(masked_sites(tmp_path / "a", texts)[0])
    assert "0-8" not in str(raised.value)
    texts[0] = tables()[0].replace(",0-7\n", ",\n")
    with pytest.raises(SiteError, match="person's id is missing"):
        make_ready(masked_sites(tmp_path / "b", texts)[0])


def test_omitted_keys_do_not_change_the_hash(tmp_path):
    """Jobs from before there were persons and classes keep their hash."""
    plain = {"label": {"column": "colour", "positive": "red"}, "person": None}
    first = masked_sites(tmp_path / "a", **plain)[0].job
    assert "person" not in first.facts and "classes" not in first.facts["label"]
    assert masked_sites(tmp_path / "b")[0].job.facts["person"] == "patient"


@pytest.mark.parametrize(
    "encoding", [{"curves": 4, "surfaces": 5, "seed": 3}, {}, {"curves": 3, "surfaces": 0}]
)
def test_an_encoding_maps_the_rows_of_every_site_alike(tmp_path, encoding):
    sites = masked_sites(tmp_path, encoding=encoding)
    ready = make_ready(sites[0])
    X, _ = load_rows(sites[0])
    assert X.shape[1] == sites[0].job.dimension == len(sites[0].job.feature_names)
    assert np.sqrt(np.einsum("ij,ij->i", X, X)).max() <= 1
    facts = model_facts(ready.site.job, np.zeros(3 * X.shape[1]))
    encoder = ModelFile.model_validate(facts).encoder()
    if encoding:
        assert (encoder.curves, encoder.surfaces, encoder.seed) == (
            *list(encoding.values())[:2],
            facts["encoding"]["seed"],
        )
    assert encoder.missing_as == "indicator", "no row is lost because of one empty cell"
    other = masked_sites(tmp_path / "plain")[0].job
    assert other.hash != ready.site.job.hash


def test_an_encoding_needs_a_schema_and_auto_needs_an_epsilon(tmp_path):
    with pytest.raises(SiteError, match="`encoding` needs a `schema`"):
        network(tmp_path / "a", TRIANGLE, job=JOB | {"encoding": {}}, site=SITE)
        load_site(tmp_path / "a" / "site-0" / "site.toml")
    with pytest.raises(SiteError, match=r"`encoding\.surfacs`"):
        masked_sites(tmp_path / "b", encoding={"surfacs": 3})
