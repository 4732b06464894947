"""A user's method: its author states its cost, and every certificate says so."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import taciturn as tt
from support.forger import accepted, signed
from support.problems import make_sites
from taciturn.core.errors import ParameterError, TaciturnWarning
from taciturn.privacy.marks import NOT_PROVEN

DELTA = 1e-5


@dataclass(frozen=True)
class Echo(tt.OwnMethod):
    """Half of what was heard, a step along the gradient, and noise."""

    cost: Any
    std: float = 0.1

    def message(self, rows: Any, own: Any, heard: Any, t: int, generator: np.random.Generator) -> Any:
        return (own + heard) / 2 - rows.gradient(own[None])[0] + generator.normal(0.0, self.std, len(own))


@pytest.fixture(scope="module")
def problem() -> tt.Problem:
    return tt.Problem(make_sites(n=4, rows=30, d=3), C=1.0, regularization=0.1)


def run(problem: tt.Problem, rounds: int = 4, **cost: Any) -> tt.Run:
    method = Echo(tt.StatedCost(**cost))
    return tt.simulate(problem, "ring", method, rounds=rounds, repeats=2, seed=1, history=True)


def test_the_message_is_computed_from_what_was_sent_and_heard_before(problem: tt.Problem) -> None:
    found = run(problem, pure=0.1).history
    assert found is not None
    quiet = tt.simulate(problem, "ring", Echo(tt.StatedCost(pure=0.1), std=0.0), rounds=2, history=True)
    first, second = quiet.history[0][0], quiet.history[1][0]
    heard = (first[[1, 2, 3, 0]] + first[[3, 0, 1, 2]]) / 2
    for i in range(4):
        by_hand = (first[i] + heard[i]) / 2 - problem.site(i).gradient(first[i][None])[0]
        np.testing.assert_allclose(second[i], by_hand, rtol=1e-12)
    assert np.ptp(found[0, :, 0], axis=0).all()  # every repeat has noise of its own


@pytest.mark.parametrize(
    ("cost", "pure", "epsilon"),
    [
        ({"pure": 0.25}, 1.0, None),
        ({"mu": 0.1}, np.inf, 0.7),
        ({"renyi": {2: 0.02, 8: 0.08}}, np.inf, None),
    ],
)
def test_costs_of_rounds_add_up_and_the_certificate_can_be_computed_again(problem, cost, pure, epsilon):
    made = run(problem, **cost).certificate(DELTA)
    assert made.pure_epsilon == pytest.approx(pure) and made.run.marks == (NOT_PROVEN,)
    assert made.epsilon <= 1.0 + 1e-9 if "pure" in cost else np.isfinite(made.epsilon)
    twice = run(problem, rounds=8, **cost).certificate(DELTA)
    assert made.epsilon < twice.epsilon
    again = tt.Certificate.from_json(made.to_json())
    with pytest.warns(TaciturnWarning, match="not proven by taciturn"):
        again.verify()
    assert again.run.stated == tt.StatedCost(**cost)
    assert "not proven by taciturn" in json.loads(made.to_json())["status"]
    assert "NOT PROVEN BY TACITURN" in made.statement()


def test_mu_composes_as_gaussian_noise_does(problem: tt.Problem) -> None:
    from taciturn.privacy.accounting.gaussian import gaussian_epsilon

    made = run(problem, rounds=9, mu=0.1).certificate(DELTA)
    assert made.accountant == "gaussian"
    assert made.epsilon == pytest.approx(float(gaussian_epsilon(0.3, DELTA)), rel=1e-9)


def test_a_renyi_cost_between_two_orders_is_that_of_the_larger_one() -> None:
    cost = tt.StatedCost(renyi={2: 0.1, 8: 0.5})
    assert cost.renyi_at(np.array([1.1, 2.0, 2.1, 8.0, 8.1])).tolist() == [0.1, 0.1, 0.5, 0.5, np.inf]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"pure": 1.0, "mu": 1.0}, {"pure": 0.0}, {"mu": -1.0}, {"renyi": {}}, {"renyi": {1.0: 1.0}}],
)
def test_a_cost_that_states_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        tt.StatedCost(**wrong)
    with pytest.raises(ParameterError, match="never decrease"):
        tt.StatedCost(renyi={2: 0.5, 4: 0.1})


def test_user_method_without_a_cost_or_with_solver_options_is_refused(problem: tt.Problem) -> None:
    with pytest.raises(ParameterError, match="`cost` must be a StatedCost"):
        tt.simulate(problem, "ring", Echo(None), rounds=2)
    with pytest.raises(ParameterError, match="`tol` must be left out"):
        tt.simulate(problem, "ring", Echo(tt.StatedCost(pure=1.0)), rounds=2, tol=1e-6)


def test_budget_refuses_methods_without_a_proven_cost(problem: tt.Problem, tmp_path) -> None:
    method = Echo(tt.StatedCost(pure=0.1))
    with tt.Budget(tmp_path / "b.sqlite", epsilon=1) as budget:
        with pytest.raises(ParameterError, match="`method` must be a method of taciturn"):
            tt.train(problem, "ring", method, rounds=2)
        assert budget.spent == 0
    assert tt.train(problem, "ring", method, rounds=2).certificate(DELTA).run.marks == (NOT_PROVEN,)


def test_mark_of_a_user_method_cannot_be_removed_or_moved(problem: tt.Problem) -> None:
    made = run(problem, pure=0.25).certificate(DELTA)
    body = json.loads(made.to_json())
    body["run"]["marks"] = []
    assert accepted(json.dumps(signed(body))) is None
    ours = tt.simulate(problem, "ring", tt.PenaltyPerturbation(0.5, 0.5, tt.NormNoise(3.0)), rounds=2)
    with pytest.raises(ParameterError, match="`stated` must be given for method 'own'"):
        replace(ours.ledger.run, stated=tt.StatedCost(pure=1e-3))


def test_a_mu_and_a_pure_cost_have_their_renyi_curves() -> None:
    assert tt.StatedCost(mu=0.5).renyi_at(np.array([4.0]))[0] == pytest.approx(4.0 * 0.25 / 2)
    assert tt.StatedCost(pure=0.5).renyi_at(np.array([1e4]))[0] == pytest.approx(0.5, rel=1e-3)
