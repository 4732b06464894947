"""simulate: repeats are computed together from separate streams; everything is checked first."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import DataError, ParameterError
from taciturn.methods.admm.node import Node
from taciturn.methods.run import Recorder
from taciturn.runtime import local
from taciturn.runtime.local import Messages

PP = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.04), 0.5, tt.NormNoise(tt.Geometric(3.0, 1.03)))


def test_shapes(problem, ring):
    run = tt.simulate(problem, ring, PP, rounds=4, repeats=3)
    assert run.loss.shape == run.accuracy.shape == run.consensus_gap.shape == (3, 4)
    assert run.coef.shape == (3, 5, 6) and run.privacy_loss.shape == (4,) and run.average().shape == (3, 6)


def test_a_seed_repeats_bit_for_bit_whatever_the_threads(problem, ring):
    first = tt.simulate(problem, ring, PP, rounds=5, repeats=2, seed=7, threads=1)
    again = tt.simulate(problem, ring, PP, rounds=5, repeats=2, seed=7, threads=3)
    other = tt.simulate(problem, ring, PP, rounds=5, repeats=2, seed=8)
    assert np.array_equal(first.coef, again.coef) and np.array_equal(first.loss, again.loss)
    assert not np.allclose(first.coef, other.coef)


def test_adding_a_repeat_changes_no_other(problem, ring):
    two = tt.simulate(problem, ring, PP, rounds=5, repeats=2, tol=1e-11)
    five = tt.simulate(problem, ring, PP, rounds=5, repeats=5, tol=1e-11)
    np.testing.assert_allclose(five.coef[:2], two.coef, rtol=0, atol=1e-8)
    assert not np.allclose(five.coef[0], five.coef[1])


def test_adding_a_site_changes_no_others_noise():
    """Round 1 from zeros: what a site releases depends on its own noise alone."""
    sites = make_sites(n=6)
    small = tt.Problem(sites[:5], loss=tt.Logistic(), C=20.0, regularization=0.5)
    large = tt.Problem(sites, loss=tt.Logistic(), C=20.0, regularization=0.6)  # the same rho / N
    first = tt.simulate(small, tt.Graph.ring(5), PP, rounds=1, tol=1e-11)
    second = tt.simulate(large, tt.Graph.ring(6), PP, rounds=1, tol=1e-11)
    np.testing.assert_allclose(first.coef[0], second.coef[0, :5], atol=1e-9)


def test_penalty_perturbation_with_equal_fixed_steps_is_dual_perturbation(problem, ring):
    noise = tt.NormNoise(3.0)
    pp = tt.simulate(problem, ring, tt.PenaltyPerturbation(0.5, 0.5, noise), rounds=8, repeats=2)
    dvp = tt.simulate(problem, ring, tt.DualPerturbation(0.5, noise), rounds=8, repeats=2)
    assert np.array_equal(pp.coef, dvp.coef) and np.array_equal(pp.privacy_loss, dvp.privacy_loss)


def test_primal_perturbation_goes_on_from_what_it_released(problem, ring):
    """With noise of a huge scale, round 2 must follow the released vector, not the clean one."""
    noisy = tt.PrimalPerturbation(0.5, tt.GaussianNoise(tt.Table([100.0, 1e-9])))
    run = tt.simulate(problem, ring, noisy, rounds=2, history=True, tol=1e-9)
    clean = tt.simulate(problem, ring, tt.ADMM(0.5), rounds=2, history=True)
    assert np.linalg.norm(run.history[0, 0] - clean.history[0, 0]) > 100
    assert np.linalg.norm(run.history[1, 0] - clean.history[1, 0]) > 10


def test_released_values_are_clipped_and_on_the_grid(problem, ring):
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(0.5), grid=2.0**-10, clip=2.0)
    run = tt.simulate(problem, ring, method, rounds=3, repeats=2, history=True)
    scaled = run.history * 2**10
    assert np.array_equal(scaled, np.rint(scaled)) and np.abs(run.history).max() <= 2.0
    assert np.abs(run.history).max() == 2.0, "the noise is large enough to reach the clip"


def test_rounds_are_charged_at_every_site(problem, ring):
    run = tt.simulate(problem, ring, PP, rounds=4)
    C, B, V, c1 = 20.0, 40, 2, 0.25
    eta, alpha = 0.5 * 1.04 ** np.arange(4), 3.0 * 1.03 ** np.arange(4)
    np.testing.assert_allclose(run.privacy_loss, np.cumsum(C * (1.4 * c1 + alpha) / (eta * V * B)))


def test_without_noise_nothing_is_private(problem, ring):
    run = tt.simulate(problem, ring, tt.ADMM(0.5), rounds=2)
    assert run.certificate().epsilon == float("inf")


def test_certificate_says_that_it_was_simulated(problem, ring):
    certificate = tt.simulate(problem, ring, PP, rounds=2).certificate(delta=1e-5)
    assert "simulated" in certificate.to_json() and certificate.epsilon <= certificate.pure_epsilon


def test_wrong_number_of_sites(problem):
    with pytest.raises(ParameterError, match="`graph` must have 5 nodes, one per site; got 4"):
        tt.simulate(problem, tt.Graph.ring(4), PP, rounds=2)


def test_private_methods_need_rows_of_norm_one(ring):
    sites = [(2 * X, y) for X, y in make_sites()]
    problem = tt.Problem(sites, loss=tt.Logistic(), C=20.0, regularization=0.5)
    tt.simulate(problem, ring, tt.ADMM(0.5), rounds=1)
    with pytest.raises(DataError, match="norm"):
        tt.simulate(problem, ring, PP, rounds=1)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            tt.MADMM(tt.Table([0.6, 0.5]), 0.5),
            "`penalty` must be nondecreasing; site 0: 0.5 at t=2 after 0.6",
        ),
        (
            tt.MADMM(0.4, 0.5),
            "`penalty` must be at least the dual step; site 0: eta = 0.4 < theta = 0.5 at t=1",
        ),
    ],
)
def test_penalties_outside_the_theorems_are_refused_unless_allowed(problem, ring, method, words):
    with pytest.raises(ParameterError, match=words):
        tt.simulate(problem, ring, method, rounds=3)
    assert tt.simulate(problem, ring, method, rounds=3, strict=False).loss.shape == (1, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rounds", 0), ("repeats", 0), ("seed", -1), ("tol", 0.0), ("start", "warm"), ("engine", "abacus")],
)
def test_bad_settings_are_named(problem, ring, name, value):
    with pytest.raises(ParameterError, match=f"`{name}`"):
        tt.simulate(problem, ring, PP, **{"rounds": 2, name: value})


def test_random_start_is_public_and_seeded(problem, ring):
    one = tt.simulate(problem, ring, tt.ADMM(0.5), rounds=1, start="random", seed=1)
    two = tt.simulate(problem, ring, tt.ADMM(0.5), rounds=1, start="random", seed=1)
    zero = tt.simulate(problem, ring, tt.ADMM(0.5), rounds=1)
    assert np.array_equal(one.coef, two.coef) and not np.allclose(one.coef, zero.coef)


def test_averages_of_released_vectors(problem, ring):
    run = tt.simulate(problem, ring, PP, rounds=4, repeats=2, history=True)
    np.testing.assert_allclose(run.average(last=3), run.history[1:].mean(axis=(0, 2)))
    with pytest.raises(ParameterError, match="`last`"):
        run.average(last=9)
    with pytest.raises(ParameterError, match="`last` must be a whole number"):
        run.average(last=2.0)


@pytest.fixture
def watched(monkeypatch, threads):
    """Every message that a site computes and puts; site 0 is slow: it waits for one who runs ahead."""
    events, message, put, ahead = [], Node.message, Messages.put, threading.Event()

    def slowly(node, state):
        site, t = int(node.sites[0]), state.t + 1
        events.append(("start", site, t))
        if t > 1:
            ahead.set()
        found = message(node, state)
        if site == 0 and threads > 1:
            ahead.wait(60.0)
        return found

    def noted(messages, k, sent):
        put(messages, k, sent)
        events.append(("end", k, sent.t))

    monkeypatch.setattr(Node, "message", slowly)
    monkeypatch.setattr(Messages, "put", noted)
    monkeypatch.setattr(local, "_TOGETHER", 1)
    return events


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_site_waits_for_its_neighbours_only(watched, threads):
    path = tt.Graph.path(8)  # long enough for its end to run away from site 0
    problem = tt.Problem(make_sites(n=8), loss=tt.Logistic(), C=20.0, regularization=0.5)
    run = tt.simulate(problem, path, PP, rounds=6, threads=threads, history=True)
    done = dict.fromkeys(range(8), 0)
    ahead = 0
    for what, k, t in watched:
        if what == "end":
            done[k] = t
            continue
        assert done[k] == t - 1 and all(done[j] >= t - 1 for j in path.neighbors(k))
        recorded = max(min(done.values()) - 1, 0)  # a site is in state t - 1 when it computes message t
        assert t - 1 <= recorded + 2, "two rounds of models are kept"
        ahead += min(done.values()) < t - 1
    assert set(done.values()) == {6}
    assert ahead > 0 or threads == 1, "a free thread begins the next round"
    assert np.array_equal(run.history[-1], run.coef) and len(np.unique(run.history[:, 0, 0, 0])) == 6


def test_a_failure_at_one_site_ends_the_run(problem, ring, monkeypatch):
    message = Node.message

    def failing(node, state):
        if 3 in node.sites and state.t == 1:
            raise RuntimeError("site 3")
        return message(node, state)

    monkeypatch.setattr(Node, "message", failing)
    for threads in (1, 2):
        with pytest.raises(RuntimeError, match="site 3"):
            tt.simulate(problem, ring, PP, rounds=6, threads=threads)


@pytest.mark.parametrize("method", [tt.ADMM(0.5), tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0))])
def test_a_run_goes_on_from_its_checkpoint_to_the_same_bits(method, tmp_path, monkeypatch):
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    options = {"rounds": 34, "repeats": 2, "seed": 3, "history": True}
    whole = tt.simulate(problem, "ring", method, **options)
    record = Recorder.record

    def stop(self, t, *rest):
        if t == 27:
            raise KeyboardInterrupt
        record(self, t, *rest)

    monkeypatch.setattr(Recorder, "record", stop)
    with pytest.raises(KeyboardInterrupt):
        tt.simulate(problem, "ring", method, checkpoint=tmp_path / "kept", **options)
    begun = []
    monkeypatch.setattr(Recorder, "record", lambda self, t, *rest: (begun.append(t), record(self, t, *rest)))
    again = tt.simulate(problem, "ring", method, checkpoint=tmp_path / "kept", **options)
    assert begun == list(range(21, 35)), "from round 20 on"
    for name in ("loss", "accuracy", "consensus_gap", "coef", "history"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
    assert again.certificate().epsilon == whole.certificate().epsilon
    with pytest.raises(ParameterError, match="must belong to this run"):
        tt.simulate(problem, "ring", method, checkpoint=tmp_path / "kept", **(options | {"seed": 4}))


def test_checkpoints_that_cannot_be_kept_are_refused(tmp_path):
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    with pytest.raises(ParameterError, match="`every` must be a multiple of 10; got 15"):
        tt.simulate(problem, "ring", tt.ADMM(0.5), rounds=3, checkpoint=tmp_path, every=15)
    masked = tt.MaskedDescent(epsilon=1.0, delta=1e-5, colluding=1)
    with pytest.raises(ParameterError, match="`checkpoint` must be None for MaskedDescent"):
        tt.simulate(problem, "complete", masked, rounds=3, checkpoint=tmp_path)
    with pytest.raises(ParameterError, match="`checkpoint` must be None for this `engine`"):
        tt.simulate(problem, "ring", tt.ADMM(0.5), rounds=3, checkpoint=tmp_path, engine="ray")


def test_auto_with_a_checkpoint_uses_the_local_engine(problem, ring, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["taciturn.runtime.simulate"], "choose", lambda setup: "ray")
    run = tt.simulate(problem, ring, PP, rounds=3, engine="auto", checkpoint=tmp_path)
    assert np.array_equal(run.coef, tt.simulate(problem, ring, PP, rounds=3).coef)
