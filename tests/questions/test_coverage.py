"""Every interval of an answer covers the truth because it includes the noise.

`python -m benchmarks.coverage` measures the same with many more samples (docs/howto/evaluate.md).
"""

from __future__ import annotations

import pytest

from benchmarks import coverage

REPEATS, SETTING = 40, ((1_000, 0.5),)


@pytest.mark.parametrize("study", coverage.STUDIES, ids=lambda one: one.__name__)
@pytest.mark.slow
def test_intervals_hold_the_truth_and_would_not_without_the_noise(study, monkeypatch):
    honest = coverage.study(REPEATS, (study,), SETTING)
    monkeypatch.setattr(coverage, "TOLD", 0.01)
    forgotten = coverage.study(REPEATS, (study,), SETTING)
    assert honest
    for kind, ((held, total),) in honest.items():
        ((without, of),) = forgotten[kind]
        assert held / total > 0.85, kind  # binomial(40, 0.95) is below 35 once in a thousand
        assert without / of < held / total - 0.05, kind
