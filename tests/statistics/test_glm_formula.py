"""Formulas: categories and ranges come from the schema, nothing is evaluated, missing cells are counted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.questions.kinds import read_questions
from taciturn.questions.question import PublicTable

SCHEMA = tt.data.Schema.of(age=(18, 100), bmi=(10, 60), sex=["f", "m"], ward=["a", "b", "c"], death=(0, 1))


def make_table(n: int) -> Any:
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 90, n),
            "bmi": rng.normal(27, 4, n).clip(15, 50),
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
            "site": rng.choice(["A", "B", "C"], n),
        }
    )
    eta = -3 + 0.03 * table.age + 0.5 * (table.sex == "m") + 0.4 * (table.ward == "c")
    return table.assign(death=(rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float))


FAMILIES = {
    "death": ("binomial", sm.families.Binomial()),
    "stay": ("gaussian", sm.families.Gaussian()),
    "falls": ("poisson", sm.families.Poisson()),
}
RIGHT = "age + C(sex) + ward + age:bmi + site + age:C(sex)"


def make_outcomes(n: int) -> tuple[pd.DataFrame, tt.data.Schema]:
    """A table with an outcome for every family, and its schema."""
    table, rng = make_table(n), np.random.default_rng(1)
    eta = 0.01 * table.age + 0.5 * (table.sex == "m") + 0.3 * (table.site == "B")
    month = rng.geometric(1 / (1 + np.exp(3.0 - eta)))
    more = {
        "stay": (5 + eta + rng.normal(0, 1, n)).clip(0, 20),
        "falls": rng.poisson(np.exp(eta - 1)).clip(0, 40),
    }
    table = table.assign(**more, month=np.minimum(month, 3), event=(month <= 3) * 1.0)
    schema = tt.data.Schema(
        (*SCHEMA, *tt.data.Schema.of(stay=(0, 20), falls=(0, 40), month=(1, 3), event=(0, 1)))
    )
    return table, schema


def equals(found: tt.PrivateGLM, oracle: Any, named: dict[str, str]) -> None:
    """Estimates and standard errors are those of the oracle to 1e-6."""
    for name, value in oracle.params.items():
        own = named.get(name, name.replace("C(sex)", "sex").replace("[T.", "["))
        place = found.result_.all_names.index(own)
        assert found.result_.estimates.values[place] == pytest.approx(value, abs=1e-6)
        assert found.result_.estimates.se()[place] == pytest.approx(oracle.bse[name], abs=1e-6)
    assert len(oracle.params) == len(found.result_.all_names)


@pytest.mark.parametrize("outcome", FAMILIES)
def test_interactions_and_site_effects_equal_those_of_statsmodels(outcome: str) -> None:
    table, schema = make_outcomes(1500)
    (family, oracles), formula = FAMILIES[outcome], f"{outcome} ~ {RIGHT}"
    found = tt.PrivateGLM.from_formula(formula, schema, family=family, epsilon=math.inf)
    oracle = smf.glm(formula, table, family=oracles).fit(tol=1e-12)
    equals(found.fit(table, site=table["site"]), oracle, {"Intercept": "intercept"})


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_a_hazard_with_interactions_and_site_effects_equals_that_of_statsmodels(link: str) -> None:
    table, schema = make_outcomes(1500)
    found = tt.PrivateGLM.from_formula(
        f"month + event ~ {RIGHT}", schema, family="hazard", periods=[1, 2, 3], link=link, epsilon=math.inf
    ).fit(table, site=table["site"])
    rows = table.loc[table.index.repeat(table["month"])]
    rows = rows.assign(period=rows.groupby(level=0).cumcount() + 1)
    rows = rows.assign(now=(rows["period"] == rows["month"]) * rows["event"])
    links = {"logit": sm.families.links.Logit(), "cloglog": sm.families.links.CLogLog()}
    oracle = smf.glm(f"now ~ 0 + C(period) + {RIGHT}", rows, family=sm.families.Binomial(links[link])).fit(
        tol=1e-12
    )
    equals(found, oracle, {f"C(period)[{k}]": f"until {k}" for k in (1, 2, 3)})


def test_rows_with_missing_cells_do_not_count_and_the_rest_is_counted() -> None:
    table = make_table(8000)
    table.loc[table.index[:2000], "bmi"] = np.nan
    asked = tt.PrivateGLM.from_formula("death ~ age + bmi", SCHEMA, epsilon=3.0, random_state=0).fit(table)
    share, error = asked.result_.counted
    assert abs(share - 0.75) < 5 * error < 0.1 and "Complete records: about" in asked.summary().text()
    plain = tt.PrivateGLM.from_formula("death ~ age + bmi", SCHEMA, epsilon=math.inf).fit(table)
    assert plain.result_.units == 6000
    assert asked.se_ == pytest.approx(plain.se_, rel=0.3)
    both = tt.PrivateGLM.from_formula("death ~ age + bmi", SCHEMA, indicators=["bmi"], epsilon=math.inf).fit(
        table
    )
    assert both.result_.all_names == ("age", "bmi", "bmi missing", "intercept") and both.result_.units == 8000


def test_count_of_complete_records_is_not_biased_where_all_are_complete() -> None:
    table, shares = make_table(2000), []
    for seed in range(6):
        asked = tt.PrivateGLM.from_formula("death ~ age", SCHEMA, epsilon=3.0, random_state=seed).fit(table)
        assert asked.result_.counted is not None
        shares.append(asked.result_.counted[0])
    assert max(shares) == 1.0 and sum(share == 1.0 for share in shares) >= 2  # noise above 1 half of the time


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("death ~ weight", "must name columns of the schema"),
        ("death ~ np.log(age)", "must be made of columns"),
        ("death ~ __import__('os').system('true')", "must be made of columns|must have the form"),
        ("death ~ {age + 1}", "must be made of columns|must name columns"),
        ("death ~ age - 1", "must not remove the intercept"),
        ("death ~ 1", "at least one column"),
        ("age ~ bmi", "an outcome with two values"),
        ("~ age", "the form"),
        ("death ~ age:ward", "must also have the term 'ward' by itself"),
        ("death + age ~ bmi", "of the form"),
    ],
)
def test_a_formula_is_read_and_never_evaluated(formula: str, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        tt.PrivateGLM.from_formula(formula, SCHEMA)


def test_a_job_asks_for_the_same_with_the_same_keys() -> None:
    (question,) = read_questions([{"kind": "glm", "formula": "death ~ age + ward"}], several=False)
    public = PublicTable(SCHEMA)
    assert question.reads(public) == ("death", "age", "ward")
    with pytest.raises(ParameterError, match=r"`glm.family`"):
        read_questions([{"kind": "glm", "formula": "death ~ age", "family": "gamma"}], several=False)


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("died ~ age + age**2", "must not contain powers"),
        ("died ~ age + died", "on both sides"),
        ("died ~ np.log(age)", "must be made of columns"),
        ("died ~ age + site", "`site` must be given to `fit`"),
    ],
)
def test_formulas_that_would_mislead_are_refused_before_anything_is_spent(formula, match):
    schema = tt.data.Schema.of(age=(18, 100), died=(0, 1))
    with pytest.raises(ParameterError, match=match):
        tt.PrivateGLM.from_formula(formula, schema, epsilon=1.0).fit({"age": [20.0] * 99, "died": [1.0] * 99})


def test_names_with_spaces_stand_in_backticks():
    schema = tt.data.Schema((tt.data.Number("age in years", 18, 100), tt.data.Number("died", 0, 1)))
    age = np.linspace(18, 100, 400)
    table = {"age in years": age, "died": (np.arange(400) % 7 < age / 20) * 1.0}
    found = tt.PrivateGLM.from_formula("died ~ `age in years`", schema, epsilon=math.inf).fit(table)
    assert found.result_.names == ("age in years",) and found.coef_[0] > 0


def test_a_plan_knows_how_a_product_depends_on_its_parts() -> None:
    """If the plan ignores this, the planned standard errors are three to ten times too small."""
    rng, n = np.random.default_rng(0), 8000
    age, bmi = rng.normal(59, 14, n).clip(18, 100), rng.normal(35, 8, n).clip(10, 60)
    table = {"age": age, "bmi": bmi, "death": (rng.random(n) < 0.3) * 1.0}
    right = "death ~ age + bmi + age:bmi"
    plain = tt.PrivateGLM.from_formula(right, SCHEMA, epsilon=math.inf).fit(table)
    model = tt.PrivateGLM.from_formula(right, SCHEMA, epsilon=1.0)
    planned = model.plan(n, rate=0.3, spreads=[14, 8, (age * bmi).std()]).sampling
    assert planned == pytest.approx(plain.se_, rel=0.15)
    assert model.plan(n, rate=0.3).sampling[2] > 0.3 * plain.se_[2]  # spreads of a quarter of the ranges
