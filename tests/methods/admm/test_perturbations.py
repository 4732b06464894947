"""Methods: spread over sites and rounds, checked before anything runs."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError

NOISE = tt.NormNoise(rate=3.0)


def test_admm_uses_its_penalty_as_dual_step():
    tables = tt.ADMM(penalty=0.5).tables(3, 4)
    assert (tables.eta == 0.5).all() and (tables.theta == 0.5).all() and not tables.private


def test_schedules_may_differ_by_site_and_round():
    tables = tt.MADMM(
        penalty=[tt.Geometric(0.55, 1.01), 0.6, tt.Table([0.6, 0.7])],
        dual_step=[0.5, tt.Geometric(0.4, 1.1), 0.3],
    ).tables(3, 3)
    np.testing.assert_allclose(tables.eta[0], [0.55, 0.5555, 0.561055])
    np.testing.assert_allclose(tables.eta[2], [0.6, 0.7, 0.7])
    np.testing.assert_allclose(tables.theta[1], [0.4, 0.44, 0.484])


def test_a_list_must_have_one_entry_per_site():
    with pytest.raises(ParameterError, match=r"`penalty` must have one entry for each of the 5 sites; got 3"):
        tt.MADMM(penalty=[0.5, 0.5, 0.5], dual_step=0.5).tables(5, 2)


def test_a_schedule_that_overflows_is_refused_before_the_run():
    with pytest.raises(ParameterError, match=r"`penalty` must stay finite"):
        tt.MADMM(penalty=tt.Geometric(0.5, 10.0), dual_step=0.5).tables(2, 400)


@pytest.mark.parametrize("penalty", [0, -1.0, float("nan"), float("inf"), "0.5", True])
def test_a_penalty_must_be_a_positive_number(penalty):
    with pytest.raises(ParameterError, match="`penalty`"):
        tt.ADMM(penalty=penalty).tables(2, 1)


@pytest.mark.parametrize("name", ["clip", "grid"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_clip_and_grid_must_be_above_zero(name, value):
    with pytest.raises(ParameterError, match=f"`{name}` must be"):
        tt.DualPerturbation(0.5, NOISE, **{name: value})


def test_clip_must_lie_on_the_grid():
    with pytest.raises(
        ParameterError, match=r"`clip` must be a whole multiple of `grid` = 0.25; got 1.1. Use 1\."
    ):
        tt.DualPerturbation(0.5, NOISE, grid=0.25, clip=1.1)


def test_noise_must_be_a_noise():
    with pytest.raises(ParameterError, match="`noise` must be NormNoise or GaussianNoise; got float"):
        tt.PenaltyPerturbation(0.5, 0.5, 3.0).tables(2, 1)
