"""Sites that assume all others collude: which method is chosen, why, and how to choose the other."""

import numpy as np
import pytest

import taciturn as tt
from taciturn.core import checks
from taciturn.core.errors import ParameterError
from taciturn.methods.base import Network, RunOptions
from taciturn.objective import L2
from taciturn.planning.calibration import EpsilonBudget
from taciturn.planning.masked import forecast_whitened, penalty_reason
from taciturn.planning.penalty import forecast_penalty, public_spectrum
from taciturn.planning.plan import find_plan
from taciturn.planning.request import PlanRequest


def asked(sites=5, rows=8_000, d=30, epsilon=1.0, delta=1e-5, **changes):
    graph = tt.Graph.complete(sites)
    budget = EpsilonBudget((epsilon,) * sites, delta)
    settings = {"loss": tt.Logistic(), "choose": True, "constant": 0.4, **changes}
    return PlanRequest(budget, (rows,) * sites, graph, d, **settings)


def test_the_better_forecast_is_chosen_and_the_reason_given():
    request = asked()
    spectrum = public_spectrum(request)
    assert forecast_whitened(request, spectrum) < forecast_penalty(request)
    plan = find_plan(request)
    assert isinstance(plan.method, tt.MaskedDescent) and plan.method.colluding is None
    assert "whitened coordinates" in plan.sentence() and "forecast" in plan.sentence()
    assert plan.certificate.epsilon <= 1.0
    assert plan.certificate.epsilon_against(None) == plan.certificate.epsilon


def test_a_forecast_grows_with_the_noise():
    spectrum = public_spectrum(asked())
    losses = [forecast_whitened(asked(epsilon=epsilon), spectrum) for epsilon in (0.3, 1.0, 3.0, 10.0)]
    assert losses == sorted(losses, reverse=True) and losses[0] > 3 * losses[-1]


def test_the_papers_method_can_be_asked_for_by_its_name():
    plan = find_plan(asked(method="penalty", effort="quick"))
    assert isinstance(plan.method, tt.PenaltyPerturbation)
    told = find_plan(asked(effort="quick"))
    assert isinstance(told.method, tt.PenaltyPerturbation) and "effort" in told.facts()["choice"]
    with pytest.raises(ParameterError, match="`method` must be"):
        find_plan(asked(method="dual"))
    with pytest.raises(ParameterError, match="`colluding` must be None"):
        find_plan(asked(method="penalty", colluding=1))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"delta": 0.0}, "pure"),
        ({"noise": "gaussian"}, "noise"),
        ({"effort": "quick"}, "effort"),
        ({"outputs": 3}, "two classes"),
        ({"loss": tt.SmoothHinge()}, "logistic"),
        ({"rows": 40}, "too few"),
    ],
)
def test_settings_of_the_papers_method_select_it(changes, reason):
    assert reason in penalty_reason(asked(**changes))


def test_an_estimator_without_trust_reports_its_choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 6)) / 8
    X[:, 1] = X[:, 0] + 0.05 * X[:, 1]
    y = (X @ [1.0, -1.0, 2.0, 0.0, 0.0, 1.0] + 0.1 * rng.normal(size=6_000)) > 0
    clf = tt.PrivateLogisticRegression(epsilon=3.0, sites=3, random_state=0).fit(X, y)
    assert isinstance(clf.plan_.method, tt.MaskedDescent) and clf.certificate_.epsilon <= 3.0
    assert clf.certificate_.run.colluding is None and clf.score(X, y) > 0.8
    clf.certificate_.verify()


@pytest.mark.parametrize("loss", [tt.Logistic(), tt.SmoothHinge(), tt.LogCosh()], ids=lambda loss: loss.name)
def test_five_sites_with_400_000_rows_work_without_tuning(loss):
    """A real run starts: floats can certify the solver's tolerance for this many rows."""
    plan = find_plan(asked(rows=80_000, d=10, delta=2.5e-7, method="penalty", effort="quick", loss=loss))
    network = Network(
        total=5,
        sites=tuple(range(5)),
        samples=(80_000,) * 5,
        degrees=(4,) * 5,
        names=(),
        dimension=10,
        loss=loss,
        C=plan.C,
        regularization=plan.regularization,
        regularizer=L2(),
    )
    prepared = plan.method.prepare(network, plan.rounds, RunOptions(real=True, tol=plan.tol))
    assert prepared.run_facts(simulated=False, where="process").integers


def test_delta_none_is_a_tenth_of_one_over_the_records():
    assert checks.usual_delta(None, 400_000, insisted=False) == 2.5e-7
    assert checks.usual_delta(None, 900, insisted=False) == 1e-5
    plan = tt.plan(
        epsilon=1.0, delta=None, samples=80_000, graph=tt.Graph.complete(5), dimension=10, colluding=1
    )
    assert plan.delta == plan.certificate.delta == 2.5e-7
