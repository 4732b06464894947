"""Masked sums: exact, with noise of the right size, without overflow of 64 bits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from support.masking import all_keys
from taciturn.core.errors import ParameterError
from taciturn.methods.sums import sums as discrete
from taciturn.methods.sums.program import SumPlan, fix_sums, pair_graph
from taciturn.methods.sums.sums import add_mask, add_up, check_room, grid_for, open_sum, to_integers
from taciturn.rng import SecureStreams, SeededStreams


@settings(max_examples=40, deadline=None)
@given(sites=st.integers(2, 6), seed=st.integers(0, 2**32), size=st.sampled_from([1e-9, 1.0, 1e9]))
def test_the_sum_is_that_of_the_integers(sites, seed, size):
    rng = np.random.default_rng(seed)
    h, grid = size * rng.standard_normal((sites, 1, 7)), grid_for(size / 100, 7)
    noise = rng.integers(-(2**30), 2**30, size=h.shape)
    values = [to_integers(share, grid) for share in h]
    masks = [keys.mask(1, "sum", (1, 7)) for keys in all_keys(sites)]
    messages = [add_mask(v + z, mask) for v, z, mask in zip(values, noise, masks, strict=True)]
    total = add_up(messages)
    np.testing.assert_array_equal(total, add_up(messages[::-1]))
    exact = np.array(values).astype(object).sum(axis=0) + noise.astype(object).sum(axis=0)
    np.testing.assert_array_equal(open_sum(total, grid), exact.astype(float) * grid)
    assert np.max(np.abs(open_sum(total, grid) - h.sum(axis=0) - grid * noise.sum(axis=0))) <= sites * grid


def test_negative_sums_come_back_negative():
    message = add_mask(np.array([-2, -2]), np.zeros(2, dtype=np.uint64))
    assert open_sum(message, 0.5).tolist() == [-1.0, -1.0]


@given(st.floats(1e-12, 1e3), st.integers(1, 10**6))
def test_rounding_to_the_grid_costs_a_millionth(sensitivity, length):
    grid = grid_for(sensitivity, length)
    assert math.frexp(grid)[0] == 0.5
    assert math.sqrt(length) <= 1e-6 * sensitivity / grid


def test_a_sum_that_could_wrap_around_is_refused():
    check_room(2.0**40, grid=2.0**-20, sites=10, std=2.0**50)
    for changed in ({"largest": 2.0**43}, {"std": 2.0**55}, {"sites": 2**14}):
        facts = {"largest": 2.0**40, "grid": 2.0**-20, "sites": 10, "std": 2.0**50, **changed}
        with pytest.raises(ParameterError, match="too fine"):
            check_room(facts.pop("largest"), **facts)
    with pytest.raises(ParameterError, match="too fine"):
        to_integers(np.array([1.0]), 2.0**-63)
    with pytest.raises(ParameterError, match="too fine"):
        to_integers(np.array([np.nan]), 1.0)


@pytest.mark.parametrize("streams", [SecureStreams(), SeededStreams(3)])
def test_noise_is_gaussian_of_the_stated_size(streams):
    std = 2.0**17 + 0.5
    drawn = discrete.draw(streams, std, (4, 500), site=0, t=1)
    assert drawn.dtype == np.int64
    assert stats.kstest(drawn.ravel() / std, "norm").pvalue > 1e-9
    assert stats.chi2(2000).cdf(np.square(drawn / std).sum()) > 1e-9
    low_bits = np.bincount(drawn.ravel() % 8, minlength=8)
    assert stats.chisquare(low_bits).pvalue > 1e-9


def test_seeded_noise_repeats_and_secret_noise_does_not():
    def draw(streams, **where):
        return discrete.draw(streams, 2.0**45, (1, 20), **{"site": 0, "t": 1, **where})  # no two alike

    np.testing.assert_array_equal(draw(SeededStreams(3)), draw(SeededStreams(3)))
    for other in (draw(SeededStreams(4)), draw(SeededStreams(3), site=1), draw(SeededStreams(3), t=2)):
        assert not np.any(other == draw(SeededStreams(3)))
    secret = draw(SecureStreams())
    assert not np.any(secret == draw(SecureStreams()))


@pytest.mark.parametrize("std", [1000.0, 2.0**53, math.inf, 0.0])
def test_noise_outside_its_range_is_refused(std):
    with pytest.raises(ParameterError, match="`std`"):
        discrete.draw(SeededStreams(0), std, (1, 1), site=0, t=1)


def test_a_sum_that_could_wrap_around_is_refused_when_its_noise_is_set():
    plan = SumPlan("gradient", 3, sensitivity=1e-3, stray=0.0, largest=1.0, share=1.0)
    budget = {"epsilon": 1.0, "delta": 1e-5, "pairs": pair_graph(3, 1), "colluding": 1}
    assert fix_sums([plan], **budget)[0].length == 3
    with pytest.raises(ParameterError, match="is too fine"):
        fix_sums([replace(plan, largest=1e30)], **budget)
