"""Survival from noisy counts: equal to lifelines without noise, and with valid bands under noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from lifelines import KaplanMeierFitter
    from lifelines.statistics import logrank_test

HORIZON, BINS = 24.0, 12


def study(rows, seed=0, hazard=1 / 20):
    """Times of events and of censoring, whichever comes first."""
    rng = np.random.default_rng(seed)
    event, censored = rng.exponential(1 / hazard, rows), rng.uniform(0, 40, rows)
    return np.minimum(event, censored), event <= censored


def asked(time, event, **options):
    usual = {"horizon": HORIZON, "bins": BINS, "colluding": 1, "random_state": 0, "large_delta": True}
    return tt.private_survival(time, event, **(usual | options))


def test_without_noise_the_curve_is_that_of_lifelines_on_the_same_intervals():
    time, event = study(4000)
    found = asked(time, event, epsilon=50)
    step = HORIZON / BINS
    late = time > HORIZON
    ends = np.minimum(np.ceil(time / step) * step, HORIZON)
    fitted = KaplanMeierFitter().fit(ends, event & ~late)
    oracle = fitted.predict(found.all.times[:-1])
    np.testing.assert_allclose([e.value for e in found.all.survival[:-1]], oracle, atol=2e-3)
    assert found.all.events.sum() == pytest.approx(np.sum(event & ~late), abs=12)


def test_fine_intervals_meet_the_curve_of_exact_times():
    time, event = study(20_000)
    found = asked(time, event, epsilon=50, bins=240)
    fitted = KaplanMeierFitter().fit(np.minimum(time, HORIZON), event & (time <= HORIZON))
    values = np.array([e.value for e in found.all.survival])
    np.testing.assert_allclose(values, fitted.predict(found.all.times), atol=6e-3)


@pytest.mark.parametrize("epsilon", [1.0, 50.0])
def test_bands_reach_their_stated_coverage(epsilon):
    """At level 0.9, binomial(60, 0.9) is above 45 but once in a thousand, at every time."""
    held = np.zeros(BINS, dtype=int)
    for seed in range(60):
        time, event = study(1500, seed + 100)
        found = asked(time, event, epsilon=epsilon, level=0.9, random_state=seed).all
        truth = np.exp(-found.times / 20)
        held += [e.low <= s <= e.high for e, s in zip(found.survival, truth, strict=True)]
    assert (held >= 46).all()
    assert held.min() < 60 or epsilon > 1  # and are no wider than they need be


def test_log_rank_test_detects_a_difference_with_few_false_positives():
    time, event = study(3000, 1)
    slow, other = study(3000, 2, hazard=1 / 30)
    group = np.repeat(["a", "b"], 3000)
    both = np.concatenate([time, slow]), np.concatenate([event, other])
    options = {"group": group, "groups": ["a", "b"]}
    found = asked(*both, epsilon=1.0, **options)
    assert found.p_value < 0.01 and found["a"].median.value < found["b"].median.value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert logrank_test(time, slow, event, other).p_value < 0.01
    low = 0
    for seed in range(60):
        time, event = study(1000, seed + 500)
        group = np.random.default_rng(seed).choice(["a", "b"], 1000)
        options = {"group": group, "groups": ["a", "b"], "random_state": seed}
        low += asked(time, event, epsilon=1.0, **options).p_value < 0.1
    assert low <= 15  # binomial(60, 0.1)


def test_each_group_is_counted_once_and_groups_add_up():
    time, event = study(3000)
    group = np.where(np.arange(3000) < 1000, "a", "b")
    found = asked(time, event, epsilon=50, group=group, groups=["a", "b"])
    assert found["a"].at_risk[0] == pytest.approx(1000, abs=15)
    assert found["b"].at_risk[0] == pytest.approx(2000, abs=15)
    assert found.all.at_risk[0] == pytest.approx(3000, abs=25)


def test_noise_above_the_signal_is_reported():
    time, event = study(60)
    found = asked(time, event, epsilon=0.05, colluding=None)
    assert found.all.survival[-1].low == 0 and found.all.survival[-1].high > 0.9


def test_invalid_question_is_refused_by_name():
    time, event = study(100)
    with pytest.raises(ParameterError, match="`group` and `groups`"):
        asked(time, event, epsilon=1.0, group=np.repeat("a", 100))
    with pytest.raises(ParameterError, match="`horizon`"):
        asked(time, event, epsilon=1.0, horizon=0)


def test_survival_has_a_table_and_a_plot():
    time, event = study(500)
    found = asked(time, event, epsilon=1.0, bins=4)
    head, *rows = found.table()
    assert head[0] == "group" and len(rows) == 4 and "0.0" not in found.csv().splitlines()[1][:3]
    assert found.plot() is not None and "Survival of 500 records" in found._repr_html_()


def test_picture_of_many_groups_tells_every_curve_apart_and_starts_at_zero():
    time, event = study(4000)
    names = [f"stage {k}" for k in range(8)]
    found = asked(time, event, epsilon=50, group=np.resize(names, 4000), groups=names)
    (axes,) = found.plot().axes
    lines = axes.get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 8
    assert axes.get_ylim()[0] == 0.0
    for line, curve in zip(lines, found.groups.values(), strict=True):
        assert line.get_drawstyle() == "default", "between the ends of intervals, survival is not constant"
        np.testing.assert_array_equal(line.get_ydata(), [1.0, *(e.value for e in curve.survival)])
