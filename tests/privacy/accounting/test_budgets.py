"""Budgets over several runs: admitted runs stay within (epsilon, delta) by independent accountants."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.rdp import compute_epsilon
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from taciturn.core.errors import ParameterError
from taciturn.privacy.accounting.bounds import pure_renyi, to_epsilon
from taciturn.privacy.accounting.budgets import BUDGET_ORDERS, Limit, RunCost, composed_epsilon, pure_mu
from taciturn.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu

EPSILON, DELTA = 3.0, 1e-5


def gaussian(mu: float, **changes: float) -> RunCost:
    renyi = tuple((BUDGET_ORDERS * mu**2 / 2).tolist())
    alone = float(gaussian_epsilon(mu, DELTA))
    return RunCost(mu, renyi, math.inf, **({"alone": alone} | changes))


def laplace(epsilon: float) -> RunCost:
    """A pure run of one release."""
    renyi = pure_renyi(BUDGET_ORDERS, epsilon)
    alone = min(epsilon, float(to_epsilon(BUDGET_ORDERS, renyi, DELTA)[0]))
    return RunCost(float(pure_mu(np.array(epsilon))), tuple(renyi.tolist()), epsilon, alone)


def delta_at(mu: float, epsilon: float) -> float:
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


def randomized_response(q: float, epsilon: float) -> float:
    """The Renyi divergence of a coin that tells the truth with odds e^epsilon: the worst pure release."""
    p = 1 / (1 + math.exp(-epsilon))
    return math.log(p**q * (1 - p) ** (1 - q) + (1 - p) ** q * p ** (1 - q)) / (q - 1)


def spend(limit: Limit, wishes: list[RunCost]) -> list[RunCost]:
    taken: list[RunCost] = []
    for cost in wishes:
        if limit.admits([*taken, cost]):
            taken.append(cost)
    return taken


@given(st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=60))
def test_gaussian_runs_that_are_admitted_stay_within_the_budget(sizes):
    taken = spend(Limit("gaussian", EPSILON, DELTA), [gaussian(mu, alone=math.inf) for mu in sizes])
    if taken:
        mu = math.sqrt(sum(cost.mu**2 for cost in taken))
        assert delta_at(mu, EPSILON) <= DELTA
        assert delta_at(mu, composed_epsilon(taken, DELTA)) <= DELTA * (1 + 1e-6)


@given(st.lists(st.floats(1e-3, 1.5), min_size=1, max_size=60), st.integers(0, 2**20))
def test_a_mixture_that_is_admitted_stays_within_the_budget_at_one_order(sizes, pick):
    wishes = [gaussian(s, alone=s * 9) if pick >> (k % 20) & 1 else laplace(s) for k, s in enumerate(sizes)]
    limit = Limit("renyi", EPSILON, DELTA)
    taken = spend(limit, wishes)
    if len(taken) > 1:
        q = float(BUDGET_ORDERS[limit.place])
        each = [
            q * cost.mu**2 / 2 if math.isinf(cost.pure) else randomized_response(q, cost.pure)
            for cost in taken
        ]
        assert compute_epsilon([q], [sum(each)], DELTA)[0] <= EPSILON
    assert composed_epsilon(taken, DELTA) <= EPSILON


def test_the_budget_is_used_and_epsilons_are_not_added_up():
    limit = Limit("gaussian", EPSILON, DELTA)
    cost = gaussian(float(gaussian_mu(0.3, DELTA)))  # ten of them by adding epsilons
    assert len(spend(limit, [cost] * 200)) > 60
    assert len(spend(Limit("renyi", EPSILON, DELTA), [cost] * 200)) > 50
    mu = float(gaussian_mu(EPSILON, DELTA))
    assert limit.most == pytest.approx(mu**2, rel=3e-3) and limit.most < mu**2


def test_budget_tracks_an_order_that_suits_gaussian_noise():
    limit = Limit("renyi", EPSILON, DELTA)
    square = 2 * limit.most / BUDGET_ORDERS[limit.place]
    best, _ = to_epsilon(BUDGET_ORDERS, BUDGET_ORDERS * square / 2, DELTA)
    assert 0.995 * EPSILON < float(best) <= EPSILON


@pytest.mark.parametrize("accountant", ["gaussian", "renyi", "pure"])
@pytest.mark.parametrize("runs", [1, 2, 17])
def test_the_reported_remainder_is_admitted_and_hardly_more(accountant, runs):
    delta = 0.0 if accountant == "pure" else DELTA
    limit = Limit(accountant, EPSILON, delta)

    def cost(epsilon: float) -> RunCost:
        return laplace(epsilon) if accountant == "pure" else gaussian(float(gaussian_mu(epsilon, DELTA)))

    before = [cost(0.5), cost(0.7)]
    left = limit.left(before, runs)
    assert limit.admits([*before, *[cost(left)] * runs])
    assert not limit.admits([*before, *[cost(left * 1.001)] * runs])
    assert limit.left([*before, *[cost(left)] * runs]) < 0.01 * EPSILON


@pytest.mark.parametrize("accountant", ["gaussian", "renyi"])
@pytest.mark.parametrize("epsilon", [60.0, 100.0, 1000.0])
def test_the_remainder_of_a_large_budget_counts_discrete_noise(accountant, epsilon):
    limit = Limit(accountant, epsilon, DELTA)
    lost = {"slack": 1e-9, "failure": 41e-40}
    before = [gaussian(float(gaussian_mu(epsilon / 3, DELTA)), **lost)]
    left = limit.left(before)
    assert epsilon / 2 < left < epsilon
    assert limit.admits([*before, gaussian(float(gaussian_mu(left, DELTA)), **lost)])
    assert not limit.admits([*before, gaussian(float(gaussian_mu(left * 1.001, DELTA)), **lost)])
    assert epsilon / 3 <= composed_epsilon(before * 2, DELTA) <= epsilon
    assert limit.left([replace(before[0], failure=1e-35)]) == 0  # too many releases for this delta


def test_first_run_may_use_the_whole_budget_and_the_next_is_refused():
    limit, all_of_it = Limit("gaussian", EPSILON, DELTA), gaussian(float(gaussian_mu(EPSILON, DELTA)))
    assert limit.price(all_of_it) > limit.most  # nothing is kept back
    assert limit.admits([all_of_it]) and limit.left([]) == EPSILON
    assert composed_epsilon([all_of_it], DELTA) <= EPSILON
    tiny = gaussian(1e-9)
    assert not limit.admits([all_of_it, tiny]) and limit.left([all_of_it]) == 0
    assert not limit.admits([tiny, all_of_it])


@pytest.mark.parametrize(
    "lost", [{"slack": 2e-3}, {"floats": 6e-9}, {"failure": 1e-15}], ids=["slack", "floats", "failure"]
)
def test_cost_of_discrete_noise_and_floats_has_its_own_limit(lost):
    limit, cost = Limit("gaussian", EPSILON, DELTA), gaussian(0.01, **lost)
    assert limit.admits([gaussian(0.01), gaussian(0.01)])
    assert not limit.admits([cost, cost])
    assert composed_epsilon([cost], DELTA) <= composed_epsilon([cost, cost], DELTA)


def test_slack_counts_in_epsilon_and_takes_its_part_of_delta_by_renyi_too():
    """(epsilon + A, e^A delta): two runs with a slack of 0.2 each and unknown mu."""
    runs = [replace(gaussian(0.3), mu=math.inf, slack=0.2)] * 2
    renyi, A = 2 * np.array(runs[0].renyi), 0.4
    by_hand = float(to_epsilon(BUDGET_ORDERS, renyi, DELTA * math.exp(-A))[0]) + A
    assert composed_epsilon(runs, DELTA) == pytest.approx(by_hand, rel=1e-6)


@given(st.floats(1e-9, 30.0))
def test_a_pure_release_is_gaussian_private_with_this_mu_and_no_smaller_one(epsilon):
    mu = float(pure_mu(np.array(epsilon)))
    alpha = np.concatenate([np.geomspace(1e-14, 0.5, 200), [1 / (1 + math.exp(epsilon))]])

    def gaussian_curve(mu: float) -> np.ndarray:
        return norm.cdf(norm.isf(alpha) - mu)

    pure = np.maximum.reduce([1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha), 0 * alpha])
    assert (gaussian_curve(mu) <= pure + 1e-12).all()
    if epsilon > 1e-2:
        assert (gaussian_curve(0.999 * mu) > pure).any()


@pytest.mark.parametrize(
    ("accountant", "epsilon", "delta", "words"),
    [
        ("best", 1.0, 1e-5, "`accountant`"),
        ("gaussian", 0.0, 1e-5, "`epsilon`"),
        ("gaussian", 1.0, 0.0, "`delta`"),
        ("pure", 1.0, 1e-5, "`delta` must be 0"),
    ],
)
def test_senseless_limits_are_refused(accountant, epsilon, delta, words):
    with pytest.raises(ParameterError, match=words):
        Limit(accountant, epsilon, delta)


def test_pure_budget_allows_floats_a_delta_of_at_most_one_billionth():
    """Noise that is drawn in floats adds a small delta to every run, which delta = 0 does not cover."""
    limit = Limit("pure", EPSILON, 0.0)
    run = RunCost(1e-9, (0.0,) * len(BUDGET_ORDERS), 1e-6, 1e-6, floats=3e-10)
    assert limit.admits([run]) and limit.admits([run] * 3)
    assert not limit.admits([run] * 4) and limit.left([run] * 4) == 0.0
    assert not limit.admits([RunCost(1e-9, run.renyi, 1e-6, 1e-6, floats=2e-9)])
