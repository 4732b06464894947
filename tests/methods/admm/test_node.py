"""A node of ADMM: the paper's equations, one site or many side by side, and the same bits after a resume."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.methods.admm.node import Node, NodeState
from taciturn.methods.admm.release_noise import RoundNoise
from taciturn.methods.loop import drive, loop
from taciturn.objective.solver.many import ManySites
from taciturn.privacy.noise import draw
from taciturn.rng import SeededStreams

METHOD = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, tt.NormNoise(3.0), grid=2.0**-30, clip=8.0)
PER_SITE = tt.PenaltyPerturbation(
    [tt.Geometric(0.5, 1.04), 0.9, 0.6],
    [0.5, 0.4, 0.3],
    tt.GaussianNoise([0.1, 0.2, 0.3]),
    output_noise=tt.GaussianNoise([0.01, 0.02, 0.03]),
)
ROUNDS, D = 7, 6


def problem_of(n):
    return tt.Problem(make_sites(n=n, d=D), loss=tt.Logistic(), C=20.0, regularization=0.5)


def make_node(refresh=1, *, sites=(0,), of=2, method=METHOD, degree=1, seed=3):
    """Some sites of a network, each with so many neighbours."""
    problem, tables = problem_of(of), method.tables(of, ROUNDS)
    return Node(
        sites=np.array(sites),
        solvers=ManySites([problem.site(i) for i in sites]),
        degrees=np.full(len(sites), degree),
        tables=tables.part(range(sites[0], sites[-1] + 1)),
        tol=1e-9,
        streams=SeededStreams(seed),
        refresh=refresh,
    )


def start(sites=1):
    return NodeState.start(np.zeros((sites, 1, D)), np.zeros((sites, 1, D)))


def heard(t, sites=1):
    return np.full((sites, 1, D), 0.01 * t)


def drive_all(steps, sites=1):
    """What a loop that hears `heard(t)` stores and sends, and its last state."""
    stored, sent = [], []

    def exchange(effect):
        sent.append(effect)
        return heard(effect.t, sites)

    return stored, sent, drive(steps, store=stored.append, exchange=exchange)


def same(first, second):
    """Equal to the last bit, states included."""
    return (
        list(first.charges.each()) == list(second.charges.each())
        and np.array_equal(first.message, second.message)
        and equal_states(first.state, second.state)
    )


def equal_states(a, b):
    return a.t == b.t and all(np.array_equal(getattr(a, x), getattr(b, x)) for x in ("f", "lam", "heard"))


def test_what_is_stored_is_what_is_sent_and_its_charge_is_the_tables_entry():
    stored, sent, _ = drive_all(loop(make_node(), start()))
    assert [effect.t for effect in sent] == list(range(1, ROUNDS + 1))
    assert all(a.message is b.message and a.state is b.state for a, b in zip(stored, sent, strict=True))
    tables = METHOD.tables(2, ROUNDS)
    for t, effect in enumerate(stored, start=1):
        (charge,) = effect.charges.each()
        assert (charge.site, charge.t, charge.eta, charge.scale) == (
            0,
            t,
            tables.eta[0, t - 1],
            tables.scale[0, t - 1],
        )


def test_a_message_carries_the_state_after_the_round_before():
    _, sent, last = drive_all(loop(make_node(), start()))
    lam = np.zeros((1, 1, D))
    for before, effect in itertools.pairwise(sent):
        lam = lam + 0.25 * (before.message - heard(before.t))
        assert effect.state.t == before.t and np.array_equal(effect.state.f, before.message)
        assert np.array_equal(effect.state.heard, heard(before.t))
        np.testing.assert_allclose(effect.state.lam, lam, rtol=0, atol=1e-12)
    assert last.t == ROUNDS and np.array_equal(last.f, sent[-1].message)


def test_each_site_solves_and_steps_as_the_paper_says():
    """[ZKL18, (10), (11) and Algorithm 1] by hand: the gradient of the perturbed objective vanishes."""
    sites, V = (0, 1, 2), 2
    node = make_node(sites=sites, of=3, method=PER_SITE, degree=V)
    _, sent, last = drive_all(loop(node, start(3)), 3)
    tables, problem, states = PER_SITE.tables(3, ROUNDS), problem_of(3), [e.state for e in sent] + [last]
    for i, (t, effect) in itertools.product(sites, enumerate(sent, start=1)):
        before, eta, theta = effect.state, tables.eta[i, t - 1], tables.theta[i, t - 1]
        noises = []
        for noise, purpose, scale in (
            (tables.noise, "noise", tables.scale),
            (tables.output_noise, "output", tables.output_scale),
        ):
            drawn = draw(noise, SeededStreams(3), purpose, t, np.array([i]), scale[i : i + 1, t - 1], (1, D))
            noises.append(drawn[0])
        inside, outside = noises
        solved, f, near = effect.message[i] - outside, before.f[i], before.heard[i]
        gradient = problem.site(i).gradient(solved) + 2 * before.lam[i]
        gradient += eta * (2 * V * (solved + inside) - V * f - near)
        assert np.linalg.norm(gradient) <= 1e-9 * (2 * eta * V + problem.site(i).strong) * (1 + 1e-3)
        lam = before.lam[i] + theta / 2 * (V * effect.message[i] - heard(t)[0])
        np.testing.assert_allclose(states[t].lam[i], lam, rtol=0, atol=1e-12)


def test_many_sites_in_one_node_equal_nodes_of_one_site_each():
    together, _, last = drive_all(loop(make_node(3, sites=(0, 1, 2), of=3, method=PER_SITE), start(3)), 3)
    for i in range(3):
        alone, _, end = drive_all(loop(make_node(3, sites=(i,), of=3, method=PER_SITE), start()))
        for one, all_ in zip(alone, together, strict=True):
            assert list(one.charges.each()) == [list(all_.charges.each())[i]]
            assert np.array_equal(one.message[0], all_.message[i])
        for name in ("f", "lam", "heard"):
            assert np.array_equal(getattr(end, name)[0], getattr(last, name)[i])


@pytest.mark.parametrize("refresh", [1, 3])
def test_a_loop_begun_with_a_stored_state_repeats_every_bit(refresh):
    whole, _, last = drive_all(loop(make_node(refresh), start()))
    rest, _, end = drive_all(loop(make_node(refresh), whole[3].state))
    assert [effect.t for effect in rest] == [4, 5, 6, 7]
    assert all(same(a, b) for a, b in zip(rest, whole[3:], strict=True)) and equal_states(end, last)


def test_a_saved_state_comes_back_as_it_was():
    node = make_node()
    stored, *_ = drive_all(loop(node, start()))
    state = stored[4].state
    assert equal_states(node.restored(state.t, node.saved(state)), state)


@pytest.mark.parametrize("purpose", ["noise", "output"])
def test_each_round_of_each_site_draws_the_noise_that_it_is_charged_for(purpose, monkeypatch):
    """Every site and round has its own scale, so that a draw with a wrong scale is detected."""
    noise = tt.GaussianNoise([tt.Geometric(1.0, 3.0), tt.Geometric(100.0, 5.0)])
    method = tt.PenaltyPerturbation(0.5, 0.5, noise, output_noise=noise)
    asked, drawn = [], {}

    class Streams(SeededStreams):
        def vectors(self, purpose, t, sites, scales, out, *, directed):
            asked.append((purpose, t, *sites.tolist()))
            super().vectors(purpose, t, sites, scales, out, directed=directed)

    inside, release = RoundNoise.inside, RoundNoise.release
    monkeypatch.setattr(RoundNoise, "inside", lambda self: drawn.setdefault("noise", inside(self)))
    monkeypatch.setattr(
        RoundNoise,
        "release",
        lambda self, solved: drawn.setdefault("output", release(self, np.zeros_like(solved))),
    )
    for sites in ((0,), (1,), (0, 1)):
        node = replace(make_node(sites=sites, method=method), streams=Streams(3))
        for t in (1, 2, 5):
            drawn.clear()
            node.primal(replace(start(len(sites)), t=t - 1))
            unit = np.empty((len(sites), 1, D))
            SeededStreams(3).vectors(purpose, t, np.array(sites), np.ones(len(sites)), unit, directed=False)
            for row, charge in enumerate(node.charges(t).each()):
                scale = charge.scale if purpose == "noise" else charge.output_scale
                assert charge.site == sites[row]
                assert scale == [1.0, 100.0][sites[row]] * [3.0, 5.0][sites[row]] ** (t - 1)
                np.testing.assert_allclose(drawn[purpose][row], scale * unit[row], rtol=1e-12)
            assert (purpose, t, *sites) in asked
