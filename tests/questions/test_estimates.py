"""Estimates from noisy counts: their intervals contain the truth as often as they should."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taciturn.questions.estimates import Spread
from taciturn.questions.question import NoisyCounts
from taciturn.questions.shipped.score import summarise


@pytest.mark.parametrize("expected", [0.5, 1.0, 3.0, 100.0, 999.0])
@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_interval_of_a_share_covers_the_truth_if_hardly_any_or_almost_all_units_are_chosen(sigma, expected):
    """With little noise, the interval of a share of 0 would otherwise have almost no width."""
    rng, n, p = np.random.default_rng(0), 1_000, expected / 1_000
    counts = rng.multinomial(n, [p, (1 - p) / 2, (1 - p) / 2], size=1_000)
    chosen = np.array([True, False, False])
    noisy = counts + sigma * rng.standard_normal(counts.shape)
    found = [Spread(sigma, n).share(row, chosen) for row in noisy]
    assert np.mean([one.low <= p <= one.high for one in found]) > 0.93


def test_each_group_states_the_noise_of_its_own_counts():
    """The counts of all rows are sums over the groups, so they have more noise than those of a group."""
    counts = (np.full(12, 100.0),)
    whole, group = (summarise(NoisyCounts(counts, s, 1_200), ("no", "yes"), 4, 0.95) for s in (40.0, 10.0))
    table = replace(whole, groups={"one": group}).table()
    row = next(row for row in table if row[0] == "class no, predicted no")
    assert row[1:] == [f"200 (up to {whole.margin:.0f} off)", f"200 (up to {group.margin:.0f} off)"]
    assert whole.margin == pytest.approx(4 * group.margin)
