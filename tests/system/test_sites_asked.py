"""Questions between real sites: one meeting, one budget, and the answers of one process to the last bit."""

from __future__ import annotations

import json

import numpy as np
import pytest

import taciturn as tt
from support.asked import NAMES, SCHEMA, make_asked, patients
from taciturn.jobs.verify_run import verify_run
from taciturn.sites.trial.rehearsal import run_processes

pytestmark = pytest.mark.process

ASKED = [
    {"kind": "describe", "columns": ["age", "sex"], "by": "sex"},
    {"kind": "survival", "time": "months", "event": "died", "bins": 6},
    {"kind": "correlations", "columns": ["age", "pressure"]},
]


def answered(paths):
    """What every site holds at the end: the same bytes."""
    with run_processes(paths) as processes:
        codes = [process.wait(timeout=120) for process in processes]
    logs = [(path.parent / "log.txt").read_text() for path in paths]
    assert codes == [0] * len(paths), logs
    found = [(path.parent / "state" / "result.json").read_bytes() for path in paths]
    assert all(one == found[0] for one in found)
    for path in paths:
        verify_run(path.parent / "state")
    return json.loads(found[0])


def pooled(tables):
    return {name: [cell for table in tables for cell in table[name]] for name in tables[0]}


def test_several_questions_between_sites_are_those_of_one_process(tmp_path):
    from taciturn.questions.kinds import read_questions
    from taciturn.questions.question import PublicTable
    from taciturn.statistics.counting import CountWishes, ask_here

    tables = [patients(300, seed) for seed in range(3)]
    job = {"kind": "several", "questions": ASKED, "seed": 5, "colluding": 1}
    paths = make_asked(tmp_path, tables, job=job)
    result = answered(paths)
    public = PublicTable(tt.data.Schema.from_dict(SCHEMA), None, NAMES)
    wishes = CountWishes(2.0, site=np.repeat(NAMES, 300), colluding=1, random_state=5)
    here = ask_here(read_questions(ASKED, several=True), public, pooled(tables), 900, wishes, "here")
    for told, own in zip(result["answers"], here, strict=True):
        assert {key: told[key] for key in own.facts()} == json.loads(json.dumps(own.facts()))
    files = {path.name for path in (paths[0].parent / "state").iterdir()}
    assert {"1-describe.html", "2-survival.png", "3-correlations.csv", "statement.json"} <= files


def test_one_site_alone_answers_with_its_own_noise(tmp_path):
    tables = [patients(400)]
    result = answered(make_asked(tmp_path, tables, job={"kind": "describe"}))
    mean = result["answers"][0]["columns"]["pressure"]["mean"]
    assert mean["low"] < np.mean(tables[0]["pressure"]) < mean["high"] and not result["simulated"]


def test_a_regression_between_sites_is_that_of_one_process(tmp_path):
    tables = [patients(1500, seed) for seed in range(3)]
    asked = {"formula": "pressure ~ age + sex + site", "family": "gaussian"}
    job = {"kind": "glm", "glm": asked, "seed": 5, "colluding": 1, "epsilon": 5.0}
    (told,) = answered(make_asked(tmp_path, tables, job=job))["answers"]
    schema = tt.data.Schema.from_dict(SCHEMA)
    model = tt.PrivateGLM.from_formula(
        asked["formula"], schema, family="gaussian", epsilon=5.0, random_state=5
    )
    own = model.fit(pooled(tables), site=np.repeat(NAMES, 1500)).summary().facts()
    assert {key: told[key] for key in own} == json.loads(json.dumps(own))
