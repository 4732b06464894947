"""PrivateGLM: the reference equals statsmodels, intervals hold the truth, and small budgets are refused."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.base import clone

import taciturn as tt
from taciturn.core.errors import DataError, ParameterError
from taciturn.methods.programs.glm.regression import normal_spread
from taciturn.privacy.certificate.certificate import Certificate

INF = math.inf
FAMILIES = {
    "binomial": sm.families.Binomial(),
    "gaussian": sm.families.Gaussian(),
    "poisson": sm.families.Poisson(),
}
BOUNDS = [(0.0, 1.0), (-3.0, 5.0)]
RANGES = {"gaussian": (-8.0, 8.0), "poisson": (0.0, 30.0)}
TRUTH = np.array([1.0, -0.3])


def make_data(family: str, n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 2, n), rng.normal(1.0, 1.0, n).clip(-3, 5)])
    eta = X @ TRUTH + 0.2
    if family == "gaussian":
        return X, eta + rng.normal(0, 1, n)
    if family == "poisson":
        return X, rng.poisson(np.exp(eta)).clip(0, 30).astype(float)
    return X, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


def model_for(family: str, **settings: Any) -> tt.PrivateGLM:
    return tt.PrivateGLM(family, bounds=BOUNDS, outcome=RANGES.get(family), **settings)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_noise_the_estimates_equal_those_of_statsmodels(family: str) -> None:
    X, y = make_data(family, 800)
    found = model_for(family, epsilon=INF).fit(X, y)
    oracle = sm.GLM(y, sm.add_constant(X), family=FAMILIES[family]).fit(tol=1e-12)
    assert np.append(found.intercept_, found.coef_) == pytest.approx(oracle.params, abs=1e-6)
    assert found.se_ == pytest.approx(oracle.bse[1:], abs=1e-6)
    assert found.p_values_ == pytest.approx(oracle.pvalues[1:], abs=1e-6)
    assert np.vstack([found.intercept_interval(), found.interval()]) == pytest.approx(
        oracle.conf_int(), abs=1e-6
    )
    assert "nothing is protected" in found.summary().text() and found.certificate_ is None


@pytest.mark.parametrize(("family", "epsilon"), [("binomial", 1.0), ("gaussian", 1.0), ("poisson", 1.0)])
def test_intervals_hold_the_truth_because_they_include_the_noise(family: str, epsilon: float) -> None:
    """25 fits at a budget where the noise matters: intervals from sampling error alone cover too rarely."""
    held, narrow, total = 0, 0, 0
    for seed in range(25):
        X, y = make_data(family, 1500, seed)
        found = model_for(family, epsilon=epsilon, random_state=seed).fit(X, y)
        low, high = found.interval(0.9).T
        held += int(np.sum((low <= TRUTH) & (TRUTH <= high)))
        sampling = found.result_.estimates.se("sampling")[:2] * 1.645
        narrow += int(np.sum(np.abs(found.coef_ - TRUTH) <= sampling))
        total += 2
    assert 0.8 * total <= held
    assert narrow < 0.75 * total


def test_summary_is_the_same_table_in_every_form() -> None:
    X, y = make_data("binomial", 3000)
    found = model_for("binomial", epsilon=2.0, random_state=0, names=["sex", "age_%"]).fit(X, y)
    table = found.summary(0.9)
    assert table.csv().splitlines()[0] == ",coef,odds ratio,std err,sampling,privacy,z,P>|z|,[0.05,0.95]"
    assert [row[0] for row in table.table()[1:]] == ["sex", "age_%", "intercept"]
    assert r"age\_\%" in table.latex() and "epsilon = 2.00 at delta" in table.latex()
    assert r"P$>$$|$z$|$" in table.latex() and "\n%" not in table.latex()
    plain = model_for("binomial", epsilon=INF).fit(X, y).summary()
    assert "nothing is protected" in plain._repr_html_() and "nothing is protected" in plain.html()
    assert table._repr_html_().count("<th ") == len(table.table()[0])
    assert "epsilon = 2.00" in table.text() and "<table>" in table.html()
    assert repr(table) == table.text()
    assert len(table.plot().axes[0].get_yticks()) == 2
    se = table.estimates
    assert se.se() ** 2 == pytest.approx(se.se("sampling") ** 2 + se.se("privacy") ** 2)
    assert np.array(table.facts()["interval"])[:2] == pytest.approx(found.interval(0.9))


def test_budget_certificate_and_verification_cover_all_sums(tmp_path: Any) -> None:
    X, y = make_data("binomial", 2000)
    with tt.Budget(tmp_path / "b.sqlite", epsilon=1.0, delta=1e-5) as budget:
        found = model_for("binomial", epsilon=0.9, ledger=tmp_path / "l.sqlite").fit(X, y)
        assert 0.89 < budget.spent <= 0.9 and budget.left < 0.4
    certificate = found.certificate_
    assert 0.89 < certificate.epsilon <= 0.9 and not certificate.run.simulated
    assert len(certificate.run.sums) == 16 and {s.part for s in certificate.run.sums} == {
        "aligned vectors",
        "clipped vectors",
    }
    assert Certificate.from_json(certificate.to_json()).epsilon == certificate.epsilon
    stated = certificate.run.sums[0].sensitivity
    forged = certificate.to_json().replace(repr(stated), repr(stated / 2))
    assert forged != certificate.to_json()
    with pytest.raises(tt.errors.TaciturnError, match="sensitivity"):
        Certificate.from_json(forged).verify()


def test_a_hopeless_budget_is_refused_before_anything_is_spent(tmp_path: Any) -> None:
    X, y = make_data("binomial", 300)
    ledger = tmp_path / "l.sqlite"
    with pytest.raises(ParameterError, match=r"Nothing was spent\. About epsilon = .* or [\d,]+ records"):
        model_for("binomial", epsilon=0.1, ledger=ledger).fit(X, y)
    assert not ledger.exists()


def test_too_small_budget_is_refused_with_the_sufficient_one() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 0.02, (3000, 4))  # the public ranges are fifty times too wide
    y = (rng.random(3000) < 0.5).astype(float)
    model = tt.PrivateGLM(epsilon=1.0, bounds=[(0, 1)] * 4, random_state=0)
    with pytest.raises(
        ParameterError, match=r"has been spent: .* records would be enough\. The least certain column"
    ):
        model.fit(X, y)
    assert 0.99 < model.certificate_.epsilon <= 1.0
    with pytest.raises(ParameterError, match="no valid intervals"):
        model.interval()
    assert model.result_.table()[1][0] == "refused" and model.result_.facts()["refused"]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"bounds": None}, "`bounds` must contain the public range"),
        ({"bounds": [(0, 1)]}, "`bounds` must contain 2 ranges"),
        ({"bounds": [(0, 1), (1, 1)]}, "low < high"),
        ({"family": "gamma"}, "`family`"),
        ({"family": "gaussian"}, "`outcome` must be the public range"),
        ({"outcome": (0, 2)}, "`outcome` must not be given"),
        ({"outcome": (0, 1, 7)}, "and `outcome` two numbers"),
        ({"family": "gaussian", "outcome": (0, 1, 7)}, "and `outcome` two numbers"),
        ({"periods": [1, 2]}, "`periods` must be given for the family 'hazard'"),
        ({"schema": tt.data.Schema.of(a=(0, 1))}, "`schema` needs a `formula`"),
        ({"epsilon": -1.0}, "`epsilon`"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings: dict[str, Any], match: str) -> None:
    X, y = make_data("binomial", 200)
    with pytest.raises(ParameterError, match=match):
        tt.PrivateGLM(**({"bounds": BOUNDS} | settings)).fit(X, y)


def test_wrong_rows_are_refused_without_quoting_them() -> None:
    X, y = make_data("binomial", 200)
    with pytest.raises(DataError, match="must contain only 0 and 1"):
        model_for("binomial").fit(X, y + 1)
    with pytest.raises(DataError, match="must be finite"):
        model_for("binomial").fit(np.where(X == 1.0, np.nan, X), y)


def test_one_more_bound_is_that_of_the_outcome_and_a_clone_keeps_everything() -> None:
    X, y = make_data("gaussian", 500)
    model = tt.PrivateGLM("gaussian", epsilon=INF, bounds=[*BOUNDS, (-8, 8)])
    assert clone(model).fit(X, y).coef_ == pytest.approx(model_for("gaussian", epsilon=INF).fit(X, y).coef_)


def test_a_clone_uses_the_same_engine() -> None:
    class Cluster:
        def __init__(self) -> None:
            self.lock = threading.Lock()  # cannot be copied

        def run(self, setup: Any, *, show: bool | None = None) -> Any: ...

    engine = Cluster()
    assert clone(tt.PrivateGLM(bounds=BOUNDS, engine=engine)).engine is engine


def make_survival(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 1))
    hazard = 1 / (1 + np.exp(-(np.array([-2.0, -1.8, -1.5]) + 1.0 * x)))
    events = rng.random((n, 3)) < hazard
    first = np.where(events.any(axis=1), events.argmax(axis=1) + 1, 4)
    censored = rng.integers(1, 6, n)
    last = np.minimum(np.minimum(first, censored), 3)
    return x, np.column_stack([last, first <= np.minimum(censored, 3)]).astype(float)


def test_a_hazard_without_noise_is_a_logistic_regression_on_person_periods() -> None:
    x, y = make_survival(600, 0)
    found = tt.PrivateGLM("hazard", epsilon=INF, bounds=[(0, 1)], periods=[1, 2, 3]).fit(x, y)
    who = np.repeat(np.arange(600), y[:, 0].astype(int))
    period = np.concatenate([np.arange(int(t)) for t in y[:, 0]])
    rows = np.column_stack([x[who], np.eye(3)[period]])
    event = (period == y[who, 0] - 1) * y[who, 1]
    oracle = sm.GLM(event, rows, family=sm.families.Binomial()).fit(tol=1e-12)
    assert np.append(found.coef_, found.intercept_) == pytest.approx(oracle.params, abs=1e-6)
    curve = found.survival([0.5])
    assert curve[:, 0] == pytest.approx(
        np.cumprod(1 - 1 / (1 + np.exp(-(0.5 * found.coef_[0] + found.intercept_))))
    )
    assert np.all((curve[:, 1] < curve[:, 0]) & (curve[:, 0] < curve[:, 2]))


def test_a_private_hazard_and_its_curves_hold_the_truth() -> None:
    held, curves, narrow = 0, 0, 0
    truth = np.cumprod(1 - 1 / (1 + np.exp(-(np.array([-2.0, -1.8, -1.5]) + 0.7))))
    for seed in range(12):
        x, y = make_survival(6000, seed)
        found = tt.PrivateGLM("hazard", epsilon=1.0, bounds=[(0, 1)], periods=[1, 2, 3], random_state=seed)
        ends = found.fit(x, y).intercept_interval(0.99)
        held += int(np.sum((ends[:, 0] <= [-2.0, -1.8, -1.5]) & (ends[:, 1] >= [-2.0, -1.8, -1.5])))
        band = found.survival([0.7], 0.9)
        curves += int(np.sum((band[:, 1] <= truth) & (truth <= band[:, 2])))
        bare = found.result_.estimates._replace(privacy=np.zeros((4, 4)))
        band = replace(found.result_, estimates=bare).survival([0.7], 0.9)
        narrow += int(np.sum((band[:, 1] <= truth) & (truth <= band[:, 2])))
    assert held >= 33 and curves >= 27  # of 36
    assert narrow < curves - 6  # the noise is in them


def test_curves_of_persons_are_asked_for_by_the_cells_of_a_formula() -> None:
    x, y = make_survival(3000, 0)
    schema = tt.data.Schema.of(a=(0, 1), sex=["f", "m"], time=(0, 3), event=(0, 1))
    table = {"a": x[:, 0], "sex": np.where(x[:, 0] > 0.5, "m", "f"), "time": y[:, 0], "event": y[:, 1]}
    site = np.where(np.arange(3000) % 2, "north", "south")
    settings = {"family": "hazard", "periods": [1, 2, 3], "epsilon": INF}
    found = tt.PrivateGLM.from_formula("time + event ~ a + C(sex) + site", schema, **settings)
    found.fit(table, site=site)
    person = {"a": 0.3, "sex": "m", "site": "south"}
    assert found.survival(person) == pytest.approx(found.survival([0.3, 1.0, 1.0]))
    assert len(found.plot_survival({"he": person, "she": person | {"sex": "f"}}).axes[0].lines) == 2
    for wrong, match in (
        ({"a": 0.3}, "`x` must contain"),
        (person | {"site": "moon"}, "`site`"),
        (person | {"sex": "x"}, "cannot be read"),
    ):
        with pytest.raises(ParameterError, match=match):
            found.survival(wrong)
    with pytest.raises(ParameterError, match="only a model with a formula accepts a mapping"):
        tt.PrivateGLM("hazard", epsilon=INF, bounds=[(0, 1)], periods=[1, 2, 3]).fit(x, y).survival({"a": 1})


def test_a_plan_predicts_the_standard_errors_from_public_numbers() -> None:
    X, y = make_data("binomial", 4000)
    model = model_for("binomial", epsilon=1.0, random_state=0)
    plan = tt.plan(model, records=4000, spreads=[0.5, 1.0], rate=float(y.mean()))
    assert plan.se == pytest.approx(model.fit(X, y).se_, rel=0.35)
    more = model.plan(8000, spreads=[0.5, 1.0])
    assert more.privacy[0] < 0.55 * plan.privacy[0] and len(plan.plot().axes) == 1
    assert "detectable" in repr(plan)
    for settings, match in (
        ({"spreads": [1.0]}, "`spreads`"),
        ({"residual": 1.0}, "`residual`"),
        ({"exposure": 2.0}, "`exposure`"),
        ({"rate": 1.5}, "`rate`"),
    ):
        with pytest.raises(ParameterError, match=match):
            model.plan(4000, **settings)
    with pytest.raises(ParameterError, match="Nothing was spent"):
        model.plan(50)
    with pytest.raises(ParameterError, match="`plan` must be given keyword arguments, or one regression"):
        tt.plan(3, records=4000)


def test_counts_that_are_not_those_of_a_poisson_model_are_refused() -> None:
    """Clipped residuals are corrected with the mean of a Poisson count; others would be biased."""
    X, y = make_data("poisson", 6000)
    model = model_for("poisson", epsilon=2.0, random_state=0)
    assert model.fit(X, y).result_.reason == ""
    rng = np.random.default_rng(0)
    wild = rng.poisson(np.exp(X @ TRUTH + 0.2) * rng.gamma(0.7, 1 / 0.7, 6000)).clip(0, 30)
    with pytest.raises(ParameterError, match="the counts vary more than a Poisson regression allows"):
        model.fit(X, wild.astype(float))


@pytest.mark.filterwarnings("error")
def test_uninformative_rows_are_refused_with_the_reason() -> None:
    X, y = make_data("binomial", 3000)
    schema = tt.data.Schema.of(a=(0, 1), b=(-3, 5), y=(0, 1))
    table: dict[str, Any] = {"a": X[:, 0], "b": X[:, 1], "y": y}
    model = tt.PrivateGLM.from_formula("y ~ a + b", schema, epsilon=2.0, random_state=0)
    with pytest.raises(ParameterError, match="hardly any record is complete"):
        model.fit(table | {"y": ["?"] * 3000})
    with pytest.raises(ParameterError, match=r"'b': .* drop it if it is nearly constant"):
        model.fit(table | {"b": np.full(3000, 1.0)})
    with pytest.raises(DataError, match=r"not predict `y` perfectly|must not be predicted perfectly"):
        tt.PrivateGLM(epsilon=INF, bounds=BOUNDS).fit(X, (X[:, 1] > 1) * 1.0)


def make_hazards(n: int, seed: int) -> tuple[Any, Any]:
    """Proportional hazards: 1 - exp(-exp(eta)) in each of three periods."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, (n, 1))
    events = rng.random((n, 3)) < 1 - np.exp(-np.exp(np.array([-2.0, -1.8, -1.5]) + 0.8 * x))
    first = np.where(events.any(axis=1), events.argmax(axis=1) + 1, 4)
    return x, np.column_stack([np.minimum(first, 3), first <= 3]).astype(float)


