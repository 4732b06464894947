"""Masked descent in one process: simulated and real, whatever the graph, the split and the threads."""

import itertools
import math

import numpy as np
import pytest

import taciturn as tt
from support.problems import make_sites
from taciturn.core.errors import BudgetExceeded, DataError, ParameterError
from taciturn.privacy.facts import SiteBudget

METHOD = tt.MaskedDescent(epsilon=1.0, delta=1e-5)


def make_problem(n=4, rows=300, d=5, **facts):
    return tt.Problem(make_sites(n, rows=rows, d=d), **{"C": 1.0, "regularization": 1e-4, **facts})


def simulate(problem, graph=None, method=METHOD, **facts):
    graph = tt.Graph.ring(problem.n) if graph is None else graph
    return tt.simulate(problem, graph, method, **{"rounds": 12, "repeats": 2, "seed": 3, **facts})


def test_a_simulation_repeats_and_every_site_holds_the_same_model():
    run = simulate(make_problem(), history=True)
    again = simulate(make_problem(), threads=2)
    np.testing.assert_array_equal(run.coef, again.coef)
    assert run.coef.shape == (2, 4, 5) and run.history.shape == (12, 2, 4, 5)
    assert not run.consensus_gap.any()
    assert not np.array_equal(run.coef[0], run.coef[1])
    assert not np.array_equal(run.coef, simulate(make_problem(), seed=4).coef)
    np.testing.assert_array_equal(run.coef[:1], simulate(make_problem(), repeats=1).coef)
    assert run.loss[:, -1].max() < run.loss[:, 0].min()


def test_graph_of_a_masked_run_does_not_change_the_result():
    np.testing.assert_array_equal(
        simulate(make_problem()).coef, simulate(make_problem(), graph=tt.Graph.complete(4)).coef
    )
    assert simulate(make_problem(), graph="star").settings["graph"]["name"].startswith("star")


def test_the_model_does_not_depend_on_who_holds_which_rows():
    """Each site rounds its share to a grid, so models differ by a few steps of it."""
    X, y = (np.concatenate(part) for part in zip(*make_sites(4, rows=300, d=5), strict=True))
    even = [(X[i::4], y[i::4]) for i in range(4)]
    bounds = [0, 3, 10, 500, 1200]
    uneven = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(bounds)]
    runs = [simulate(tt.Problem(s, C=1.0, regularization=1e-4)) for s in (even, uneven)]
    np.testing.assert_allclose(runs[0].coef, runs[1].coef, atol=1e-6)


def test_more_sites_cost_nothing():
    """With noise set for one colluder, twenty sites do as well as four; with all colluding they do not."""
    X, y = (np.concatenate(part) for part in zip(*make_sites(1, rows=6000, d=8, seed=2), strict=True))
    best = tt.Problem([(X, y)], C=1.0, regularization=1e-4)
    floor = float(best.site(0).metrics(best.optimum()[None])[0][0])

    def excess(sites, colluding):
        rows = [(X[i::sites], y[i::sites]) for i in range(sites)]
        run = simulate(
            tt.Problem(rows, C=1.0, regularization=1e-4),
            method=tt.MaskedDescent(epsilon=0.5, colluding=colluding),
            rounds=41,
            repeats=8,
        )
        return float(run.loss[:, -1].mean()) - floor

    few, many, none = excess(4, 1), excess(20, 1), excess(20, None)
    assert many < 1.3 * few
    assert none > 1.5 * many


@pytest.mark.parametrize("loss", [tt.SmoothHinge(), tt.LogCosh(0.5), tt.Logistic()])
def test_every_loss_comes_close_to_its_optimum(loss):
    sites = make_sites(4, rows=3000, d=5)
    if loss.kind == "regression":
        rng = np.random.default_rng(0)
        sites = [(X, X @ np.arange(5.0) / 3 + 0.1 * rng.normal(size=len(X))) for X, _ in sites]
    problem = tt.Problem(sites, loss=loss, C=1.0, regularization=1e-4)
    f, zero = problem.optimum()[None], np.zeros((1, 5))
    best, worst = (np.mean([problem.site(i).metrics(g)[0] for i in range(4)]) for g in (f, zero))
    run = simulate(problem, method=tt.MaskedDescent(epsilon=2.0), rounds=41, repeats=4)
    assert run.loss[:, -1].mean() - best < 0.1 * (worst - best)


