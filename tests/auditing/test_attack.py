"""Appendix E, measured: noise protects a record; a secret penalty does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taciturn import (
    ADMM,
    MADMM,
    GaussianNoise,
    Geometric,
    Graph,
    NormNoise,
    PenaltyPerturbation,
    PrimalPerturbation,
    Problem,
)
from taciturn.auditing.attack import OBSERVERS, AttackResult, run_attack
from taciturn.core.errors import ParameterError
from taciturn.planning.proxy import generate_proxy

PENALTY = Geometric(0.5, 1.05)


def attacked(
    method: Any, *, samples: int = 40, rounds: int = 20, d: int = 20, **changes: Any
) -> AttackResult:
    proxy = generate_proxy(d, 3 * samples, "classification", seed=2)
    sites = [(proxy.X[i::3], proxy.y[i::3]) for i in range(3)]
    problem = Problem(sites, C=10.0, regularization=0.01)
    return run_attack(problem, Graph.ring(3), method, rounds=rounds, **changes)


def cosines(result: AttackResult) -> dict[str, float]:
    return {name: float(result.cosine[i, -1].mean()) for i, name in enumerate(result.observers)}


def test_without_noise_one_round_is_enough_and_a_secret_penalty_does_not_help() -> None:
    result = attacked(MADMM(PENALTY, 0.5), at=(1, 20))
    known, constant, estimated, geometric = result.cosine[:, 0].mean(axis=(1, 2))
    assert known > 0.9999 and constant > 0.9999  # eta(1) is the dual step
    found = cosines(result)
    assert found["known"] > 0.9999
    assert found["constant"] < 0.9
    assert found["estimated"] > 0.93 and found["geometric"] > 0.93
    assert estimated > 0.8 and geometric > 0.8
    assert result.label[0].all()


def test_noise_hides_the_record_from_every_observer() -> None:
    found = cosines(attacked(PenaltyPerturbation(PENALTY, 0.5, NormNoise(3.0))))
    assert max(found.values()) < 0.35


def test_with_little_noise_an_estimated_penalty_serves_the_attacker_as_well_as_the_true_one() -> None:
    result = attacked(
        PenaltyPerturbation(PENALTY, 0.5, GaussianNoise(0.01)), samples=20, repeats=8, records=range(6)
    )
    found = cosines(result)
    assert found["known"] > 0.9
    assert found["estimated"] > found["known"] - 0.1
    assert found["geometric"] > found["known"] - 0.1
    assert np.median(result.eta_ratio[OBSERVERS.index("estimated"), -1]) == pytest.approx(1.0, abs=0.4)


def test_more_rounds_make_the_attack_stronger() -> None:
    method = PenaltyPerturbation(0.5, 0.5, GaussianNoise(0.1))
    result = attacked(method, rounds=100, observers=("known",), at=(1, 10, 100), repeats=8)
    first, some, all_ = result.cosine[0].mean(axis=(1, 2))
    assert first < some < all_
    assert all_ > 2 * result.chance


def test_the_table_is_tidy() -> None:
    result = attacked(ADMM(0.5), rounds=6, observers=("known", "estimated"), repeats=2, records=(3, 4))
    assert result.rounds == (1, 2, 5, 6)
    assert result.cosine.shape == (2, 4, 2, 2)
    table = result.table()
    assert len(table) == 8
    assert {row["observer"] for row in table} == {"known", "estimated"}
    assert all(-1 <= row["cosine_low"] <= row["cosine_high"] <= 1 + 1e-9 for row in table)
    assert 0 < result.chance < 1 and -1 < result.prior < 1 and 0 <= result.prior_label <= 1


def test_guess_without_an_attack_counts_one_label_if_both_are_equally_common() -> None:
    rows, label = generate_proxy(4, 20, "classification", seed=2).X, np.repeat([1.0, -1.0], 10)
    problem = Problem([(rows, label)] * 3, C=1.0, regularization=0.01)
    assert run_attack(problem, Graph.ring(3), ADMM(0.5), rounds=2, records=(0, 1)).prior_label == 1.0


def test_guess_without_an_attack_does_not_use_the_unknown_record() -> None:
    orthogonal = Problem([(np.eye(4), np.ones(4))] * 3, C=1.0, regularization=0.1)
    assert run_attack(orthogonal, Graph.ring(3), ADMM(0.5), rounds=1, records=(0, 3)).prior == 0.0


def test_error_names_the_wrong_setting() -> None:
    for changes, words in (
        ({"site": 3}, "`site` must be below the number of sites, 3; got 3"),
        ({"observers": ("oracle",)}, "`observers` must be one of"),
        ({"at": (99,)}, "`at` must be at most the number of rounds, 20; got 99"),
        ({"records": (0, 40)}, "`records` must be at most 39 at site 0; got 40"),
    ):
        with pytest.raises(ParameterError, match=words):
            attacked(ADMM(0.5), **changes)
    with pytest.raises(ParameterError, match="send each site's solution without added noise"):
        attacked(PrimalPerturbation(0.5, GaussianNoise(1.0)))
