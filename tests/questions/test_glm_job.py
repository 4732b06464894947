"""kind = "glm": a regression as a job, in one process and as its public half sees it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from support.asked import NAMES, SCHEMA, patients, to_csv
from taciturn.jobfile.toml_files import write_toml
from taciturn.jobs.statistics import ask_job
from taciturn.jobs.verify_run import verify_run
from taciturn.methods.base import Network
from taciturn.objective.regularizers import L2
from taciturn.questions.asking import Asking
from taciturn.questions.kinds import read_questions
from taciturn.questions.question import PublicTable, SiteTable, Spending

PUBLIC = PublicTable(tt.data.Schema.from_dict(SCHEMA), None, NAMES)
ASKED = {"kind": "glm", "formula": "pressure ~ age + sex + site", "family": "gaussian"}


def write_job(folder, rows, **keys):
    tables = [patients(rows, seed) for seed in range(3)]
    for name, table in zip(NAMES, tables, strict=True):
        (folder / f"{name}.csv").write_text(to_csv(table))
    (folder / "owner.toml").write_text(write_toml({"rows": {n: f"{n}.csv" for n in NAMES}}))
    asked = {key: value for key, value in ASKED.items() if key != "kind"}
    facts = {"format": 2, "name": "q", "schema": SCHEMA, "sites": [{"name": name} for name in NAMES]}
    keys = {"kind": "glm", "glm": asked, "colluding": 1, "seed": 1} | keys
    (folder / "job.toml").write_text(write_toml(facts | keys))
    return folder / "job.toml"


def test_a_job_prints_the_regression_and_verifies(tmp_path):
    (found,), written = ask_job(write_job(tmp_path, 2000, epsilon=5.0))
    assert found.names == ("age", "sex[male]", "site[beta]", "site[gamma]")
    low, high = found.interval(0.999)[0]
    assert low < 0.3 < high and "Complete records: about 5,6" in found.text()
    assert {path.suffix for path in written} == {".txt", ".csv", ".html", ".png", ".json"}
    certificate, said = verify_run(tmp_path / "answers")
    assert certificate.run.rounds == 16 and "result.json" in said[-1]


def test_job_with_too_small_a_budget_reports_it_instead_of_an_answer(tmp_path):
    (found,), written = ask_job(write_job(tmp_path, 60, epsilon=0.5, delta=1e-3))
    assert found.reason and "refused" in found.text() and found.facts()["refused"] == found.reason
    assert ".png" not in {path.suffix for path in written}


@pytest.mark.parametrize("family", ["gaussian", "hazard", "binomial"])
def test_a_unit_moves_each_sum_by_no_more_than_is_charged(family):
    """The farthest neighbours that the schema allows, at the models and coordinates of a run."""
    left = {"gaussian": "pressure", "hazard": "months + died", "binomial": "died"}[family]
    asked = {"kind": "glm", "formula": f"{left} ~ age + sex", "family": family}
    asked |= {"periods": [12.0, 24.0, 48.0]} if family == "hazard" else {}
    asking = Asking(read_questions([asked], several=False), PUBLIC, Spending(1.0, 1e-5, 1))
    network = Network(3, (0, 1, 2), (400, 300, 300), (2, 2, 2), NAMES, 1, None, 1.0, 0.0, L2())
    tables, rng = asking.tables(network), np.random.default_rng(0)
    rows = {name: values[:50] for name, values in patients(50).items()}
    extremes = [
        {"age": 0, "sex": "male", "pressure": 240, "months": 1, "died": "yes"},
        {"age": 110, "sex": "female", "pressure": 60, "months": 48, "died": "no"},
        {"age": 110, "sex": "male", "pressure": 240, "months": 30, "died": "yes"},
        {"age": "", "sex": "", "pressure": "", "months": "", "died": ""},
    ]
    halves = []
    for first in extremes:
        changed = {name: [first[name], *values[1:]] for name, values in rows.items()}
        halves.append(tables.program.private_half(asking.rows(SiteTable(changed, 50)), tables.units))
    state = tables.program.start(1)
    for facts in tables.sums:
        query = tables.program.query(state)
        each = [half.integers(query, facts)[0].astype(float) for half in halves]
        far = max(np.linalg.norm(a - b) for a in each for b in each)
        assert far <= facts.sensitivity / facts.grid + math.sqrt(facts.length)
        noise = rng.normal(0, facts.std * facts.grid, (1, facts.length))
        state = tables.program.advance(state, each[0][None] * facts.grid * 20 + noise)


def test_the_job_of_the_study_page_gives_its_three_tables(tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "study.md").read_text(encoding="utf-8")
    made: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, flags=re.S).group(1), made)
    for name in np.unique(made["hospital"]):
        chosen = {key: cells[made["hospital"] == name] for key, cells in made["table"].items()}
        (tmp_path / f"{name}.csv").write_text(to_csv(chosen))
    rows = {name: f"{name}.csv" for name in np.unique(made["hospital"]).tolist()}
    (tmp_path / "owner.toml").write_text(write_toml({"rows": rows}))
    (tmp_path / "study.toml").write_text("seed = 1\n" + re.search(r"```toml\n(.*?)```", page, re.S).group(1))
    (first, model, survival), written = ask_job(tmp_path / "study.toml")
    assert {"1-describe.svg", "2-glm.txt", "3-glm.txt", "certificate.json"} <= {one.name for one in written}
    assert first["died"].shares["yes"].low < made["died"].mean() < first["died"].shares["yes"].high
    assert not model.reason and not survival.reason and model.names[2] == "log_crp"
    assert model.certificate.epsilon == pytest.approx(2.6, rel=1e-3)
    low, high = model.interval(0.9999)[2]
    assert low < 0.5 < high
