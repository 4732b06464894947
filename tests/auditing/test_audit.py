"""The audit passes correct methods and catches planted bugs, each time through the real node loop."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from taciturn import GaussianNoise, NormNoise, PenaltyPerturbation
from taciturn.auditing import observer
from taciturn.auditing.audit import AuditResult, audit, default_cases
from taciturn.auditing.cases import (
    bend_case,
    covered_case,
    dual_case,
    gaussian_case,
    norm_case,
    outputs_case,
    primal_case,
)
from taciturn.auditing.observer import Case
from taciturn.methods.admm.node import Node, NodeState
from taciturn.methods.admm.release_noise import RoundNoise
from taciturn.methods.loop import Loop, Send, Store
from taciturn.objective import LocalObjective, Solution, SolverState, minimise
from taciturn.objective.solver.many import ManySites
from taciturn.privacy import costs
from taciturn.privacy.accounting import bounds

Array = NDArray[np.float64]
RUNS = 20_000


def one(case: Case, runs: int = RUNS) -> AuditResult:
    return audit([case], runs=runs).results[0]


def leaks(result: AuditResult) -> bool:
    return result.measured.epsilon > result.certified


def test_every_default_case_passes() -> None:
    report = audit(runs=RUNS)
    assert report.passed, report.sentence()
    assert not report.simulated
    assert len(report.results) == len(default_cases())
    assert all(result.measured.epsilon > 0.3 * result.certified for result in report.results)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["passed"] and plain["sentence"].startswith("In 1,080,000 runs")


def test_a_seed_repeats_the_audit() -> None:
    first, again = (audit([gaussian_case()], runs=400, seed=3).to_dict() for _ in range(2))
    assert first == again
    assert first["simulated"]


@pytest.mark.parametrize(
    ("noise", "case"),
    [
        (GaussianNoise, gaussian_case()),
        (NormNoise, norm_case()),
        (NormNoise, covered_case()),
        (GaussianNoise, dual_case()),
        (GaussianNoise, outputs_case()),
    ],
)
def test_half_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch, noise: type[Any], case: Case) -> None:
    sample: Callable[..., Array] = noise.sample
    monkeypatch.setattr(noise, "sample", lambda *arguments: 0.5 * sample(*arguments))
    assert leaks(one(case))


def test_an_inverted_jacobian_in_the_density_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = observer.log_jacobian
    monkeypatch.setattr(observer, "log_jacobian", lambda *arguments: -right(*arguments))
    result = one(bend_case())
    assert result.ratio is not None and not result.ratio.holds
    assert not result.passed


def test_a_bound_without_the_jacobian_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_the_shift(k: Array, a: Array, alpha: Array, X: float = 1.0) -> Array:
        return bounds.displacement(k, 1.0, X) * alpha

    monkeypatch.setattr(bounds, "pure_logistic", only_the_shift)
    assert leaks(one(bend_case()))


def test_rounds_that_were_charged_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    of = costs.Releases.of

    def first_round_only(*arguments: Any) -> costs.Releases:
        releases = of(*arguments)
        return releases._replace(charged=releases.charged & (np.arange(releases.eta.shape[1]) == 0))

    monkeypatch.setattr(costs.Releases, "of", first_round_only)
    assert leaks(one(gaussian_case(rounds=6, shift=2.5)))


def test_classes_that_were_charged_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    case, one_vs_rest = outputs_case(outputs=6, shift=2.5), bounds.one_vs_rest
    assert not leaks(one(case))
    monkeypatch.setattr(bounds, "one_vs_rest", lambda cost, K: one_vs_rest(cost, 1))
    assert leaks(one(case))


# -- a solver that stops early ----------------------------------------------------------------------


def solve_by(monkeypatch: pytest.MonkeyPatch, solve: Callable[..., Solution]) -> None:
    """Let every site be solved by this solver."""

    def minimise_all(self: ManySites, curvature: Array, linear: Array, start: Array, tol: float) -> Array:
        found = [
            solve(site, curvature=float(c), linear=b, start=f, tol=tol, state=SolverState()).f
            for site, c, b, f in zip(self.objectives, curvature, linear, start, strict=True)
        ]
        return np.stack(found)

    monkeypatch.setattr(ManySites, "minimise", minimise_all)


def newton_once(
    objective: LocalObjective,
    *,
    curvature: float,
    linear: Array,
    start: Array,
    tol: float,
    state: SolverState,
) -> Solution:
    """One Newton step from where the last round ended: its direction bends with the data."""
    gradient = objective.gradient(start) + curvature * start - linear
    H = objective.hessian(start[0]) + curvature * np.eye(start.shape[1])  # all runs start alike
    zero = np.zeros(len(start))
    return Solution(start - gradient @ np.linalg.inv(H), zero, zero, 1, 0)


def far_case(output_std: float | None = None, tol: float = 1e-8) -> Case:
    """A neighbour pulls the site far from its start, where one step is not enough."""
    k, shift = 0.1, 0.5
    eta = 1.0 / (2 * k * 10)
    return Case(
        name="far",
        about="one step towards a far neighbour",
        method=PenaltyPerturbation(
            penalty=eta,
            dual_step=eta,
            noise=GaussianNoise(std=2 * k / shift),
            output_noise=None if output_std is None else GaussianNoise(std=output_std),
        ),
        old=(1.0,),
        new=(0.0,),
        rounds=1,
        samples=10,
        messages=np.full((2, 1), 400.0),
        tol=tol,
    )


def test_a_solver_stopped_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not leaks(one(far_case(), runs=2_000))
    solve_by(monkeypatch, newton_once)
    assert leaks(one(far_case(), runs=2_000))


def test_output_noise_for_the_true_distance_passes_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    case = far_case()
    old, zeros = case.objective(case.old), np.zeros((1, 1))
    linear = np.full((1, 1), 400.0) * case.tables().eta[0]
    solve = {"curvature": 2 * case.tables().eta[0], "linear": linear, "start": zeros, "tol": 1e-8}
    exact = minimise(old, **solve, state=SolverState()).f
    gap = 1.2 * float(np.abs(exact - newton_once(old, **solve, state=SolverState()).f)[0, 0])
    assert gap > 1.0
    solve_by(monkeypatch, newton_once)
    assert not leaks(one(far_case(output_std=4 * gap, tol=gap)))


def lattice_of(objective: LocalObjective, step: float) -> float:
    """Where the grid of a sloppy solver lies: it depends on the record."""
    return 0.25 * step * float(np.asarray(objective.parts[0].rows.Z)[0, 0])


def test_digits_below_the_tolerance_leak_the_record_and_output_noise_hides_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = 1e-6

    def on_a_grid(objective: LocalObjective, **rest: Any) -> Solution:
        solved = minimise(objective, **rest)
        offset = lattice_of(objective, step)
        return replace(solved, f=np.round((solved.f - offset) / step) * step + offset)

    def low_digits(released: Array) -> Array:
        distance = [
            np.abs((released[0, :, 0] - at) / step - np.round((released[0, :, 0] - at) / step))
            for at in (0.25 * step, -0.25 * step)
        ]
        return distance[1] - distance[0]

    case = replace(gaussian_case(rounds=1, shift=0.5), tol=step, scores={"low digits": low_digits})
    solve_by(monkeypatch, on_a_grid)
    result = one(case, runs=2_000)
    assert leaks(result)
    assert result.measured.score == "low digits"
    method = replace(case.method, output_noise=GaussianNoise(std=100 * step))
    assert not leaks(one(replace(case, method=method)))


# -- a clean value kept inside ----------------------------------------------------------------------


def clean_inside(node: Node, state: NodeState) -> Loop:
    """The loop of a node that sends the noisy value and goes on from the clean one."""
    tables, primal = node.tables, node.tables.method == "primal"
    quiet = replace(tables, output_noise=None, output_scale=None, method="none" if primal else tables.method)
    if primal:
        quiet = replace(quiet, noise=None, scale=None)
    inner = replace(node, tables=quiet)
    for t in range(1, tables.rounds + 1):
        clean, runs = inner.primal(state), state.f.shape[1:]
        scales = tables.column("scale", t), tables.column("output_scale", t)
        message = RoundNoise(tables, node.streams, t, node.sites, *scales, runs).release(clean)
        yield Store(node.charges(t), message, state)
        heard = yield Send(t, message, state)
        state = node.after(state, clean, heard)
    return state


def test_primal_perturbation_that_keeps_the_clean_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "loop", clean_inside)
    assert leaks(one(replace(primal_case(rounds=10), delta=0.05), runs=40_000))


def lopsided_case() -> Case:
    """Hardly any penalty noise or data; what there is to see is the solver's error of up to `tol`."""
    rounds, k, tol = 10, 5e-4, 1.0
    eta = 1.0 / (2 * k * 10)
    return Case(
        name="lopsided",
        about="a solver that errs to the side of the record",
        method=PenaltyPerturbation(
            penalty=eta,
            dual_step=eta / 100,
            noise=GaussianNoise(std=0.1),
            output_noise=GaussianNoise(std=2 * tol * math.sqrt(rounds)),
        ),
        old=(1.0,),
        new=(-1.0,),
        rounds=rounds,
        samples=10,
        delta=0.05,
        tol=tol,
    )


def test_output_noise_that_keeps_the_clean_value_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def lopsided(objective: LocalObjective, **rest: Any) -> Solution:
        solved = minimise(objective, **(rest | {"tol": 1e-8}))
        return replace(solved, f=solved.f + (1 - 1e-6) * np.asarray(objective.parts[0].rows.Z)[0])

    solve_by(monkeypatch, lopsided)
    assert not leaks(one(lopsided_case(), runs=4_000))
    monkeypatch.setattr(observer, "loop", clean_inside)
    assert leaks(one(lopsided_case(), runs=40_000))
