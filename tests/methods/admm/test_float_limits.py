"""A real run is refused if a message, a target or a record could make the solver fail."""

from __future__ import annotations

import numpy as np
import pytest

import taciturn as tt
from taciturn.core.errors import OutOfReach, ParameterError
from taciturn.methods.admm.node import Node, NodeState
from taciturn.methods.admm.real_runs import check_reach, history_limit, least_tol, longest_noise
from taciturn.methods.base import Network
from taciturn.methods.loop import Store, loop
from taciturn.objective.local import LocalObjective
from taciturn.objective.solver.general import SolverState
from taciturn.objective.solver.many import ManySites, minimise
from taciturn.rng import SecureStreams

LOSSES = (tt.Logistic(), tt.SmoothHinge(0.02), tt.SmoothHinge(0.5), tt.LogCosh(0.03), tt.LogCosh(30.0))


def settings(rng):
    """A site whose numbers are drawn over many magnitudes."""
    B = int(rng.choice([1, 2, 10, 300]))
    return {
        "dimension": int(rng.choice([1, 2, 5, 40, 105])),
        "samples": B,
        "degree": int(rng.choice([1, 2, 4])),
        "C": min(B, 10 ** rng.uniform(-1, 2)),
        "clip": 2.0 ** rng.integers(0, 20),
    }, 10 ** rng.uniform(-2, 2)


def hostile(rng, d, B, loss, reach):
    """Rows, targets and a direction to pull in: along the rows, or across them, where rounding hurts most."""
    u = rng.choice([-1.0, 1.0], d) if rng.random() < 0.5 else rng.normal(size=d)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(B, d))
    kind = rng.integers(4)
    if kind == 1:
        X = np.outer(np.ones(B), u)
    elif kind > 1:
        X -= np.outer(X @ u, u)
        X += (kind == 3) * 1e-12 * u
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300) * (1 + 1e-12)
    y = rng.choice([-1.0, 1.0], B)
    if loss.kind == "regression":
        y = rng.choice([0.0, 1e300, -1.7e308, 1e6], B) if rng.random() < 0.5 else X @ u * reach
    return X, y, u


def network(facts, loss, rho):
    """Two sites, of which the first is described."""
    public = {"dimension": facts["dimension"], "C": facts["C"], "loss": loss, "regularization": rho}
    return Network.without_rows([facts["samples"]], [facts["degree"]], total=2, **public)


@pytest.mark.parametrize("seed", range(60))
def test_no_history_within_the_clip_makes_the_solver_give_up(seed):
    rng = np.random.default_rng([13, seed])
    facts, eta = settings(rng)
    rho, loss, d = 10 ** rng.uniform(-6, 1), LOSSES[seed % len(LOSSES)], facts["dimension"]
    noise = tt.GaussianNoise(10 ** rng.uniform(-2, 3)) if seed % 2 else tt.NormNoise(10 ** rng.uniform(-3, 2))
    tables = tt.PenaltyPerturbation(eta, eta, noise).tables(2, 1).site(0)
    tol = least_tol(tables, network(facts, loss, rho), 0, facts["clip"]) / 2
    kappa, limit = 2 * eta * facts["degree"], history_limit(facts["clip"], d)
    X, y, u = hostile(rng, d, facts["samples"], loss, limit)
    site = LocalObjective(X, y, loss=loss, C=facts["C"], regularization=rho, sites=2)
    b = rng.choice([1.0, 0.5, 1e-3]) * limit * (rho / 2 + kappa) * u
    b += kappa * float(longest_noise(tables, d)[0]) * rng.choice([-1.0, 0.0, 1.0]) * u
    start = facts["clip"] * rng.choice([-1.0, 1.0], (1, d))
    solved = minimise(site, curvature=kappa, linear=b[None], start=start, tol=tol, state=SolverState())
    assert solved.distance[0] <= tol


def test_the_settings_of_a_known_attack_are_refused():
    """clip 2^20, tol 1e-10: a message of 3.6e4 made the solver fail for one record, not for another."""
    tables = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0)).tables(2, 5).site(0)
    known = {"C": 10.0, "samples": 24, "degree": 2, "dimension": 4}
    least = least_tol(tables, network(known, tt.Logistic(), 0.01), 0, 2.0**20)
    assert least > 32 * 2.0**-53 * 2.0**20 * 2 > 1e-10
    with pytest.raises(ParameterError, match="`tol` must be at least"):
        check_reach(1e-10, least, clip=2.0**20, where="alpha")
    check_reach(least, least, clip=2.0**20, where="alpha")


def problem(y=None, loss=None):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3, 40, 6))
    X /= np.linalg.norm(X, axis=2, keepdims=True) * (1 + 1e-12)
    labels = np.where(X[..., 0] > 0, 1.0, -1.0) if y is None else np.full((3, 40), y)
    return tt.Problem(
        list(zip(X, labels, strict=True)), loss=loss or tt.Logistic(), C=20.0, regularization=0.1
    )


def test_real_run_chooses_a_clip_and_tolerance_that_floats_can_certify():
    quiet = tt.train(
        problem(), tt.Graph.ring(3), tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0)), rounds=2
    )
    run = quiet.certificate(1e-5).run
    assert run.tol == pytest.approx(1e-9) and 64 <= run.clip <= 2**20
    loud = tt.train(
        problem(), tt.Graph.ring(3), tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1e5)), rounds=2
    )
    run = loud.certificate(1e-5).run
    assert run.tol > 1e-9 and run.clip >= 8e5


def test_a_real_run_refuses_what_floats_cannot_certify():
    far = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0), clip=2.0**30, grid=2.0**-20)
    with pytest.raises(ParameterError, match=r"`tol` must be at least .*`clip`"):
        tt.train(problem(), tt.Graph.ring(3), far, rounds=2, tol=1e-9)


@pytest.mark.parametrize("target", [1.7e308, -1e300, 1e12])
def test_extreme_target_value_does_not_stop_a_real_run(target):
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0))
    run = tt.train(problem(target, tt.LogCosh(1.0)), tt.Graph.ring(3), method, rounds=2)
    assert np.isfinite(run.coef).all()


def test_round_that_floats_cannot_certify_is_not_started():
    """Received values have grown too large. The decision uses public values; nothing is drawn or charged."""
    method = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0), clip=4.0, grid=2.0**-20)
    one = np.array([0]), ManySites([problem().site(0)]), np.array([1])
    node = Node(*one, tables=method.tables(2, 2).part(range(1)), tol=1e-9, streams=SecureStreams())
    zeros = np.zeros((1, 1, 6))
    with pytest.raises(OutOfReach, match="round 1 was not started"):
        next(loop(node, NodeState(0, zeros, np.full((1, 1, 6), 100.0), zeros)))
    first = next(loop(node, NodeState(0, zeros, np.full((1, 1, 6), 0.1), zeros)))
    assert isinstance(first, Store) and first.message is not None and not first.charges.aborted
