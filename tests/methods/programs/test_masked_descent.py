"""MaskedDescent: the noise of every sum meets the budget against the stated number of colluders."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from taciturn import MaskedDescent
from taciturn.core.errors import ParameterError
from taciturn.methods.programs.masked_descent import PublicFacts
from taciturn.objective import LogCosh, Logistic, SmoothHinge
from taciturn.objective.softmax import Softmax

FACTS = PublicFacts(5, total=40_000, largest=9_000, dimension=20, loss=Logistic(), regularization=0.0)


def spent(tables, sites, colluding):
    """delta(epsilon) by the textbook formula, from nothing but the sums."""
    units = [(s.sensitivity + 2 * s.stray) / s.grid + math.sqrt(s.length) for s in tables.sums]
    squares = [(u / s.std) ** 2 / (sites - colluding) for u, s in zip(units, tables.sums, strict=True)]
    mu = math.sqrt(sum(squares))
    return lambda epsilon: (
        norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    )


@pytest.mark.parametrize("colluding", [0, 1, 3, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_budget_is_spent_and_not_passed(colluding, epsilon):
    tables = MaskedDescent(epsilon=epsilon, delta=1e-6, colluding=colluding).tables(FACTS, 41)
    assert 0.9999e-6 < spent(tables, 5, colluding)(epsilon) <= 1e-6
    if colluding:
        assert spent(tables, 5, colluding - 1)(epsilon) < 0.8e-6
    assert tables.colluding == colluding and tables.rounds == 41


def test_colluding_none_means_all_other_sites():
    all_others = MaskedDescent(colluding=4).tables(FACTS, 41)
    assert MaskedDescent(colluding=None).tables(FACTS, 41).sums == all_others.sums


def test_sparse_masks_protect_against_few_colluders():
    many = replace(FACTS, sites=300)
    tables = MaskedDescent(colluding=2).tables(many, 41)
    assert tables.pairs.connectivity == 3
    assert spent(tables, 300, 2)(1.0) == pytest.approx(1e-5, rel=1e-3)
    alone = MaskedDescent(colluding=3, connectivity=3).tables(many, 41)
    assert spent(alone, 300, 299)(1.0) == pytest.approx(1e-5, rel=1e-3)


@pytest.mark.parametrize(
    "loss", [Logistic(), SmoothHinge(), LogCosh(), Softmax(3)], ids=lambda loss: loss.name
)
@pytest.mark.parametrize("dimension", [3, 256, 257, 3000])
def test_second_moments_of_many_columns_are_not_released(loss, dimension):
    facts = replace(FACTS, loss=loss, dimension=dimension)
    tables = MaskedDescent(constant=0.4).tables(facts, 3)
    first = tables.sums[0]
    full = dimension <= 256
    assert first.part == ("second moments" if full else "means and squares")
    assert first.length == (dimension * (dimension + 1) // 2 if full else 2 * (dimension - 1))
    assert [s.length for s in tables.sums[1:]] == [dimension * facts.outputs] * 2
    assert all(2.0**16 <= s.std <= 2.0**52 for s in tables.sums)


def test_whitened_coordinates_need_twenty_rounds():
    facts = replace(FACTS, total=40_000, largest=20_000, dimension=30)
    method = MaskedDescent(epsilon=4.0, colluding=1)
    assert method.whitens(facts) and method.whitens(facts, 20) and not method.whitens(facts, 19)


def test_the_bounded_loss_needs_half_the_noise():
    half, whole = (MaskedDescent(bounded=b).tables(FACTS, 4).program.noise for b in (True, False))
    assert half[1] == pytest.approx(whole[1], rel=1e-4)  # at 0 the slopes are the same
    assert half[2] == pytest.approx(whole[2] / 2, rel=1e-4)


def test_person_at_several_sites_is_charged_the_rounding_of_each():
    one, three = (MaskedDescent().tables(replace(FACTS, places=k), 3).sums[2] for k in (1, 3))
    assert replace(three, std=one.std) == one
    again = 2 * one.stray / one.grid + math.sqrt(one.length)
    units = one.sensitivity / one.grid
    assert three.std / one.std == pytest.approx((units + 3 * again) / (units + again), rel=1e-12)


def test_noise_in_the_descent_is_that_of_all_sites():
    tables = MaskedDescent().tables(FACTS, 3)
    for entry, noise in zip(tables.sums, tables.program.noise, strict=True):
        assert noise == pytest.approx(entry.grid * entry.std * math.sqrt(5))


class Custom(Logistic):
    """A user's loss."""


@pytest.mark.parametrize(
    ("method", "facts", "rounds", "words"),
    [
        ({}, {}, 2, "`rounds` must be at least 3"),
        ({"colluding": 5}, {}, 41, "`colluding` must be below the number of sites, 5"),
        ({}, {"loss": Custom()}, 41, "`loss` must be"),
        ({"connectivity": 5}, {}, 41, "`connectivity`"),
        ({"constant": 2.0, "full": False}, {}, 41, "`constant`"),
        ({}, {"sites": 1}, 41, "`colluding` must be below the number of sites, 1"),
    ],
)
def test_impossible_settings_are_refused(method, facts, rounds, words):
    with pytest.raises(ParameterError, match=words):
        MaskedDescent(**method).tables(replace(FACTS, **facts), rounds)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"colluding": -1},
        {"share": 0.0},
        {"constant": -1.0},
        {"full": "no"},
        {"bounded": 0},
        {"whiten": "auto"},
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ParameterError, match=f"`{next(iter(wrong))}`"):
        MaskedDescent(**wrong)


def test_only_the_float_error_of_tables_depends_on_the_sites_sizes():
    even, uneven = (MaskedDescent().tables(replace(FACTS, largest=k), 5) for k in (8_000, 39_000))
    for a, b in zip(even.sums, uneven.sums, strict=True):
        assert (a.sensitivity, a.grid) == (b.sensitivity, b.grid)
        assert np.isclose(a.std, b.std, rtol=1e-6)
