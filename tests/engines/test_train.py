"""train: a real run, whose noise cannot be replayed and whose certificate says so."""

from __future__ import annotations

import inspect

import numpy as np

import tacit
from tacit.engines.train import train

METHOD = tacit.PenaltyPerturbation(
    0.5, 0.5, tacit.NormNoise(3.0), output_noise=tacit.NormNoise(1e4), grid=2.0**-40, clip=64.0
)


def test_two_runs_differ_and_none_can_be_seeded(problem, ring):
    first, second = (train(problem, ring, METHOD, rounds=2) for _ in range(2))
    assert not np.allclose(first.coef, second.coef)
    assert "seed" not in inspect.signature(train).parameters and first.settings["seed"] is None


def test_the_certificate_is_real_and_covers_the_solver(problem, ring):
    run = train(problem, ring, METHOD, rounds=2)
    real = run.certificate(delta=1e-5)
    seeded = tacit.simulate(problem, ring, METHOD, rounds=2, tol=1e-9).certificate(delta=1e-5)
    assert np.isnan(run.loss).all() and np.isnan(run.accuracy).all(), "no noise covers them"
    assert not real.run.simulated and not real.run.idealised and "SIMULATED" not in real.statement()
    assert seeded.run.simulated and real.epsilon == seeded.epsilon
    bare = tacit.PenaltyPerturbation(0.5, 0.5, tacit.NormNoise(3.0))
    idealised = train(problem, ring, bare, rounds=2).certificate(delta=1e-5)
    assert idealised.run.idealised and idealised.pure_epsilon < real.pure_epsilon
