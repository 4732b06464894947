"""Several outputs of one run: one ledger, one charge a round, and separate noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taciturn as tt
from support.sharded import setup_of
from taciturn.core.errors import BudgetExceeded, LedgerError, ParameterError
from taciturn.privacy.facts import SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger
from taciturn.runtime.setup import prepare
from taciturn.runtime.train import run_charged, train

METHOD = tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0))


def setups(problem, ring, outputs, **changes):
    one = replace(setup_of(problem, ring, METHOD, rounds=3), outputs=outputs, **changes)
    return [replace(one, seed=k) for k in range(outputs)]


def test_all_outputs_are_on_one_ledger_that_is_charged_once_a_round(problem, ring):
    names, marks = tuple("abcde"), ("told",)
    runs = run_charged(setups(problem, ring, 3, names=names, marks=marks), threads=2)
    ledger = runs[0].ledger
    assert all(run.ledger is ledger for run in runs)
    assert [ledger.columns(i).t.tolist() for i in range(5)] == [[1, 2, 3]] * 5
    assert ledger.run.outputs == 3 and ledger.run.marks == marks
    assert [site.name for site in ledger.sites] == list(names)
    assert not np.allclose(runs[0].coef, runs[1].coef)
    alone = run_charged(setups(problem, ring, 1))[0]
    assert np.array_equal(alone.coef, runs[0].coef)
    assert runs[0].certificate().epsilon > alone.certificate().epsilon, "three outputs cost more than one"


def test_an_output_too_many_is_never_released(problem, ring):
    three = setups(problem, ring, 3)
    ledger = MemoryLedger(three[0].run_facts(), three[0].site_facts())
    with pytest.raises(LedgerError, match="charged for 3 releases"):
        run_charged([*three, three[0]], ledger=ledger)


def test_outputs_of_other_facts_are_refused_before_they_are_charged(problem, ring):
    one, other = setups(problem, ring, 2)
    with pytest.raises(ParameterError, match="two differ"):
        run_charged([one, replace(other, options=replace(other.options, tol=1e-3))])


def test_a_charge_that_is_refused_stops_all_outputs(problem, ring, tmp_path):
    path = tmp_path / "a.sqlite"
    with pytest.raises(BudgetExceeded):
        run_charged(setups(problem, ring, 2), ledger=path, budget=SiteBudget(1e-6, 1e-5))
    with SqliteLedger(path, readonly=True) as ledger:
        assert [ledger.columns(i).t.size for i in range(5)] == [0] * 5


def test_train_takes_an_open_ledger_of_its_own_facts(problem, ring):
    setup = prepare(problem, ring, METHOD, rounds=2)
    ledger = MemoryLedger(setup.run_facts(), setup.site_facts())
    run = train(problem, ring, METHOD, rounds=2, ledger=ledger)
    assert run.ledger is ledger and ledger.columns(0).t.tolist() == [1, 2]
    with pytest.raises(LedgerError, match="charged for round 1 already"):
        train(problem, ring, METHOD, rounds=2, ledger=ledger)
    with pytest.raises(LedgerError, match="another `rounds`"):
        train(problem, ring, METHOD, rounds=3, ledger=ledger)


def test_the_certificate_of_a_run_on_disk_states_the_head_of_its_file(problem, ring, tmp_path):
    run = train(problem, ring, METHOD, rounds=2, ledger=tmp_path / "a.sqlite")
    with SqliteLedger(tmp_path / "a.sqlite", readonly=True) as ledger:
        assert run.certificate().head == ledger.head
