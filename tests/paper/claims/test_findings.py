"""Small counterexamples to statements of the paper."""

from __future__ import annotations

import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.paper.claims.findings import (
    constant_of_theorem_3,
    quadratic_form_of_the_proof,
    unequal_dual_steps,
    weighted_optimum,
)


def test_the_quadratic_form_of_the_proof_is_negative() -> None:
    assert quadratic_form_of_the_proof() == -4.5


def test_unequal_dual_steps_end_at_another_optimum() -> None:
    found = unequal_dual_steps()
    assert found.disagreement < 1e-8
    assert found.limit == pytest.approx(found.weighted, abs=1e-8)
    assert abs(found.limit - found.optimum) > 0.5


def test_equal_weights_give_the_optimum() -> None:
    problem = tt.Problem(make_sites(), C=20.0, regularization=0.5)
    assert weighted_optimum(problem, [2.0] * problem.n) == pytest.approx(problem.optimum(), abs=1e-9)


def test_the_three_accountings_of_one_run() -> None:
    found = constant_of_theorem_3()
    assert [round(cost, 2) for cost in found.values()] == [64.82, 58.05, 2.97]
