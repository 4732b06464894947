"""The sums of a regression under audit: each kind of sum reaches its bound, and planted faults are caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taciturn.auditing.audit import audit
from taciturn.auditing.masked_audit import _clean, _path, regression_case
from taciturn.methods.programs import own_program
from taciturn.methods.programs.glm import regression
from taciturn.privacy.ledger.memory import MemoryLedger

LARGEST = 0.843  # of the certified mu: what a pair of records shows in all sums together


def found(case=None, runs=100_000):
    return audit([case or regression_case()], runs=runs, seed=3, confidence=0.9999).results[0]


def moves(case):
    """How far both records are apart in every sum, in units of what is certified: kind -> largest."""
    tables = case.tables()
    moved, _ = _clean(case, tables, _path(case, tables))
    each = {}
    for step, facts, move in zip(tables.program.plan, tables.sums, moved, strict=True):
        share = float(np.linalg.norm(move)) * facts.grid / facts.sensitivity
        each.setdefault(step.name.split()[0], []).append(share)
    return {kind: max(shares) for kind, shares in each.items()}


def test_a_colluder_nearly_reaches_the_certified_epsilon_of_a_regression_and_never_exceeds_it():
    result = found()
    assert result.passed and result.certified == pytest.approx(2.0, rel=1e-6)
    assert 0.95 * LARGEST * result.certified_mu < result.mu < result.certified_mu


def test_every_kind_of_sum_reaches_what_is_certified_for_it():
    """Each kind needs its own pair of records: rows with opposite scores have the same outer product."""
    along, across = (moves(replace(regression_case(), cosine=cosine)) for cosine in (0.999, 0.0))
    assert 0.935 < along["score"] <= 1.0
    for kind in ("moments", "outcome", "hessian", "meat"):
        assert 0.99 < across[kind] <= 1.0


def test_a_doubled_clip_is_caught(monkeypatch):
    whole = own_program.clipped
    monkeypatch.setattr(own_program, "clipped", lambda vectors, bound: 2 * whole(vectors, bound))
    result = found()
    assert result.mu > result.certified_mu


def test_scores_that_are_noised_as_if_they_were_aligned_are_caught(monkeypatch):
    """sqrt 2 instead of 2 is correct for outer products and wrong for residuals, which have two signs."""
    monkeypatch.setattr(regression.RegressionTerm, "aligned", True)
    steps = regression.Regression.steps
    monkeypatch.setattr(
        regression.Regression,
        "steps",
        lambda self, facts: [replace(s, aligned=True) for s in steps(self, facts)],
    )
    result = found(replace(regression_case(), cosine=0.6))
    assert result.mu > result.certified_mu


def test_a_score_that_was_not_charged_is_caught(monkeypatch):
    charge = MemoryLedger.charge_round

    def forgets(self, charges):
        if charges.t < 13:
            charge(self, charges)

    monkeypatch.setattr(MemoryLedger, "charge_round", forgets)
    result = found()
    assert result.mu > result.certified_mu
