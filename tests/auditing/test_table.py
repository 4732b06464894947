"""The audit as a table, and mu measured from below."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taciturn.auditing.audit import AuditReport, audit, default_cases, markdown
from taciturn.auditing.cases import fine_case, gaussian_case, norm_case
from taciturn.auditing.counting import measure_mu
from taciturn.auditing.masked_audit import regression_case

CLOSE = 1.15  # a certificate of Gaussian noise above so many times what was measured is too loose


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_mu_is_measured_from_below_and_closely(mu):
    rng = np.random.default_rng(3)
    scores = {
        "shift": (rng.normal(mu, 1, 40_000), rng.normal(0, 1, 40_000)),
        "noise": (rng.normal(size=40_000),) * 2,
    }
    found = measure_mu(scores)
    assert 0.85 * mu - 0.05 < found < mu
    assert measure_mu({"noise": (rng.normal(size=40_000), rng.normal(size=40_000))}) < 0.05


def test_gaussian_releases_are_certified_closely_as_the_table_states():
    report = audit([gaussian_case(), fine_case(rounds=1), norm_case()], runs=30_000, seed=1, progress=False)
    gaussian, fine, norm = report.results
    assert report.passed and norm.mu is None
    assert 1 <= gaussian.looseness < CLOSE and 1 <= fine.looseness < CLOSE
    lines = markdown(report).splitlines()
    assert len(lines) == 5 and lines[0].count("|") == lines[4].count("|") == 11
    assert lines[2].startswith("| penalty, Gaussian | 2 | 60,000 | 0.01 |")


def test_measured_mu_detects_half_the_noise():
    case = gaussian_case()
    honest = audit([case], runs=20_000, seed=1, progress=False).results[0]
    loud = audit([gaussian_case(shift=2.0)], runs=20_000, seed=1, progress=False).results[0]
    assert loud.mu > honest.certified_mu > honest.mu


def test_sentence_names_the_bound_that_failed():
    right = audit([gaussian_case()], runs=400, seed=3, progress=False).results[0]
    for changes, words in (
        ({"mu": 3.0}, "'penalty, Gaussian' leaks at least mu = 3.00, above the certified 1."),
        ({"mu": 3.0, "certified": 0.0}, "'penalty, Gaussian' leaks at least epsilon = "),
        ({"ratio": replace(right.ratio, mean=2.0, margin=0.1)}, "does not match the sampler"),
    ):
        report = AuditReport((replace(right, **changes),), 1 - 1e-6, simulated=True)
        assert not report.passed and words in report.sentence()


def test_audit_page_has_every_case_and_gaussian_cases_are_tight():
    page = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
    rows = [
        line.split("|")[1:-1] for line in page.read_text(encoding="utf-8").splitlines() if line[:2] == "| "
    ]
    assert {row[0].strip() for row in rows[1:]} == {case.name for case in default_cases()}
    measured = [row for row in rows[1:] if row[7].strip()]
    assert len(measured) >= 7
    for row in measured:
        low, high, times = (float(cell) for cell in row[7:10])
        most = (
            1.25 if row[0].strip() == regression_case().name else CLOSE
        )  # two kinds of sums, two worst cases
        assert low <= high and times <= most and times == pytest.approx(high / low, abs=0.02)
