"""Certificates of earlier formats verify by their own rules, with a note on what newer ones add."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from support.example_run import certificate, run_facts
from support.forger import signed
from taciturn.core.errors import CertificateError, ParameterError, TaciturnWarning
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.released import Released

FORMAT_1 = Path(__file__).with_name("format_1")
NAMES = ("gaussian", "masked", "masked_fit", "penalty_ended_early", "real_with_budget", "score")


@pytest.mark.parametrize("name", NAMES)
def test_format_1_verifies_with_a_note(name: str) -> None:
    text = (FORMAT_1 / f"{name}.json").read_text()
    found = Certificate.from_json(text)
    with pytest.warns(TaciturnWarning) as notes:
        found.verify()
    assert any("is an earlier format" in str(note.message) for note in notes)
    assert found.to_json() == text and found.released is None
    body = json.loads(text)
    body["epsilon"] *= 0.9
    with pytest.raises(CertificateError, match="`epsilon` is stated as"):
        Certificate.from_json(json.dumps(signed(body))).check()


def test_an_early_end_counts_its_charged_rounds_in_format_1() -> None:
    found = Certificate.from_json((FORMAT_1 / "penalty_ended_early.json").read_text())
    now = certificate(rounds=2, planned=5)
    assert found.epsilon == pytest.approx(now.charged_epsilon, rel=1e-9) and found.epsilon < now.epsilon / 1.2


def test_relation_in_the_words_of_format_1_is_kept() -> None:
    """Earlier certificates about persons state the same relation in other words."""
    old = "all records of one person replaced by others, their number too; held by at most one site in all"
    facts = run_facts(unit="person", persons=60, rows_per_person=2)
    assert run_facts(unit="person", persons=60, rows_per_person=2, relation=old).relation == old
    assert facts.relation.endswith("at most one site may hold them")
    with pytest.raises(ParameterError, match="`relation` must agree"):
        run_facts(unit="person", persons=60, rows_per_person=2, relation=old.replace("one site", "2 sites"))


def test_verify_says_that_texts_of_another_version_were_not_compared() -> None:
    body = json.loads(certificate().to_json())
    body["run"]["versions"]["taciturn"] = "0.0.1"
    body["statement"] = "All is well."
    found = Certificate.from_json(json.dumps(signed(body)))
    with pytest.warns(TaciturnWarning, match="version '0.0.1' of.*texts in the file were not compared"):
        found.verify()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate().verify()


@pytest.mark.parametrize(
    "released",
    [
        Released.model([[1.0] * 7], [0.0]),
        Released.of("vectors", [[[1.0] * 105]]),
        Released.of("counts", [1.0, 2.0]),
    ],
    ids=["width", "sites", "kind"],
)
def test_a_release_that_does_not_fit_the_facts_is_refused(released: Released) -> None:
    body = json.loads(certificate().to_json())
    body["released"] = released.to_plain()
    with pytest.raises(CertificateError, match="does not fit the facts"):
        Certificate.from_json(json.dumps(signed(body))).check()
    with pytest.raises(CertificateError, match="does not fit the facts"):
        certificate().of(released)


def test_planned_certificate_names_no_release() -> None:
    from taciturn.privacy.facts import PLANNED

    planned = certificate(simulated=False, marks=(PLANNED,))
    with pytest.raises(CertificateError, match="does not fit"):
        planned.of(Released.model([[1.0] * 105], [0.0]))
    with pytest.raises(CertificateError, match="does not say what was released"):
        planned.check_released(Released.model([[1.0] * 105], [0.0]))