def test_hazard_ratios_without_noise_are_those_of_statsmodels() -> None:
    x, y = make_hazards(800, 0)
    settings = {"bounds": [(0, 1)], "periods": [1, 2, 3], "link": "cloglog"}
    found = tt.PrivateGLM("hazard", epsilon=INF, **settings).fit(x, y)
    who = np.repeat(np.arange(800), y[:, 0].astype(int))
    period = np.concatenate([np.arange(int(t)) for t in y[:, 0]])
    rows, event = np.column_stack([x[who], np.eye(3)[period]]), (period == y[who, 0] - 1) * y[who, 1]
    family = sm.families.Binomial(link=sm.families.links.CLogLog())
    oracle = sm.GLM(event, rows, family=family).fit(tol=1e-12)
    assert np.append(found.coef_, found.intercept_) == pytest.approx(oracle.params, abs=1e-6)
    assert found.se_ == pytest.approx(oracle.bse[:1], rel=1e-4)
    assert found.survival([0.5])[:, 0] == pytest.approx(
        np.exp(-np.cumsum(np.exp(0.5 * found.coef_[0] + found.intercept_)))
    )
    assert "hazard ratio" in found.summary().text()
    with pytest.raises(ParameterError, match="`link` must be left out"):
        model_for("binomial", link="cloglog").fit(*make_data("binomial", 200))


