"""Noise on the integers: the exact law, to the last bit, from a source that never repeats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from taciturn.core.errors import ParameterError
from taciturn.privacy import discrete
from taciturn.privacy.discrete import discrete_gaussian, discrete_laplace, draw_steps
from taciturn.rng import SecureStreams

RARE = 1e-9


def fresh():
    return SecureStreams().generator(repeat=0, site=0, purpose="output", t=1)


def misfit(drawn, weight):
    """The p-value of a chi-square test of whole numbers against their law, tails put together."""
    n = np.arange(-400, 401)
    chance = weight(n.astype(np.float64))
    chance /= chance.sum()
    count = np.bincount(np.clip(drawn, -400, 400) + 400, minlength=801)
    keep = chance * len(drawn) > 20
    seen = [*count[keep], count[~keep].sum()]
    wanted = np.array([*chance[keep], chance[~keep].sum()]) * len(drawn)
    if wanted[-1] < 20:
        seen, wanted = seen[:-1], wanted[:-1] * (sum(seen[:-1]) / wanted[:-1].sum())
    return stats.chisquare(seen, wanted).pvalue


@pytest.mark.parametrize("s", [0.4, 1.0, 2.5, 17.3])
def test_the_discrete_gaussian_has_its_law(s):
    drawn = discrete_gaussian(fresh(), s, 200_000)
    assert misfit(drawn, lambda n: np.exp(-(n**2) / (2 * s * s))) > RARE
    assert misfit(drawn, lambda n: np.exp(-(n**2) / (2 * (0.95 * s) ** 2))) < RARE, "5% less noise is seen"


@pytest.mark.parametrize("s", [1, 3, 20])
def test_the_discrete_laplace_has_its_law(s):
    drawn = discrete_laplace(fresh(), float(s), 200_000)
    assert misfit(drawn, lambda n: np.exp(-np.abs(n) / s)) > RARE
    assert misfit(drawn, lambda n: np.exp(-np.abs(n) / (0.95 * s))) < RARE


@pytest.mark.parametrize("size", [1, 3])
def test_every_place_of_a_short_vector_has_the_law_and_places_are_independent(size):
    """Some candidates are drawn in advance; the choice among them must not depend on their values."""
    drawn = np.array([discrete_gaussian(fresh(), 2.5, size) for _ in range(3000)])
    assert drawn.shape == (3000, size)
    for place in drawn.T:
        assert misfit(place, lambda n: np.exp(-(n**2) / (2 * 2.5**2))) > RARE
    if size > 1:
        seen = stats.contingency.crosstab(np.sign(drawn[:, 0]), np.sign(drawn[:, -1])).count
        assert stats.chi2_contingency(seen).pvalue > RARE


def test_the_noise_of_a_round_takes_few_calls(monkeypatch):
    """Each call takes a dozen numpy operations, which cost more than drawing 105 numbers."""
    real, calls = discrete._falls, []
    monkeypatch.setattr(discrete, "_falls", lambda *args: calls.append(args) or real(*args))
    for _ in range(100):
        discrete_gaussian(fresh(), 1e5, 105)
    assert 300 <= len(calls) < 500


@pytest.mark.parametrize("s", [2.0**20, 2.0**45 + 0.5])
def test_wide_noise_is_gaussian(s):
    drawn = discrete_gaussian(fresh(), s, 50_000)
    assert stats.kstest(drawn / s, "norm").pvalue > RARE


def test_opendp_draws_the_same_law():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    for s in (3.0, 1000.0):
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        theirs = np.array(dp.m.make_gaussian(*space, scale=s)([0] * 20_000))
        ours = discrete_gaussian(fresh(), s, 100_000)
        edges = np.unique(np.quantile(theirs, np.linspace(0, 1, 30)[1:-1], method="lower"))  # whole
        table = [
            np.bincount(np.searchsorted(edges, part), minlength=len(edges) + 1) for part in (ours, theirs)
        ]
        assert stats.chi2_contingency(table).pvalue > RARE


def test_coins_that_floats_cannot_decide_are_decided_exactly(monkeypatch):
    """Every coin is tossed exactly: the distribution stays the same, also for numbers beyond floats."""
    monkeypatch.setattr(discrete, "_NEAR", 2.0)
    drawn = discrete_gaussian(fresh(), 2.5, 3_000)
    assert misfit(drawn, lambda n: np.exp(-(n**2) / 12.5)) > RARE
    wide = discrete_gaussian(fresh(), 2.0**40 + 0.25, 500)
    assert stats.kstest(wide / 2.0**40, "norm").pvalue > RARE


class Words:
    """A generator that draws these words, one after the other."""

    def __init__(self, *words):
        self.words = list(words)

    def integers(self, low, high, size, dtype):
        return np.array([self.words.pop(0) for _ in range(size)], dtype=dtype)


@pytest.mark.parametrize(("more", "answer"), [(0, True), (2**64 - 1, False)])
def test_a_coin_that_floats_cannot_decide_asks_for_more_bits(more, answer):
    """The drawn bits equal the first 64 bits of exp(-1): only further bits decide the coin."""
    generator = Words(0x5E2D58D8B3BCDF1A, more)
    fell = discrete._falls(generator, np.ones(1), lambda k: Fraction(1))
    assert fell.tolist() == [answer] and generator.words == []


def test_the_exact_answer_is_that_of_the_bits():
    """exp(-1) = 0.36787944117144232159..., to more digits than a float has."""
    first = 0x5E2D58D8B3BCDF1A  # the first 64 bits of exp(-1)
    assert (
        Fraction(first, 2**64)
        < Fraction("0.36787944117144232159552377016146086745")
        < Fraction(first + 1, 2**64)
    )
    assert discrete._below(fresh(), first - 1, Fraction(1)) is True
    assert discrete._below(fresh(), first + 1, Fraction(1)) is False
    assert {discrete._below(fresh(), first, Fraction(1)) for _ in range(200)} == {True, False}
    low, high = discrete._bracket(Fraction(355, 113), 60)
    assert 0 < high - low < Fraction(1, 10**45)


def test_steps_of_the_grid_have_the_scale_that_is_charged():
    grid = 2.0**-20
    gaussian = draw_steps("gaussian", fresh(), 1e-3, grid, 4, 20_000).ravel() * grid
    assert stats.kstest(gaussian / 1e-3, "norm").pvalue > RARE
    laplace = draw_steps("norm", fresh(), 50.0, grid, 4, 20_000).ravel() * grid
    assert stats.kstest(laplace / (2.0 / 50.0), "laplace").pvalue > RARE


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), 2.0**51])
def test_unusable_noise_scales_are_refused(bad):
    with pytest.raises(ParameterError, match="`scale`"):
        discrete_gaussian(fresh(), bad, 1)
