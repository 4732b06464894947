"""The paper's method on whitened rows nearly reaches its certificate, and planted bugs are caught."""

from dataclasses import replace

import pytest

from taciturn.auditing import observer
from taciturn.auditing.audit import audit
from taciturn.auditing.cases import moments_case, whitened_penalty_case
from taciturn.core.errors import CertificateError
from taciturn.methods.sums import sums
from taciturn.privacy import costs
from taciturn.privacy.ledger.memory import MemoryLedger


def found(case, seed=5):
    return audit([case], seed=seed, progress=False).results[0]


@pytest.mark.parametrize("case", [whitened_penalty_case(), moments_case()], ids=["rounds", "moments"])
def test_an_observer_nearly_reaches_the_certificate_and_never_passes_it(case):
    result = found(case)
    assert result.passed
    assert result.measured.epsilon > 0.9 * result.certified
    assert result.certified_mu is not None and result.mu > 0.94 * result.certified_mu


def test_rows_clipped_at_twice_the_norm_are_caught(monkeypatch):
    whole = observer.whitened_objective

    def doubled(objective, at):
        made = whole(objective, at)
        parts = tuple(replace(part, rows=replace(part.rows, Z=2.0 * part.rows.Z)) for part in made.parts)
        made.hold(parts)
        return made

    monkeypatch.setattr(observer, "whitened_objective", doubled)
    result = found(whitened_penalty_case())
    assert result.measured.epsilon > 1.5 * result.certified


def test_moments_with_half_of_their_noise_are_caught(monkeypatch):
    draw = sums.draw
    monkeypatch.setattr(
        sums, "draw", lambda streams, std, *args, **more: draw(streams, std / 2, *args, **more)
    )
    result = found(moments_case())
    assert result.measured.epsilon > 1.5 * result.certified


def test_moments_that_cost_nothing_are_caught(monkeypatch):
    monkeypatch.setattr(costs, "moments_mu", lambda run, t: 0.0)
    result = found(moments_case())
    assert result.measured.epsilon > 1.5 * result.certified


def test_moments_that_are_not_charged_certify_nothing(monkeypatch):
    whole = MemoryLedger.charge_round

    def forgetful(self, charges):
        if charges.t > self.run.moments:
            whole(self, charges)

    monkeypatch.setattr(MemoryLedger, "charge_round", forgetful)
    with pytest.raises(CertificateError, match="not for round 1"):
        found(moments_case())
