"""The loop of one node: charge before release, and a resumed run repeats every bit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
import taciturn.errors
from support.problems import make_sites
from taciturn.admm.node import Node, NodeState, loop
from taciturn.privacy.release import drive
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


def free(release):
    """Commits nothing."""


def drive_all(rounds):
    """All releases of a loop that hears `heard(t)`, and its last state."""
    releases = []

    def exchange(release):
        releases.append(release)
        return heard(release.t)

    return releases, drive(rounds, exchange)


def same(first, second):
    """Equal to the last bit, states included."""
    return (
        first.charge == second.charge
        and np.array_equal(first.message, second.message)
        and equal_states(first.state, second.state)
    )


def equal_states(a, b):
    return a.t == b.t and all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("f", "lam", "heard"))


def test_the_commit_comes_before_the_release():
    order = []
    rounds = loop(make_node(), start(), commit=lambda release: order.append(release.t))
    next(rounds)
    assert order == [1]
    rounds.send(heard(1))
    assert order == [1, 2]


def test_what_is_committed_is_what_is_yielded():
    committed = []
    releases, _ = drive_all(loop(make_node(), start(), commit=committed.append))
    assert len(releases) == ROUNDS and all(a is b for a, b in zip(releases, committed, strict=True))
    assert [release.charge for release in releases] == [
        make_node().charge_of(t) for t in range(1, ROUNDS + 1)
    ]


def test_a_refused_commit_releases_nothing():
    def refuse(release):
        raise tt.errors.BudgetExceeded("no")

    with pytest.raises(tt.errors.BudgetExceeded):
        next(loop(make_node(), start(), commit=refuse))


def test_a_release_carries_the_state_after_the_round_before():
    releases, last = drive_all(loop(make_node(), start(), commit=free))
    lam = np.zeros((1, 6))
    for before, release in itertools.pairwise(releases):
        lam = lam + 0.25 * (before.message - heard(before.t))
        assert release.state.t == before.t and np.array_equal(release.state.f, before.message)
        assert np.array_equal(release.state.heard, heard(before.t))
        np.testing.assert_allclose(release.state.lam, lam, rtol=0, atol=1e-12)
    assert last.t == ROUNDS and np.array_equal(last.f, releases[-1].message)


@pytest.mark.parametrize("refresh", [1, 3])
def test_a_loop_begun_with_a_stored_state_repeats_every_bit(refresh):
    whole, last = drive_all(loop(make_node(refresh), start(), commit=free))
    charged = []
    rounds = loop(make_node(refresh), whole[3].state, commit=lambda release: charged.append(release.t))
    rest, end = drive_all(rounds)
    assert charged == [4, 5, 6, 7]
    assert all(same(a, b) for a, b in zip(rest, whole[3:], strict=True)) and equal_states(end, last)


def test_a_round_committed_before_a_crash_is_sent_again_as_it_stands():
    whole, _ = drive_all(loop(make_node(), start(), commit=free))
    charged, sent = [], whole[0].message
    rounds = loop(make_node(), start(), commit=lambda release: charged.append(release.t), released=sent)
    assert next(rounds).message is sent and charged == []
    assert same(rounds.send(heard(1)), whole[1]) and charged == [2]


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
            noise = node._noise(t)
            drawn = noise.inside()[0] if purpose == "noise" else noise.release(np.zeros((1, 1, 6)))[0]
            unit = np.empty((1, 1, 6))
            SeededStreams(3).vectors(purpose, t, np.array([site]), np.ones(1), unit, directed=False)
            charge = node.charge_of(t)
            scale = charge.scale if purpose == "noise" else charge.output_scale
            assert scale == [1.0, 100.0][site] * [3.0, 5.0][site] ** (t - 1)
            np.testing.assert_allclose(drawn[0], scale * unit[0, 0], rtol=1e-12)
            assert asked[-1] == (purpose, t, site)
