"""The table of kinds: keys are refused by name, and several questions share one budget."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import taciturn as tt
from support.asked import NAMES, SCHEMA, patients, to_csv
from taciturn.core.errors import ParameterError
from taciturn.data import Schema
from taciturn.jobfile.job_format import KINDS as WORDS
from taciturn.jobfile.toml_files import write_toml
from taciturn.methods.base import Network
from taciturn.objective.regularizers import L2
from taciturn.privacy.accounting.gaussian import gaussian_mu
from taciturn.questions.asking import Asking
from taciturn.questions.kinds import KINDS, kind_of, read_questions
from taciturn.questions.question import PublicTable, SiteTable, Spending
from taciturn.sites.files.job import load_job

PUBLIC = PublicTable(Schema.from_dict(SCHEMA))
ASKED = [
    {"kind": "describe", "columns": ["age", "sex"], "by": "sex"},
    {"kind": "survival", "time": "months", "event": "died", "by": "sex", "bins": 6},
    {"kind": "correlations", "columns": ["age", "pressure"]},
]


def network(samples=(400, 300, 300)):
    n = len(samples)
    return Network(n, tuple(range(n)), samples, (n - 1,) * n, NAMES, 1, None, 1.0, 0.0, L2())


def job(folder, **keys):
    sites = [{"name": name, "samples": 400, "endpoint": f"tls/h:{7000 + k}"} for k, name in enumerate(NAMES)]
    facts = {"format": 2, "name": "asked", "epsilon": 1.0, "schema": SCHEMA, "sites": sites} | keys
    (folder / "job.toml").write_text(write_toml(facts))
    return folder / "job.toml"


def test_every_kind_of_question_has_a_name_in_the_job_format():
    assert set(KINDS) <= set(WORDS) and all(kind_of(name).kind == name for name in KINDS)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"kind": "describe", "describe": {"bin": 3}}, r"line \d+: `describe.bin` "),
        ({"kind": "describe", "describe": {"bins": 1}}, "`describe.bins` must be at least 2"),
        (
            {"kind": "describe", "describe": {"columns": ["agee"]}},
            "`columns` must name columns of the schema",
        ),
        ({"kind": "describe", "describe": {"by": "age"}}, "`by` must be a category or a boolean"),
        ({"kind": "describe", "survival": {}}, "`survival`"),
        ({"kind": "describe", "rounds": 3}, "`rounds` belongs to kind 'train'"),
        ({"kind": "describe", "loss": "logistic"}, "`loss` belongs to kind 'train'"),
        ({"kind": "describe", "encoding": {"curves": 5}}, "`encoding` belongs to kind 'train'"),
        ({"kind": "describe", "graph": "ring", "links": [["a", "b"]]}, "`graph` must be left out if `links`"),
        (
            {"kind": "describe", "label": {"column": "y", "positive": "a", "classes": ["a", "b"]}},
            "`label` must have one of `classes` and `positive`",
        ),
        ({"kind": "describe", "clip": 1.0}, "`clip` must be left out"),
        ({"kind": "describe", "questions": [{"kind": "describe"}]}, "only kind 'several' has `questions`"),
        ({"kind": "several"}, "`questions` must contain at least one"),
        ({"kind": "several", "questions": [{"kind": "describe"}] * 201}, "`questions` must have at most"),
        ({"kind": "several", "questions": [{"kind": "train"}]}, "`kind` must be one of"),
        ({"kind": "several", "questions": [ASKED[0], {"kind": "survival"}]}, "`questions.1.time`"),
        (
            {"kind": "survival", "survival": {"time": "age", "event": "sex"}},
            "`event` must be the name of a boolean",
        ),
        ({"kind": "survival", "survival": {"time": "pressure", "event": "died"}}, "must name a numeric"),
        ({"kind": "evaluate", "evaluate": {"model": {"file": "m"}}}, "`evaluate.model.sha256`"),
    ],
)
def test_senseless_key_is_refused_by_name(keys, words, tmp_path):
    with pytest.raises(Exception, match=words) as refused:
        load_job(job(tmp_path, **keys))
    assert refused.type.__module__ == "taciturn.core.errors" and "\n" not in str(refused.value)


def test_the_questions_are_part_of_what_the_sites_agree_on(tmp_path):
    one = load_job(job(tmp_path, kind="describe"))
    other = load_job(job(tmp_path, kind="describe", describe={"bins": 10}))
    assert one.hash != other.hash and one.rounds == 1


def test_several_questions_share_mu_squared_by_their_shares():
    """Every sum costs Delta / (s sqrt honest); their squares add up to that of the whole budget."""
    shares = [1.0, 2.0, 1.0]
    entries = [entry | {"share": share} for entry, share in zip(ASKED, shares, strict=True)]
    asking = Asking(read_questions(entries, several=True), PUBLIC, Spending(1.0, 1e-5, 1))
    tables = asking.tables(network())
    assert tables.rounds == 3 and [s.part for s in tables.sums] == ["aligned vectors"] * 3
    delta = [(s.sensitivity / s.grid + math.sqrt(s.length)) / (s.std * math.sqrt(2)) for s in tables.sums]
    mu = float(gaussian_mu(1.0, 1e-5))
    np.testing.assert_allclose(np.square(delta) / mu**2, np.array(shares) / 4, rtol=1e-5)


def test_a_unit_moves_each_of_several_sums_by_no_more_than_is_charged():
    """The farthest neighbours that these tables allow; a doubled count or clip is detected."""
    asking = Asking(read_questions(ASKED, several=True), PUBLIC, Spending(1.0, 1e-5, 1))
    tables = asking.tables(network())
    rows = {name: values[:50] for name, values in patients(50).items()}
    extremes = [
        {"age": 0, "sex": "male", "pressure": 240, "months": 0, "died": "yes"},
        {"age": 110, "sex": "female", "pressure": 60, "months": 48, "died": "no"},
        {"age": 110, "sex": "male", "pressure": 240, "months": 24, "died": "no"},
        {"age": "", "sex": "", "pressure": "", "months": "", "died": ""},
    ]

    def integers(first):
        changed = {name: [first[name], *values[1:]] for name, values in rows.items()}
        half = tables.program.private_half(asking.rows(SiteTable(changed, 50)), tables.units)
        state, found = tables.program.start(1), []
        for facts in tables.sums:
            found.append(half.integers(tables.program.query(state), facts)[0])
            state = tables.program.advance(state, np.zeros((1, facts.length)))
        return found

    each = [integers(first) for first in extremes]
    for k, facts in enumerate(tables.sums):
        far = max(np.linalg.norm((a[k] - b[k]).astype(float)) for a in each for b in each)
        assert far <= facts.sensitivity / facts.grid + math.sqrt(facts.length)
        assert far > 0.5 * facts.sensitivity / facts.grid  # and the bound is not idle


def test_several_answers_are_those_of_the_counts(tmp_path, monkeypatch):
    from taciturn.jobs.statistics import ask_job

    tables = [patients(600, seed) for seed in range(3)]
    for name, table in zip(NAMES, tables, strict=True):
        (tmp_path / f"{name}.csv").write_text(to_csv(table))
    (tmp_path / "owner.toml").write_text(write_toml({"rows": {n: f"{n}.csv" for n in NAMES}}))
    keys = {"kind": "several", "questions": ASKED, "epsilon": 40.0, "colluding": 1, "seed": 1}
    path = tmp_path / "job.toml"
    sites = [{"name": name} for name in NAMES]
    path.write_text(write_toml({"format": 2, "name": "q", "schema": SCHEMA, "sites": sites} | keys))
    with monkeypatch.context() as patch, pytest.raises(NotADirectoryError):
        patch.setattr("taciturn.jobs.statistics.run_asking", None)  # the folder is made before the run
        ask_job(path, path / "answers")
    (described, survived, correlated), written = ask_job(path)
    women = sum(table["sex"].count("female") for table in tables)
    assert described.groups["female"]["age"].units == pytest.approx(women, abs=8)
    assert survived["female"].at_risk[0] == pytest.approx(women, abs=12)
    pressure = np.concatenate([table["pressure"] for table in tables])
    assert correlated.means["pressure"].value == pytest.approx(pressure.mean(), abs=1)
    assert {path.suffix for path in written} == {".txt", ".csv", ".html", ".svg", ".png", ".json"}
    from taciturn.jobs.verify_run import verify_run

    certificate, said = verify_run(tmp_path / "answers")
    assert certificate.run.rounds == 3 and "the answers" in said[-1] and "not computed again" in said[-1]
    with pytest.raises(ParameterError, match="`--out` must be a new or empty folder"):
        ask_job(path)


def test_one_site_alone_is_a_network_of_one():
    ages = np.random.default_rng(0).uniform(20, 80, 2000)
    found = tt.private_description({"age": ages}, {"age": (0, 100)}, epsilon=1.0, sites=1)
    assert found["age"].mean.low < 50 < found["age"].mean.high and len(found.certificate.sites) == 1
    tt.Certificate.from_json(found.certificate.to_json()).verify()
    alone, five = found.released.sigma, tt.private_description
    many = five({"age": ages}, {"age": (0, 100)}, epsilon=1.0, colluding=0).released.sigma
    assert alone == pytest.approx(many, rel=1e-3)  # its own noise is what five honest sites add together


def test_one_site_alone_needs_sums_and_refuses_the_methods_of_neighbours():
    problem = tt.Problem([(np.full((20, 1), 0.5), np.resize([1.0, -1.0], 20))], C=1.0, regularization=0.1)
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(2.0))
    with pytest.raises(ParameterError, match="`degree`, the number of neighbours of a site, must be"):
        tt.simulate(problem, tt.Graph.complete(1), method, rounds=2, seed=0)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"kind": "glm", "formula": "died ~ " + "*".join(["age"] * 22)}, "at most 6 factors in a product"),
        ({"kind": "glm", "formula": "died ~ " + "*".join(["(age + sex)"] * 5)}, "must be made of columns"),
        ({"kind": "glm", "formula": "died ~ " + "(" * 3000 + "age" + ")" * 3000}, "must be made of columns"),
        ({"kind": "describe", "bins": 10_000, "by": "code"}, "at most 10,000,000 cells"),
        ({"kind": "describe", "columns": ["age", "age"]}, "`columns` must name each column once"),
        ({"kind": "correlations", "columns": ["age", "age"]}, "`columns` must name each column once"),
    ],
)
def test_a_job_that_asks_for_too_much_is_refused_at_once(asked, match):
    """Before its owner is asked, and without using the time or memory that it asks for."""
    codes = tuple(f"c{k}" for k in range(999))
    fields = (tt.data.Number("age", 0, 110), tt.data.Boolean("sex"), tt.data.Boolean("died"))
    public = PublicTable(tt.data.Schema((*fields, tt.data.Category("code", codes))), None, ("a", "b"))
    (question,) = read_questions([asked], several=False)
    start = time.monotonic()
    with pytest.raises(ParameterError, match=match):
        question.reads(public)
        question.method(public, Spending(1.0, 1e-5, 1))
    assert time.monotonic() - start < 5
