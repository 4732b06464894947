"""Masked sums under audit: the bound is nearly reached, and each of four planted bugs is caught."""

from dataclasses import replace

import numpy as np
import pytest

from taciturn.auditing.audit import audit
from taciturn.auditing.masked_audit import MaskedCase, masked_case, whitened_case
from taciturn.methods.programs.descent_rows import WhitenedShare
from taciturn.methods.sums import masks
from taciturn.methods.sums import sums as discrete
from taciturn.privacy.ledger.memory import MemoryLedger

RUNS = 50_000  # the audit's default


def pulled_case(sites: int = 40, epsilon: float = 2.0, delta: float = 0.2) -> MaskedCase:
    """Many sites: one site's messages of two rounds are compared; its record shows in one of them only."""
    case = masked_case(epsilon, delta)
    return replace(
        case,
        method=replace(case.method, connectivity=2),
        name="masked sums, one site's messages",
        about=f"a record against none, {sites} sites, pulled to where the record is flat",
        samples=(2,) * sites,
        new=0.0,
        pull=-1e3,
    )


def found(case, runs=RUNS, seed=5):
    return audit([case], runs=runs, seed=seed).results[0]


def test_a_rushing_colluder_nearly_reaches_the_certificate_and_never_passes_it():
    result = found(masked_case())  # at the audit's usual number of runs
    assert result.passed and result.certified == pytest.approx(2.0, rel=1e-6)
    assert result.measured.epsilon > 0.9 * result.certified
    assert result.measured.score == "honest sums"


def test_whitened_descent_nearly_reaches_its_certificate_and_never_passes_it():
    result = found(whitened_case())
    assert result.passed and result.certified == pytest.approx(2.0, rel=1e-6)
    assert result.measured.epsilon > 0.9 * result.certified


def test_a_doubled_clip_is_caught(monkeypatch):
    """Slopes are clipped at twice q, so the sums move twice as far as their noise covers."""
    whole = WhitenedShare.gradient

    def doubled(self, at, f, limits):
        return whole(self, at, f, np.minimum(1.0, 2.0 * limits))

    monkeypatch.setattr(WhitenedShare, "gradient", doubled)
    result = found(whitened_case())
    assert result.measured.epsilon > result.certified


def test_messages_of_a_single_site_reveal_nothing():
    result = found(pulled_case(), runs=20_000)
    assert result.passed


def test_without_the_colluder_cancelling_noise_the_record_is_harder_to_detect():
    """The colluder cancels the noise of round 2; where it pulls away instead, the record is half as steep."""
    led, pulled = (found(case, runs=RUNS) for case in (masked_case(), replace(masked_case(), pull=-1e3)))
    assert pulled.passed and pulled.measured.epsilon < 0.8 * led.measured.epsilon


def test_certificate_that_counts_too_few_colluders_is_caught():
    case = masked_case()
    result = found(replace(case, method=replace(case.method, colluding=0)))
    assert result.measured.epsilon > result.certified


def test_half_the_noise_is_caught(monkeypatch):
    whole = discrete.draw

    def half(*args, **kwargs):
        return whole(*args, **kwargs) // 2

    monkeypatch.setattr(discrete, "draw", half)
    result = found(masked_case())
    assert result.measured.epsilon > result.certified


def test_a_mask_used_twice_is_caught(monkeypatch):
    """With fixed keys and labels without a round, round 3 repeats the masks of round 2."""

    def stays(self):
        self._used.clear()
        self.t += 1

    monkeypatch.setattr(masks, "label_bytes", lambda *label: b"any round")
    monkeypatch.setattr(masks.PairKeys, "advance", stays)
    result = found(pulled_case())
    assert result.measured.epsilon > result.certified
    assert result.measured.score == "one site's messages"


def test_a_round_that_was_not_charged_is_caught(monkeypatch):
    charge = MemoryLedger.charge_round

    def forgets(self, charges):
        if charges.t < 3:
            charge(self, charges)

    monkeypatch.setattr(MemoryLedger, "charge_round", forgets)
    result = found(masked_case())
    assert result.measured.epsilon > result.certified


def test_secret_noise_is_drawn_exactly():
    """Without a seed, the audit uses the sampler of real runs."""
    drawn = []
    exact = discrete.draw_secret
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrete, "draw_secret", lambda std, size: drawn.append(size) or exact(std, size))
        report = audit([masked_case()], runs=200)
    assert report.passed and not report.simulated
    assert np.sum(drawn) == 2 * 2 * 3 * 4 * 200  # data sets, honest sites, rounds, runs, four times as many
