"""The loop of one node: charge before release, and a resumed run repeats every bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
import taciturn.errors
from support.problems import make_sites
from taciturn.admm.node import Node, NodeState, loop
from taciturn.rng import SeededStreams

METHOD = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, tt.NormNoise(3.0), grid=2.0**-30, clip=8.0)
ROUNDS = 7


def make_node(refresh=1):
    problem = tt.Problem(make_sites(n=2), loss=tt.Logistic(), C=20.0, regularization=0.5)
    return Node(
        site=0,
        objective=problem.site(0),
        degree=1,
        tables=METHOD.tables(2, ROUNDS).site(0),
        tol=1e-9,
        streams=SeededStreams(3),
        refresh=refresh,
    )


def start():
    return NodeState.start(np.zeros((1, 6)), np.zeros((1, 6)))


def heard(t):
    return np.full((1, 6), 0.01 * t)


def drive(generator, first, states=None):
    """Send what was heard in each round; return all released vectors and the last state."""
    released = [next(generator)]
    for t in range(first, ROUNDS + 1):
        try:
            released.append(generator.send(heard(t)))
        except StopIteration as end:
            return released, end.value
    raise AssertionError("the loop did not end")


def test_the_charge_comes_before_the_release():
    order = []
    generator = loop(make_node(), start(), charge=lambda charge: order.append(charge.t))
    next(generator)
    assert order == [1]
    generator.send(heard(1))
    assert order == [1, 2]


def test_a_refused_charge_releases_nothing():
    def refuse(charge):
        raise tt.errors.BudgetExceeded("no")

    generator = loop(make_node(), start(), charge=refuse)
    with pytest.raises(tt.errors.BudgetExceeded):
        next(generator)


@pytest.mark.parametrize("refresh", [1, 3])
def test_resuming_after_a_round_repeats_every_bit(refresh):
    whole, last = drive(loop(make_node(refresh), start(), charge=lambda charge: None), 1)
    node = make_node(refresh)
    state = start()
    for t, f in enumerate(whole[:3], start=1):
        state = node.dual(state, f, heard(t), t)
    charged = []
    rest, end = drive(loop(node, state, charge=lambda charge: charged.append(charge.t)), 4)
    assert charged == [4, 5, 6, 7]
    assert all(np.array_equal(a, b) for a, b in zip(rest, whole[3:], strict=True))
    assert np.array_equal(end.lam, last.lam) and end.t == ROUNDS


def test_a_round_charged_before_a_crash_is_sent_again_as_it_stands():
    whole, _ = drive(loop(make_node(), start(), charge=lambda charge: None), 1)
    charged = []
    generator = loop(make_node(), start(), charge=lambda charge: charged.append(charge.t), released=whole[0])
    assert next(generator) is whole[0] and charged == []
    assert np.array_equal(generator.send(heard(1)), whole[1]) and charged == [2]


@pytest.mark.parametrize("purpose", ["noise", "output"])
def test_each_round_of_each_site_draws_the_noise_that_it_is_charged_for(purpose):
    """Scales that differ everywhere: a draw with the scale of another site or round is seen."""
    noise = tt.GaussianNoise([tt.Geometric(1.0, 3.0), tt.Geometric(100.0, 5.0)])
    method = tt.PenaltyPerturbation(0.5, 0.5, noise, output_noise=noise)
    asked = []

    class Streams(SeededStreams):
        def vectors(self, purpose, t, sites, scales, out, *, directed):
            asked.append((purpose, t, *sites.tolist()))
            super().vectors(purpose, t, sites, scales, out, directed=directed)

    for site in (0, 1):
        node = replace(make_node(), site=site, tables=method.tables(2, ROUNDS).site(site), streams=Streams(3))
        for t in (1, 2, 5):
            drawn = node._draw(purpose, t)
            unit = np.empty((1, 1, 6))
            SeededStreams(3).vectors(purpose, t, np.array([site]), np.ones(1), unit, directed=False)
            charge = node.charge_of(t)
            scale = charge.scale if purpose == "noise" else charge.output_scale
            assert scale == [1.0, 100.0][site] * [3.0, 5.0][site] ** (t - 1)
            np.testing.assert_allclose(drawn[0], scale * unit[0, 0], rtol=1e-12)
            assert asked[-1] == (purpose, t, site)