def test_private_hazard_ratios_hold_the_truth_because_they_include_the_noise() -> None:
    truth, held, narrow = np.array([0.8, -2.0, -1.8, -1.5]), 0, 0
    for seed in range(20):
        x, y = make_hazards(6000, seed)
        settings = {"bounds": [(0, 1)], "periods": [1, 2, 3], "link": "cloglog", "random_state": seed}
        found = tt.PrivateGLM("hazard", epsilon=1.0, **settings).fit(x, y).result_.estimates
        held += int(np.sum(np.abs(found.values - truth) <= 1.645 * found.se()))
        narrow += int(np.sum(np.abs(found.values - truth) <= 1.645 * found.se("sampling")))
    assert 64 <= held and narrow < held - 6  # of 80, nominally 72


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.0, 3.0])
def test_the_spread_of_residuals_is_recovered_from_their_clipped_squares(sd):
    square = stats.norm(scale=sd).expect(lambda e: min(e * e, 1.0), epsabs=1e-10)
    assert normal_spread(square) == pytest.approx(sd, rel=1e-4)


def test_the_standard_error_of_a_rare_category_includes_the_curvature_of_the_link(monkeypatch) -> None:
    """Its few rows are far from the others: noise moves their margins over a bent part of the link."""
    from taciturn.methods.programs.glm import regression_fit

    rng, n = np.random.default_rng(0), 20_000
    age, rare = rng.uniform(0, 1, n), (rng.random(n) < 0.01) * 1.0
    y = (rng.random(n) < 1 / (1 + np.exp(-(-1.5 + age - rare)))) * 1.0
    model = tt.PrivateGLM(epsilon=3.0, bounds=[(0, 1), (0, 1)], random_state=0)
    found = model.fit(np.column_stack([age, rare]), y).se_
    monkeypatch.setattr(regression_fit, "_bends", lambda program, state: np.zeros(len(state.levels)))
    straight = model.fit(np.column_stack([age, rare]), y).se_
    assert found[0] == pytest.approx(straight[0], rel=0.01) and found[1] > 1.1 * straight[1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bounds": [(0, 1), (1,)]}, "two numbers"),
        ({"bounds": [0, 1]}, "two numbers"),
        ({"bounds": [("a", 1), (0, 1)]}, "two numbers"),
        ({"bounds": [(0, 1), (-1e308, 1e308)]}, "apart"),
        ({"bounds": [(0, 1), (2, 2)]}, "`bounds` of x2 .* low < high"),
        ({"bounds": [(0, 1), (0, 1)], "family": "gaussian", "outcome": (3, 1)}, "`outcome` must .* < high"),
        ({"bounds": [(0, 1), (0, 1)], "outcome": (0,)}, "two numbers"),
        ({"bounds": [(0, 1), (0, 1)], "names": ["one"]}, "`names`"),
    ],
)
def test_malformed_ranges_are_refused_before_anything_is_spent(settings: Any, words: str) -> None:
    X = np.random.default_rng(0).uniform(0, 1, (20_000, 2))
    with pytest.raises(ParameterError, match=words):
        tt.PrivateGLM(epsilon=5.0, **settings).fit(X, X[:, 0] > 0.5)


