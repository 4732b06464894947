"""Theorem H': the cost of the integers of a real run, and that nothing else leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.methods.admm.node import Node, NodeState
from taciturn.methods.admm.release_noise import RoundNoise
from taciturn.objective.local import LocalObjective
from taciturn.objective.solver.many import ManySites
from taciturn.privacy.accounting import bounds
from taciturn.privacy.costs import Releases, float_delta, pure_costs, renyi_totals
from taciturn.privacy.facts import Charge, RunFacts, SiteFacts
from taciturn.privacy.loss_facts import LossFacts
from taciturn.rng import SecureStreams, SeededStreams

GRID, CLIP = 2.0**-12, 2.0**10
RUN = RunFacts(
    "penalty",
    "gaussian",
    LossFacts("logistic", 1.0, 0.25),
    sites=2,
    rounds=3,
    dimension=9,
    C=10.0,
    regularization=0.1,
    output_noise="gaussian",
    tol=1e-4,
    grid=GRID,
    clip=CLIP,
    integers=True,
    simulated=False,
    where="folders",
)
SITE = SiteFacts(0, 100, 1, (0.5,))
CHARGE = Charge(0, 1, 0.5, 3.0, 0.01)


def cost(run, charge=CHARGE):
    releases = Releases.single(run, SITE, charge)
    return renyi_totals(run, releases, bounds.ORDERS)[0], float(pure_costs(run, releases)[0, 0])


@pytest.mark.parametrize("s", [0.7, 2.0, 11.0])
@pytest.mark.parametrize("move", [1, 2, 7])
def test_a_move_by_whole_steps_costs_no_more_than_by_the_continuous_law(s, move):
    n = np.arange(-400, 401, dtype=np.float64)
    log_old, log_new = -(n**2) / (2 * s * s), -((n - move) ** 2) / (2 * s * s)
    log_old -= np.logaddexp.reduce(log_old)
    log_new -= np.logaddexp.reduce(log_new)
    for q in (1.1, 2.0, 5.0, 30.0):
        divergence = np.logaddexp.reduce(q * log_old + (1 - q) * log_new) / (q - 1)
        assert divergence <= q * move**2 / (2 * s * s) * (1 + 1e-12) + 1e-13
    if s > 1:
        assert divergence > 0.9 * q * move**2 / (2 * s * s), "and it is reached"


def test_integer_noise_adds_the_stated_cost():
    """q (2 gamma + g sqrt d)^2 / (2 sigma^2), all of it: the rounding, and gamma twice."""
    renyi, _ = cost(RUN)
    bare, _ = cost(
        replace(RUN, output_noise=None, grid=None, clip=None, integers=False),
        CHARGE._replace(output_scale=None),
    )
    finite = np.isfinite(bare)
    shift = 2 * RUN.tol + GRID * 3
    added = bounds.ORDERS * (shift / 0.01) ** 2 / 2
    np.testing.assert_allclose(renyi[finite], (bare + added)[finite], rtol=1e-9)
    less = bounds.ORDERS * ((2 * RUN.tol) / 0.01) ** 2 / 2
    assert np.all((renyi > bare + 10 * less)[finite]), "most of it here is the rounding"


def test_discrete_laplace_keeps_a_pure_guarantee():
    norm = replace(RUN, noise="norm", output_noise="norm")
    renyi, pure = cost(norm, CHARGE._replace(output_scale=50.0))
    _, bare = cost(
        replace(norm, output_noise=None, grid=None, clip=None, integers=False),
        CHARGE._replace(output_scale=None),
    )
    added = 50.0 * (2 * RUN.tol + GRID * 3)
    assert pure == pytest.approx(bare + added, rel=1e-9)
    lone = bounds.pure_renyi(bounds.ORDERS, added)
    assert np.all(renyi >= lone), "only the pure bound is known of it"


@pytest.mark.parametrize("noise", ["gaussian", "norm"])
def test_primal_noise_counts_the_rounding_before_it(noise):
    primal = replace(RUN, method="primal", noise=noise, output_noise=None)
    charge = CHARGE._replace(output_scale=None)
    whole, real = (
        cost(run, charge) for run in (primal, replace(primal, integers=False, simulated=True, where=""))
    )
    assert np.all(whole[0] > real[0])
    if noise == "norm":
        assert whole[1] == pytest.approx(real[1] + 3.0 * GRID * 3, rel=1e-6)


def test_float_error_is_part_of_delta():
    assert float_delta(RUN) == pytest.approx(3 * (9e-15 + 1e-18), rel=1e-6)
    paper = replace(RUN, rounds=100, dimension=105)
    assert 1e-11 < float_delta(paper) < 1e-10
    assert float_delta(replace(RUN, integers=False)) == 0.0
    from taciturn.privacy.certificate.certificate import Certificate
    from taciturn.privacy.ledger.memory import MemoryLedger

    once = replace(RUN, rounds=1)
    ledger = MemoryLedger(once, [SITE])
    ledger.charge(CHARGE)
    certificate = Certificate.from_ledger(ledger, 1e-5)
    total = renyi_totals(once, Releases.single(once, SITE, CHARGE), bounds.ORDERS)
    at = [float(bounds.to_epsilon(bounds.ORDERS, total[0], d)[0]) for d in (1e-5, 1e-5 - float_delta(once))]
    assert certificate.epsilon == at[1] >= at[0]
    with pytest.raises(ParameterError, match="`delta` must be above"):
        Certificate.from_ledger(ledger, 1e-14)


@pytest.mark.parametrize(
    "wrong",
    [{"grid": 0.001}, {"grid": None}, {"clip": None}, {"grid": 2.0**-50}, {"output_noise": None}],
)
def test_impossible_facts_of_integer_noise_are_refused(wrong):
    with pytest.raises(ParameterError, match=r"`(grid|clip|integers)`"):
        replace(RUN, **wrong)


def node(method, streams, tol=1e-6):
    X = np.eye(4)[[0, 1, 2, 3, 0, 1]]
    site = LocalObjective(
        X, np.array([1.0, 1, -1, 1, -1, 1]), loss=tt.Logistic(), C=2.0, regularization=0.1, sites=2
    )
    one = np.array([0]), ManySites([site]), np.array([1])
    return Node(*one, tables=method.tables(2, 1).part(range(1)), tol=tol, streams=streams)


@pytest.mark.parametrize(
    "method",
    [
        tt.PenaltyPerturbation(
            0.5, 0.5, tt.GaussianNoise(0.1), output_noise=tt.GaussianNoise(0.05), grid=2.0**-10, clip=8.0
        ),
        tt.PenaltyPerturbation(
            0.5, 0.5, tt.NormNoise(9.0), output_noise=tt.NormNoise(50.0), grid=2.0**-10, clip=8.0
        ),
        tt.PrimalPerturbation(0.5, tt.GaussianNoise(0.1), grid=2.0**-10, clip=8.0),
        tt.PrimalPerturbation(0.5, tt.NormNoise(9.0), grid=2.0**-10, clip=8.0),
    ],
)
def test_only_whole_numbers_of_steps_leave_a_real_run(method, monkeypatch):
    """Their noise comes from the exact sampler; without noise the rounded minimiser is released."""
    start = NodeState.start(np.zeros((1, 500, 4)), np.zeros((1, 500, 4)))
    sent = node(method, SecureStreams()).primal(start) * 2**10
    assert np.array_equal(sent, np.rint(sent)) and np.abs(sent).max() <= 8 * 2**10
    drawn = []

    def steps(kind, generator, scale, grid, d, runs):
        drawn.append((kind, scale, grid))
        return np.zeros((runs, d), dtype=np.int64)

    monkeypatch.setattr("taciturn.methods.admm.release_noise.draw_steps", steps)
    quiet = node(method, SecureStreams()).primal(start)
    last = method.noise if isinstance(method, tt.PrimalPerturbation) else method.output_noise
    assert drawn == [(last.kind, last.scales(1, 1)[0, 0], 2.0**-10)]
    if isinstance(method, tt.PrimalPerturbation):
        assert np.array_equal(quiet, np.broadcast_to(quiet[:, :1], quiet.shape)), "no other noise is added"


def test_the_solver_has_half_of_tol(monkeypatch):
    """The other half is for the rounding of the noise."""
    asked = []
    solve = ManySites.minimise
    monkeypatch.setattr(ManySites, "minimise", lambda *a: asked.append(a[-1]) or solve(*a))
    method = tt.PrimalPerturbation(0.5, tt.GaussianNoise(0.1), grid=2.0**-10, clip=8.0)
    start = NodeState.start(np.zeros((1, 500, 4)), np.zeros((1, 500, 4)))
    node(method, SecureStreams()).primal(start)
    assert asked == [5e-7]


def test_simulations_keep_continuous_noise():
    noise = RoundNoise(
        tt.PrimalPerturbation(0.5, tt.GaussianNoise(0.01), grid=0.5, clip=8.0).tables(1, 1).site(0),
        SeededStreams(3),
        1,
        np.array([0]),
        np.array([0.01]),
        None,
        (1, 4),
    )
    assert not noise.whole and noise.share == 1.0
    assert np.array_equal(noise.release(np.full((1, 1, 4), 3.2)), np.full((1, 1, 4), 3.0))
