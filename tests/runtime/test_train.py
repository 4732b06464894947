"""train: a real run, whose noise cannot be replayed and whose certificate says so."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import taciturn as tt
import taciturn.objective.solver.many as many_module
from taciturn.core.errors import BudgetExceeded, LedgerError, NotConverged, ParameterError
from taciturn.methods.admm.real_runs import cover
from taciturn.methods.base import Network
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.facts import ABORTED, SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.runtime.train import train

METHOD = tt.PenaltyPerturbation(
    0.5, 0.5, tt.NormNoise(3.0), output_noise=tt.NormNoise(1e4), grid=2.0**-40, clip=64.0
)


def test_real_runs_differ_and_cannot_be_seeded(problem, ring):
    first, second = (train(problem, ring, METHOD, rounds=2) for _ in range(2))
    assert not np.allclose(first.coef, second.coef)
    assert "seed" not in inspect.signature(train).parameters and first.settings["seed"] is None


def test_the_certificate_is_real_and_covers_the_solver(problem, ring):
    run = train(problem, ring, METHOD, rounds=2)
    real = run.certificate(delta=1e-5)
    seeded = tt.simulate(problem, ring, METHOD, rounds=2, tol=1e-9).certificate(delta=1e-5)
    assert np.isnan(run.loss).all() and np.isnan(run.accuracy).all(), "no noise covers them"
    assert not real.run.simulated and not real.run.idealised and "SIMULATED" not in real.statement()
    assert seeded.run.simulated and seeded.epsilon < real.epsilon < seeded.epsilon + 1e-4
    assert real.run.integers and not seeded.run.integers


@pytest.mark.parametrize(
    ("method", "cost"),
    [
        (tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0)), 2.5e-4),
        (tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(1.0)), 1e-5),
        (tt.DualPerturbation(0.5, tt.NormNoise(3.0)), 2.5e-4),
        (tt.PrimalPerturbation(0.5, tt.GaussianNoise(1.0)), 1e-8),
    ],
)
def test_a_method_without_output_noise_gets_it_unless_idealised(problem, ring, method, cost):
    real = train(problem, ring, method, rounds=2)
    stated = real.certificate(delta=1e-5)
    assert not stated.run.idealised and stated.run.grid is not None and stated.run.clip is not None
    assert np.array_equal(np.rint(real.coef / stated.run.grid) * stated.run.grid, real.coef)
    bare = train(problem, ring, method, rounds=2, idealised=True).certificate(delta=1e-5)
    assert bare.run.idealised == (cost > 1e-7) and bare.run.grid is None and not bare.run.integers
    assert 0 <= stated.epsilon - bare.epsilon <= 2 * cost * (1 + 1e-6)


def test_explicit_method_settings_are_kept(problem, ring):
    run = train(problem, ring, METHOD, rounds=1).certificate(delta=1e-5).run
    assert (run.grid, run.clip) == (METHOD.grid, METHOD.clip)
    plain = tt.MADMM(0.5, 0.5)
    needed, _ = cover(plain.tables(problem.n, 1), Network.of(problem, ring), tol=None)
    assert needed == {} and plain.covered(**needed) is plain


def test_every_charge_is_on_disk(problem, ring, tmp_path):
    path = tmp_path / "ledger.sqlite"
    run = train(problem, ring, METHOD, rounds=3, ledger=path)
    with SqliteLedger(path, readonly=True) as kept:
        assert [kept.columns(i).t.tolist() for i in range(5)] == [[1, 2, 3]] * 5
        assert Certificate.from_ledger(kept, delta=1e-5).epsilon == run.certificate(delta=1e-5).epsilon
    with pytest.raises(LedgerError):
        train(problem, ring, METHOD, rounds=3, ledger=path)  # no round is charged, or released, a second time


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_budget_stops_the_run(problem, ring, tmp_path, on_disk):
    ledger = tmp_path / "ledger.sqlite" if on_disk else None
    enough = train(problem, ring, METHOD, rounds=3).certificate(delta=1e-5).epsilon
    train(problem, ring, METHOD, rounds=3, budget=SiteBudget(1.01 * enough, 1e-5), ledger=ledger)
    with pytest.raises(BudgetExceeded):
        train(problem, ring, METHOD, rounds=4, budget=SiteBudget(1.01 * enough, 1e-5))


def test_user_sampler_is_refused_in_a_real_run(problem, ring):
    class Quiet(tt.NormNoise):
        def sample(self, generator, scale, d):
            return np.zeros(d)

    method = tt.PenaltyPerturbation(0.5, 0.5, Quiet(3.0))
    with pytest.raises(
        ParameterError, match="`noise` must be NormNoise or GaussianNoise, and not a subclass"
    ):
        train(problem, ring, method, rounds=1)


def test_a_failed_solve_is_charged_and_reveals_nothing(problem, ring, tmp_path, monkeypatch):
    """The failure depends on the data and is a release; how close the solver came is not revealed."""

    def fail(*args, **options):
        raise NotConverged("0.774 was reached")

    monkeypatch.setattr(many_module.ManySites, "minimise", fail)
    path = tmp_path / "ledger.sqlite"
    with pytest.raises(NotConverged) as caught:
        train(problem, ring, METHOD, rounds=2, ledger=path, threads=1)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "reached" not in str(caught.value) and "round 1" in str(caught.value)
    with SqliteLedger(path, readonly=True) as kept:
        assert kept.columns(0).t.tolist() == [1] and kept.aborted
        certificate = Certificate.from_ledger(kept, delta=1e-5)
    assert ABORTED in certificate.run.marks and "NOTE: the solver failed" in certificate.statement()
    Certificate.from_json(certificate.to_json()).verify()
