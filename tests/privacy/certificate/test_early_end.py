"""A run that ended early states the cost of the planned run, since its end may depend on its messages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import taciturn as tt
from support.example_run import DELTA, certificate, charges, ledger, run_facts, site_facts
from taciturn.core.errors import BudgetExceeded, CertificateError, TaciturnWarning
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.privacy.certificate.summary import five_lines
from taciturn.privacy.facts import SiteBudget
from taciturn.privacy.ledger.disk import SqliteLedger
from taciturn.privacy.ledger.memory import MemoryLedger

FORMAT_1 = Path(__file__).with_name("format_1")
ROUNDS = 8


def problem(rows: int = 60) -> tt.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, rows, 4))
    X /= np.linalg.norm(X, axis=2, keepdims=True) * (1 + 1e-12)
    return tt.Problem(list(zip(X, np.sign(X[..., 0]), strict=True)), C=20.0, regularization=0.1)


def method() -> tt.PenaltyPerturbation:
    return tt.PenaltyPerturbation(tt.Geometric(0.5, 1.1), 0.5, tt.GaussianNoise(tt.Geometric(2.0, 0.95)))


def train(path: Path, budget: SiteBudget | None = None, how: object = None) -> None:
    tt.train(problem(), tt.Graph.ring(3), how or method(), rounds=ROUNDS, ledger=path, budget=budget)


def read(path: Path) -> Certificate:
    with SqliteLedger(path, readonly=True) as book:
        return Certificate.from_ledger(book, DELTA)


@pytest.mark.parametrize("noise", ["norm", "gaussian"])
def test_a_run_that_ended_early_states_the_planned_figure(noise: str) -> None:
    stopped, whole, short = (
        certificate(rounds=rounds, planned=planned, noise=noise)
        for rounds, planned in ((4, 10), (10, 10), (4, 4))
    )
    assert stopped.epsilon == whole.epsilon > 1.5 * short.epsilon
    assert stopped.costs == whole.costs and stopped.charged_epsilon == short.epsilon
    assert whole.charged_epsilon == whole.epsilon
    said = stopped.statement()
    assert "10 rounds were planned. The figures are for the whole planned run" in said
    assert "If the decision to stop did not depend on the messages, epsilon = " in said
    assert "were planned" not in whole.statement() and "all 10 rounds" in five_lines(stopped)[2]
    again = Certificate.from_json(stopped.to_json())
    again.check()
    assert again.notes == [] and again.charged_epsilon == stopped.charged_epsilon


def test_planned_figure_cannot_be_replaced_by_the_smaller_one() -> None:
    body = json.loads(certificate(rounds=4, planned=10).to_json())
    body["epsilon"] = body["charged_epsilon"]
    with pytest.raises(CertificateError, match="`epsilon` is stated as"):
        Certificate.from_json(json.dumps(body)).check()


@pytest.mark.parametrize("masked", [False, True])
def test_the_ledger_of_an_interrupted_run_states_the_planned_figure(tmp_path, monkeypatch, masked) -> None:
    """Ctrl-C, a crash or an aborted solve after a few rounds; the ledger is certified afterwards."""
    how = tt.MaskedDescent(epsilon=1.0, delta=DELTA, colluding=1) if masked else method()
    train(tmp_path / "whole.sqlite", how=how)
    charge = SqliteLedger.charge
    count = {"left": 3 * 3}

    def interrupted(self: SqliteLedger, one: object) -> None:
        if count["left"] == 0:
            raise KeyboardInterrupt
        count["left"] -= 1
        charge(self, one)

    def interrupted_round(self: SqliteLedger, ones: object) -> None:
        for one in ones.each():
            interrupted(self, one)

    monkeypatch.setattr(SqliteLedger, "charge", interrupted)
    monkeypatch.setattr(SqliteLedger, "charge_round", interrupted_round)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "cut.sqlite", how=how)
    whole, cut = read(tmp_path / "whole.sqlite"), read(tmp_path / "cut.sqlite")
    assert cut.rounds == 3 and cut.epsilon == whole.epsilon > 1.3 * cut.charged_epsilon


def test_an_aborted_solve_states_the_planned_figure() -> None:
    book = ledger(rounds=2, planned=6)
    book.charge(charges(1, 3)[2]._replace(aborted=True))
    found = Certificate.from_ledger(book, DELTA)
    assert found.epsilon == certificate(rounds=6).epsilon and "the solver failed" in found.statement()


def test_a_budget_that_stops_a_run_states_the_rounds_that_it_would_have_paid_for(tmp_path) -> None:
    train(tmp_path / "whole.sqlite")
    whole = read(tmp_path / "whole.sqlite")
    limit = SiteBudget(0.7 * whole.epsilon, DELTA)
    with pytest.raises(BudgetExceeded):
        train(tmp_path / "stopped.sqlite", limit)
    stopped = read(tmp_path / "stopped.sqlite")
    assert 1 < stopped.rounds < ROUNDS
    assert stopped.epsilon == stopped.charged_epsilon <= limit.epsilon < whole.epsilon
    with SqliteLedger(tmp_path / "stopped.sqlite", readonly=True) as book:
        early = MemoryLedger(book.run, book.sites, limit)
        for facts in book.sites:
            columns = book.columns(facts.site)
            early.charge(
                charges(1, 1)[0]._replace(
                    site=facts.site,
                    eta=columns.eta[0],
                    scale=columns.scale[0],
                    output_scale=columns.output_scale[0],
                )
            )
    found = Certificate.from_ledger(early, DELTA)
    assert found.rounds == 1 and found.epsilon == stopped.epsilon > found.charged_epsilon
    Certificate.from_json(found.to_json()).verify()


def test_one_site_that_ran_out_of_budget_does_not_make_the_others_cheaper() -> None:
    """The run ends for all when one site stops; every site states what it had planned."""
    planned = site_facts(2, eta=(0.5,), scale=(3.0,))
    book = MemoryLedger(run_facts(3, 20), planned, [SiteBudget(0.3, DELTA), None])
    for t in range(1, 21):
        try:
            book.charge_all([charge for charge in charges(2, 20) if charge.t == t])
        except BudgetExceeded:
            break
    found = Certificate.from_ledger(book, DELTA)
    assert 1 < t < 20 and found.costs[0].epsilon <= 0.3
    assert found.costs[1].epsilon == certificate(rounds=20).epsilon == found.epsilon


def test_charges_that_are_not_the_planned_ones_are_refused() -> None:
    book = MemoryLedger(run_facts(3, 9), site_facts(2, eta=(0.5,), scale=(2.0,)))
    for charge in charges(2, 4):
        book.charge(charge)
    with pytest.raises(CertificateError, match="`scale` that is not in its schedule"):
        Certificate.from_ledger(book, DELTA)


def test_without_a_plan_on_record_an_early_end_has_no_finite_figure(tmp_path) -> None:
    """Ledgers of earlier versions do not say what the rounds after the stop would have cost."""
    shutil.copy(FORMAT_1 / "ended_early.sqlite", tmp_path / "a.sqlite")
    with SqliteLedger(tmp_path / "a.sqlite", readonly=True) as book:
        found = Certificate.from_ledger(book, DELTA)
    assert found.rounds == 2 < found.run.rounds and found.epsilon == np.inf
    assert found.charged_epsilon == certificate(rounds=2).epsilon
    assert "is not recorded. So no figure holds for every reason to stop" in found.statement()
    with pytest.warns(TaciturnWarning, match="texts in the file were not compared"):
        Certificate.from_json(found.to_json()).verify()


def test_run_without_charges_costs_nothing() -> None:
    assert Certificate.from_ledger(MemoryLedger(run_facts(), site_facts()), DELTA).epsilon == 0.0