def test_event_of_a_hazard_must_be_0_or_1() -> None:
    X = np.random.default_rng(0).uniform(0, 1, (500, 1))
    model = tt.PrivateGLM("hazard", bounds=[(0, 1)], periods=[1, 2])
    with pytest.raises(DataError, match="the event"):
        model.fit(X, np.column_stack([X[:, 0], 7 * (X[:, 0] > 0.5)]))


@pytest.mark.parametrize("epsilon", [5.0, INF])
@pytest.mark.parametrize("name", ["person", "site"])
def test_ids_of_several_types_or_of_another_length_are_refused(epsilon: float, name: str) -> None:
    X = np.random.default_rng(0).uniform(0, 1, (20_000, 1))
    model = tt.PrivateGLM(epsilon=epsilon, bounds=[(0, 1)])
    for wrong in ([1, 2], [None] * 5 + ["a"] * 19_995):
        with pytest.raises(DataError, match=f"`{name}` must"):
            model.fit(X, X[:, 0] > 0.5, **{name: wrong})


def test_sparse_rows_give_the_result_of_dense_rows() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    X = np.random.default_rng(0).uniform(0, 1, (2000, 1))
    dense, thin = (
        tt.PrivateGLM("gaussian", epsilon=INF, bounds=[(0, 1), (0, 1)]).fit(kind, X[:, 0] ** 2)
        for kind in (X, sparse.csr_matrix(X))
    )
    assert np.array_equal(dense.coef_, thin.coef_)