def test_several_classes_take_one_release():
    rng = np.random.default_rng(0)
    truth = 6 * rng.normal(size=(3, 4))
    sites = []
    for _ in range(4):
        X = rng.normal(size=(3000, 4))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        gumbel = rng.gumbel(size=(3000, 3)) + np.array([2.0, 0.0, -1.0])  # imbalanced
        sites.append((X, np.argmax(X @ truth.T + gumbel, axis=1)))
    problem = tt.SoftmaxProblem(sites, classes=3, C=1.0, regularization=1e-4)
    run = simulate(problem, rounds=41)
    assert [s.length for s in run.ledger.run.sums] == [10] + [12] * 40
    assert run.coef.shape == (2, 4, 12)
    common = max(np.mean(np.concatenate([y for _, y in sites]) == k) for k in range(3))
    assert run.accuracy[:, -1].min() > common + 0.08
    with pytest.raises(ParameterError, match="`method` must be MaskedDescent"):
        tt.simulate(problem, "ring", tt.ADMM(1.0), rounds=2)


def test_many_columns_release_no_second_moments():
    run = simulate(make_problem(d=300, rows=100), rounds=4, repeats=1)
    assert [s.length for s in run.ledger.run.sums] == [600, 300, 300, 300]


def test_a_real_run_is_secret_and_measures_nothing_unless_asked():
    problem = make_problem()
    first, second = (tt.train(problem, "ring", METHOD, rounds=5) for _ in range(2))
    assert not np.any(first.coef == second.coef)
    assert np.isnan(first.loss).all() and not first.ledger.run.simulated
    assert np.isfinite(tt.train(problem, "ring", METHOD, rounds=5, measure=True).loss).all()


def test_the_ledger_holds_every_release_of_every_site(tmp_path):
    run = tt.train(make_problem(), "ring", METHOD, rounds=5, ledger=tmp_path / "ledger.db")
    facts = run.ledger.run
    assert (facts.method, facts.noise, facts.colluding, facts.connectivity) == (
        "masked",
        "discrete",
        1,
        None,
    )
    for site in range(4):
        with tt.SqliteLedger(tmp_path / "ledger.db") as ledger:
            columns = ledger.columns(site)
        assert ledger.run == facts
        assert columns.t.tolist() == [1, 2, 3, 4, 5]
        assert columns.scale.tolist() == [entry.std for entry in facts.sums]


def test_persons_count_once_wherever_their_rows_are():
    sites = make_sites(3, rows=60, d=4)
    ids = [np.arange(60) // 3 + 15 * k for k in range(3)]
    problem = tt.Problem(sites, C=1.0, regularization=0.1, persons=ids, sites_per_person=3)
    run = simulate(problem, rounds=5)
    facts = run.ledger.run
    assert (facts.unit, facts.persons) == ("person", 50)
    assert facts.sums[2].sensitivity == pytest.approx(1 / 50)
    assert 0.9999 < run.certificate(1e-5).epsilon <= 1.0


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"start": "random"}, "`start` must be 'zeros'"),
        ({"rounds": 2}, "`rounds` must be at least 3"),
        ({"method": tt.MaskedDescent(colluding=4)}, "`colluding` must be below the number of sites, 4"),
        ({"graph": tt.Graph.ring(5)}, "`graph` must have . nodes, one per site"),
        ({"seed": -1}, "`seed`"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_spent(facts, words):
    with pytest.raises(ParameterError, match=words):
        simulate(make_problem(), **facts)


def test_rows_over_the_norm_and_varying_constants_are_refused():
    long = [(2 * X, y) for X, y in make_sites(4)]
    with pytest.raises(DataError, match="norm at most 1"):
        simulate(tt.Problem(long, C=1.0, regularization=0.1))
    with pytest.raises(DataError, match="must be the last entry of every row"):
        simulate(make_problem(), method=tt.MaskedDescent(constant=0.5))


def test_certificate_against_colluders():
    run = simulate(make_problem(), method=tt.MaskedDescent(epsilon=1.0, delta=1e-5, colluding=1))
    certificate = run.certificate(1e-5)
    assert 0.9999 < certificate.epsilon <= 1.0
    assert certificate.epsilon_against(0) < certificate.epsilon_against(1) < certificate.epsilon_against(3)
    with pytest.raises(BudgetExceeded):
        tt.train(make_problem(), "ring", METHOD, rounds=5, budget=SiteBudget(0.9, 1e-5))
    assert math.isfinite(certificate.epsilon_against(3))
