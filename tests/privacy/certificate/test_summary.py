"""The three points at the head of a statement: true for every observer, and never too low."""

from __future__ import annotations

import math

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.privacy.certificate.summary import cost_line, right_guesses, three_points


@pytest.fixture(scope="module")
def certificate():
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    method = tt.PenaltyPerturbation(tt.Geometric(0.5, 1.1), 0.5, tt.GaussianNoise(1.0))
    return tt.simulate(problem, "ring", method, rounds=4, seed=0).certificate(delta=1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_stated_guessing_rate_covers_the_worst_mechanism(epsilon, delta):
    """For randomised response that fails with probability delta, the best guess has exactly this rate."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    outcomes = np.array([delta, (1 - delta) * truth, (1 - delta) * (1 - truth), 0.0])
    other = outcomes[[3, 2, 1, 0]]
    best = np.maximum(outcomes, other).sum() / 2
    shown = float(right_guesses(epsilon, delta).rstrip("%")) / 100
    assert best <= shown + 1e-12 and shown < best + 0.0011


def test_statement_begins_with_the_three_points(certificate):
    sentences = three_points(certificate)
    assert len(sentences) == 3 and "5 sites" in sentences[0]
    assert right_guesses(certificate.epsilon, certificate.delta) in sentences[1]
    assert certificate.statement().split("\n\n")[1] == " ".join(sentences)
    assert cost_line(certificate).startswith("SIMULATED")


def test_run_without_noise_claims_no_limit():
    problem = tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)
    bare = tt.simulate(problem, "ring", tt.ADMM(0.5), rounds=2).certificate()
    assert "no noise. Nothing limits" in three_points(bare)[1] and "no limit" in cost_line(bare)
