"""A plan stays within its budget, uses it, and gives a useful model."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import taciturn as tt
from taciturn import Graph, LogCosh, Logistic, Problem, SmoothHinge, simulate
from taciturn.core.errors import DataError, ParameterError
from taciturn.data.tables.column_types import Category, Number
from taciturn.data.tables.schema import Schema
from taciturn.jobfile.toml_fields import read_noise
from taciturn.methods.admm.updates import network_average
from taciturn.objective import LocalObjective
from taciturn.paper.figures.spec import FigureCurve
from taciturn.planning import planned_run
from taciturn.planning.calibration import Draft
from taciturn.planning.plan import plan
from taciturn.planning.proxy import generate_proxy
from taciturn.planning.request import Plan
from taciturn.schedules import from_dict

RING = {"samples": 9044, "graph": Graph.ring(5), "dimension": 105}


def quick(**changes: Any) -> Plan:
    settings: dict[str, Any] = {"epsilon": 1.0, "effort": "quick"} | RING
    return plan(**(settings | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": 0.05},
        {"epsilon": 20.0},
        {"delta": 1e-11},
        {"noise": "norm"},
        {"dimension": 3},
        {"samples": 30},
        {"samples": [300, 1000, 4000, 8000, 16000]},
        {"graph": Graph.star(5)},
        {"outputs": 5},
        {"loss": SmoothHinge(0.1)},
        {"loss": LogCosh(0.5)},
        {"C": 1750.0, "regularization": 10**-2.5},
        {"rounds": 3},
        {"max_rounds": 1},
        {"output_noise": False},
    ],
    ids=str,
)
def test_every_plan_uses_its_budget_and_no_more(changes: dict[str, Any]) -> None:
    found = quick(**changes)
    for cost in found.certificate.costs:
        assert 0.99 * found.epsilon[0] < cost.epsilon <= found.epsilon[0]
    assert found.certificate.run.planned
    assert found.rounds <= changes.get("max_rounds", 100)
    assert found.rounds == changes.get("rounds", found.rounds)
    json.loads(found.to_json())


def test_each_site_has_its_own_budget() -> None:
    found = quick(epsilon=[1.0, 2.0, 0.5, 1.0, 1.0])
    used = [cost.epsilon for cost in found.certificate.costs]
    assert used == pytest.approx([1.0, 2.0, 0.5, 1.0, 1.0], rel=0.01)
    assert found.price.site == 2


def test_a_pure_budget() -> None:
    found = quick(epsilon=3.0, delta=0.0)
    assert found.certificate.run.noise == "norm"
    assert 0.99 * 3 < found.certificate.pure_epsilon <= 3.0
    with pytest.raises(ParameterError, match="never gives pure epsilon-DP"):
        quick(delta=0.0, noise="gaussian")


def test_the_run_has_the_certificate_of_the_plan() -> None:
    proxy = generate_proxy(8, 1_500, "classification", seed=3)
    sites = [(proxy.X[i::3], proxy.y[i::3]) for i in range(3)]
    found = plan(epsilon=2.0, samples=500, graph=Graph.ring(3), dimension=8, effort="quick", real=False)
    problem = Problem(sites, C=found.C, regularization=found.regularization)
    run = simulate(problem, Graph.ring(3), found.method, rounds=found.rounds, tol=found.tol)
    assert run.certificate(found.delta).epsilon == found.certificate.epsilon
    assert not run.certificate(found.delta).run.idealised


@pytest.mark.parametrize("colluding", [None, 1])
def test_a_plan_for_persons_has_the_certificate_of_their_run(colluding: int | None) -> None:
    """Each person has two rows, weighted to count as one; samples are persons."""
    proxy = generate_proxy(8, 1_500, "classification", seed=3)
    sites = [(proxy.X[i::3], proxy.y[i::3]) for i in range(3)]
    ids = [np.arange(500) // 2 + 1000 * i for i in range(3)]
    settings: dict[str, Any] = {"real": False, "effort": "quick"}
    if colluding is not None:
        settings = {"colluding": colluding, "rounds": 3}
    common: dict[str, Any] = {"epsilon": 2.0, "samples": 250, "graph": Graph.ring(3), "dimension": 8}
    found = plan(**common, unit="person", **settings)
    run = found.certificate.run
    assert (run.unit, run.persons, found.to_dict()["unit"]) == ("person", 750, "person")
    if colluding is None:
        assert "twice the persons" in found.sentence()
    assert 1.98 < found.certificate.epsilon <= 2.0
    problem = Problem(sites, C=found.C, regularization=found.regularization, persons=ids)
    rounds: dict[str, Any] = {} if colluding else {"tol": found.tol}
    certificate = simulate(problem, Graph.ring(3), found.method, rounds=found.rounds, **rounds).certificate()
    assert certificate.epsilon == found.certificate.epsilon and certificate.run.persons == run.persons


def test_only_the_ratio_of_weight_to_penalty_matters() -> None:
    one, many = quick(C=1.0), quick(C=1000.0)
    assert many.rounds == one.rounds
    assert many.method.penalty.start == pytest.approx(1000 * one.method.penalty.start, rel=1e-4)
    assert many.method.noise.std.start == pytest.approx(one.method.noise.std.start, rel=1e-4)
    with pytest.raises(ParameterError, match="`C` must not exceed the smallest site's 9044"):
        quick(C=1e5)


def test_the_smallest_site_sets_the_price_and_learns_what_helps() -> None:
    samples = [300, 4000, 4000, 4000, 4000]
    price = quick(samples=samples).price
    assert price.site == 0
    assert price.edge is not None and price.edge < price.epsilon
    assert price.rows < 0.6 * price.epsilon
    assert price.noise == pytest.approx(0.5, abs=0.15)
    assert "300 rows" in price.sentence()
    assert quick(graph=Graph.complete(5)).price.edge is None


def test_uneven_sites_get_penalties_of_their_own() -> None:
    found = quick(samples=[300, 1000, 4000, 8000, 16000])
    starts = [schedule.start for schedule in found.method.penalty]
    assert starts == sorted(starts, reverse=True)
    assert found.method.dual_step == min(starts)
    assert found.weights[4] > 10 * found.weights[0]


@pytest.mark.parametrize("kind", ["gaussian", "norm"])
def test_printed_plan_can_be_pasted_into_every_file_format(kind: Literal["gaussian", "norm"]) -> None:
    found = quick(noise=kind)
    entry = json.loads(found.to_json())
    assert from_dict(entry["penalty"]) == found.method.penalty
    assert read_noise(entry["noise"]) == found.method.noise
    assert found.method.output_noise is not None
    assert read_noise(entry["output_noise"]).scales(1, 1) == found.method.output_noise.scales(1, 1)
    keys = ("method", "penalty", "dual_step", "noise")
    look = {"name": "pasted", "label": "pasted", "colour": "#000000"}
    curve = FigureCurve.model_validate({key: entry[key] for key in keys} | look)
    assert (curve.penalty, curve.noise) == (found.method.penalty, found.method.noise)
    assert entry["epsilon"] == found.certificate.epsilon
    assert entry["price"]["sentence"] == found.price.sentence()


def test_full_runs_the_shapes_and_repeats() -> None:
    settings: dict[str, Any] = {"epsilon": 1.0, "samples": 400, "graph": Graph.ring(3), "dimension": 10}
    first, again = plan(**settings, seed=4), plan(**settings, seed=4)
    assert first.to_dict() == again.to_dict()
    losses = [tried.loss for tried in first.tried]
    assert None not in losses and losses == sorted(losses)  # type: ignore[type-var]
    chosen = next(tried for tried in first.tried if tried.shape.rounds == first.rounds)
    assert chosen.loss is not None and losses[0] is not None and chosen.loss <= 1.002 * losses[0]
    assert first.to_dict() != plan(**settings, seed=5).to_dict()


def test_the_number_of_blas_threads_does_not_change_a_plan() -> None:
    """The numbers of Adult at five sites, where a rehearsal with two threads once chose other rounds."""
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(
                tt.plan(
                    epsilon=0.3,
                    samples=[7236] * 5,
                    graph=tt.Graph.ring(5),
                    dimension=105,
                    baseline=False,
                    whiten=True,
                )
            )
    assert found[0].to_dict() == found[1].to_dict()
    assert [tried.loss for tried in found[0].tried] == [tried.loss for tried in found[1].tried]


def test_planned_run_beats_a_single_site() -> None:
    """At (1, 1e-5) the average of five sites with 2,000 rows each comes near the model without privacy."""
    d, graph = 30, Graph.complete(5)
    proxy = generate_proxy(d, 12_000, "classification", seed=11)  # not the rows that the plan is made on
    found = plan(epsilon=1.0, samples=2_000, graph=graph, dimension=d, effort="quick")
    sites = [(proxy.X[i * 2000 : (i + 1) * 2000], proxy.y[i * 2000 : (i + 1) * 2000]) for i in range(5)]
    problem = Problem(sites, C=found.C, regularization=found.regularization)
    run = simulate(problem, graph, found.method, rounds=found.rounds, repeats=5, tol=found.tol)
    test = LocalObjective(
        proxy.X[10_000:], proxy.y[10_000:], loss=Logistic(), C=1.0, regularization=1.0, sites=1
    )
    free = test.metrics(problem.optimum(1e-6)[None])[0][0]
    private = test.metrics(network_average(run.coef, found.weights))[0].mean()
    alone = test.metrics(run.coef[:, 0])[0].mean()
    blind = np.log(2)
    assert private - free < 0.25 * (blind - free)
    assert private < alone


def test_the_proxy_may_be_a_schema_or_rows() -> None:
    fields = (Number("age", 0, 100), Category("sex", ("f", "m")), Number("hours", 0, 99))
    assert quick(dimension=5, proxy=Schema(fields)).to_dict()["proxy"] == "generated from the schema"
    with pytest.raises(ParameterError, match="must be 4, or 5 with an intercept, for this schema"):
        quick(dimension=9, proxy=Schema(fields))
    proxy = generate_proxy(5, 300, "classification", seed=2)
    assert quick(dimension=5, proxy=(proxy.X, proxy.y)).to_dict()["proxy"] == "given by the user"
    with pytest.raises(DataError, match="norm at most 1"):
        quick(dimension=5, proxy=(3 * proxy.X, proxy.y))
    with pytest.raises(DataError, match="X with 6 columns"):
        quick(dimension=6, proxy=(proxy.X, proxy.y))


def test_error_names_the_wrong_setting() -> None:
    for changes, words in (
        ({"samples": [1, 2]}, "`samples` must have one entry per site, 5; got 2"),
        ({"samples": 0}, "`samples` must be at least 1"),
        ({"effort": "hard"}, "`effort` must be one of"),
        ({"noise": "laplace"}, "`noise` must be one of"),
        ({"rounds": 0}, "`rounds` must be at least 1"),
        ({"max_rounds": 0}, "`max_rounds` must be at least 1"),
        ({"rounds": 2, "max_rounds": 2}, "`rounds` and `max_rounds` exclude each other"),
        ({"epsilon": 1e-9, "regularization": 1e-6}, "out of reach"),
        ({"epsilon": 1e308}, r"`epsilon` must be between 1e-20 and 1e\+100; got 1e\+308"),
        ({"epsilon": 1e-308}, r"`epsilon` must be between 1e-20 and 1e\+100; got 1e-308"),
        ({"epsilon": 1e-9, "unit": "person"}, "persons of the smallest site.* each site more persons"),
        ({"graph": "complete", "samples": [900]}, "`effort` must be left out with one site; got 'quick'"),
        ({"graph": "ring"}, "`samples` must have one entry per site for `graph` = 'ring'; got 9044"),
        ({"unit": "family"}, "`unit` must be one of"),
        ({"unit": "person", "noise": "norm"}, "needs Gaussian noise; got noise = 'norm'"),
        ({"unit": "person", "delta": 0.0}, "needs Gaussian noise; got noise = 'best' and delta = 0"),
    ):
        with pytest.raises(ParameterError, match=words):
            quick(**changes)


def test_samples_may_be_an_array_and_epsilon_must_be_numbers() -> None:
    sizes: Any = np.array([900, 900, 900])
    settings: Any = {"graph": "ring", "dimension": 3, "effort": "quick", "real": False}
    listed = plan(epsilon=np.array([1.0, 1.0, 2.0]), samples=sizes, **settings)  # type: ignore[arg-type]
    again = plan(epsilon=[1.0, 1.0, 2.0], samples=sizes.tolist(), **settings)
    assert listed.to_json() == again.to_json()
    for wrong in ("one", None, [1.0, "two", 1.0]):
        with pytest.raises(ParameterError, match="`epsilon` must be a number"):
            plan(epsilon=wrong, samples=sizes, **settings)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="`proxy` must be") as found:
        plan(epsilon=1.0, samples=sizes, proxy=(np.eye(3), ["secret"] * 3), **settings)
    assert "secret" not in str(found.value)


def test_it_is_a_public_name() -> None:
    assert tt.plan is plan


@pytest.mark.parametrize("kind", ["gaussian", "norm"])
def test_noise_is_rounded_to_the_private_side(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    exact = 1.23456500000001 if kind == "gaussian" else 1.2345659999999

    def found(draft: Draft, budget: Any) -> Any:
        return exact * draft.releases(np.ones(len(draft.eta))).scale

    monkeypatch.setattr(planned_run, "calibrate", found)
    for scale in quick(noise=kind, epsilon=1.0).method.noise.scales(5, 1)[:, 0]:
        assert scale > exact if kind == "gaussian" else scale < exact
