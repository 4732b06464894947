"""Public facts, methods, problems and ledgers, with a change of each parameter that must matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import taciturn as tt
from support.example_run import charges, run_facts, site_facts
from support.parameters import Change, Entry, Fresh, look_at
from support.problems import make_sites
from taciturn.core.errors import BudgetExceeded, GraphError
from taciturn.methods.base import Network
from taciturn.methods.programs.masked_descent import PublicFacts
from taciturn.privacy.ledger.chain import Head

RESULTS = {
    "Certificate": "made by `from_ledger` and `from_json`",
    "OwnMethod": "a class to derive from: it has no parameter",
    "EffectCurve": "made by `curve` of an additive model",
    "PrivateCorrelations": "made by `private_correlations`",
    "PrivateSurvival": "made by `private_survival`",
    "PrivateDescription": "made by `private_description`",
    "PrivateScore": "made by `private_score`",
    "Program": "a class to derive from: it has no parameter",
    "ProgramResult": "made by `run_program`",
    "Run": "made by `simulate` and `train`",
    "TableCheck": "made by `check`",
}
"""Records that the library makes: nobody calls them."""

SITES = make_sites(n=4, rows=15, d=2)
NOISE = tt.GaussianNoise(5.0)


class Steeper(tt.L2):
    """||f||^2 in place of half of it."""

    def gradient(self, f: Any) -> Any:
        return 2 * f


def fact_entries() -> Iterator[Entry]:
    """All of them."""
    yield from _facts()
    yield from _methods()
    yield from _problems()
    yield from _ledgers()
    yield _check()


def _facts() -> Iterator[Entry]:
    rounds = range(1, 9)
    for name, base, changes in (
        ("Constant", {"value": 1.0}, {"value": 2.0}),
        ("Geometric", {"start": 1.0}, {"start": 2.0, "ratio": 2.0, "cap": Change(3.0, {"ratio": 2.0})}),
        ("Table", {"values": [1.0, 2.0] * 4}, {"values": [2.0] * 8}),
    ):
        kind = getattr(tt, name)
        yield Entry(name, "values", lambda kind=kind, **k: [kind(**k)(t) for t in rounds], base, changes)
    for name, parameter, kind in (
        ("GaussianNoise", "std", tt.GaussianNoise),
        ("NormNoise", "rate", tt.NormNoise),
    ):
        made = lambda kind=kind, **k: kind(**k).scales(2, 2)  # noqa: E731
        yield Entry(name, "scales", made, {parameter: 1.0}, {parameter: 2.0})
    z = np.linspace(-2, 2, 9)
    for name, changes in (
        ("Logistic", {}),
        ("SmoothHinge", {"h": 0.1}),
        ("LogCosh", {"scale": 2.0}),
        ("Squared", {"target_bound": 0.5}),
    ):
        kind = getattr(tt, name)
        yield Entry(name, "slopes", lambda kind=kind, **k: kind(**k).slope(z), {}, changes)
    yield Entry("L2", "repr", tt.L2, {}, {})
    stated = lambda **k: tt.StatedCost(**k).renyi_at(np.array([2.0]))  # noqa: E731
    without = {"pure": None}
    changes = {"pure": 2.0, "mu": Change(0.5, without), "renyi": Change({2.0: 0.3}, without)}
    yield Entry("StatedCost", "at order 2", stated, {"pure": 1.0}, changes)
    step = {"name": "mean", "length": 1, "bound": 1.0}
    sums = {"name": "sum", "length": 2, "bound": 2.0, "share": 0.5, "aligned": True}
    yield Entry("Step", "repr", tt.Step, step, sums)
    query = {"expression": tt.expressions.columns(0)}
    yield Entry(
        "Query", "repr", tt.Query, query, {"expression": tt.expressions.columns(1), "parameters": {"w": 1}}
    )
    edges = ((0, 1), (1, 2))
    yield Entry(
        "Graph",
        "facts",
        lambda **k: [tt.Graph(**k).n, tt.Graph(**k).edges, tt.Graph(**k).name],
        {"n": 3, "edges": edges},
        {"n": Change(4, stops=GraphError), "edges": (*edges, (0, 2)), "name": "mine"},
    )
    budget = {"epsilon": 1.0, "delta": 1e-5}
    yield Entry("SiteBudget", "repr", tt.SiteBudget, budget, {"epsilon": 2.0, "delta": 1e-6, "order": 4.0})


def _methods() -> Iterator[Entry]:
    release = {"output_noise": NOISE, "grid": 2.0**-10, "clip": Change(2.0, {"grid": 2.0**-10})}
    noisy = {"penalty": 0.5, "noise": NOISE}
    changes = {"penalty": 0.6, "noise": tt.GaussianNoise(1.0), **release}
    for name, base, given in (
        ("ADMM", {"penalty": 0.5}, {"penalty": 0.6}),
        ("MADMM", {"penalty": 0.5, "dual_step": 0.5}, {"penalty": 0.6, "dual_step": 0.4}),
        ("PenaltyPerturbation", noisy | {"dual_step": 0.5}, changes | {"dual_step": 0.4}),
        ("DualPerturbation", noisy, changes),
        ("PrimalPerturbation", noisy, changes | {"dual_step": 0.4}),
    ):
        kind = getattr(tt, name)
        yield Entry(name, "tables", lambda kind=kind, **k: vars(kind(**k).tables(2, 3)), base, given)
    ones = np.ones((9, 2)) / 2
    rows = tt.Problem([(ones, np.ones(9))] * 2, C=1.0, regularization=1.0)

    def prepared(**k: Any) -> str:
        method = tt.PenaltyPerturbation(**k)
        return repr(method.prepare(Network.of(rows, tt.Graph.complete(2)), 5).run_facts(simulated=True))

    yield Entry("PenaltyPerturbation", "prepared", prepared, noisy | {"dual_step": 0.5}, {"whiten": 0.5})
    facts = PublicFacts(5, total=500, largest=100, dimension=2, loss=tt.Logistic(), regularization=0)
    yield Entry(
        "MaskedDescent",
        "tables",
        lambda **k: repr(tt.MaskedDescent(**k).tables(facts, 5)),
        {},
        {
            "epsilon": 2.0,
            "delta": 1e-6,
            "colluding": 2,
            "constant": 0.5,
            "full": False,
            "bounded": False,
            "connectivity": 3,
            "share": 0.1,
            "whiten": True,
        },
    )


def _problems() -> Iterator[Entry]:
    ids = [np.arange(15) // 2 + 100 * i for i in range(4)]
    spread = [ids[0], *[np.arange(15) + 100 * i for i in range(4, 7)]]
    shared = {
        "sites": make_sites(n=3, rows=15, d=2),
        "C": 2.0,
        "regularization": 0.2,
        "weights": [np.full(15, 0.5)] * 4,
        "persons": ids,
        "rows_per_person": Change(1, {"persons": ids}),
        "sites_per_person": Change(2, {"persons": spread}),
    }

    def look(problem: Any) -> Any:
        one, who = problem.site(0), problem.persons
        public = None if who is None else (who.total, who.most_rows, who.most_sites)
        return [problem.n, problem.units, public, one.gradient(np.full((1, problem.dimension), 0.3))]

    def descended(**k: Any) -> Any:
        problem = tt.SoftmaxProblem(**k)
        run = tt.simulate(problem, "complete", tt.MaskedDescent(), rounds=3)
        return look_at(run, replayable=True)

    base = {"sites": SITES, "C": 1.0, "regularization": 0.1}
    own = {"loss": tt.LogCosh(), "regularizer": Steeper()}
    yield Entry("Problem", "gradient", lambda **k: look(tt.Problem(**k)), base, shared | own)
    classes = [(x, (y > 0) * 1.0) for x, y in SITES]
    softmax = {name: change for name, change in shared.items() if name != "sites"}
    yield Entry(
        "SoftmaxProblem",
        "run",
        descended,
        base | {"sites": classes, "classes": 3},
        softmax | {"sites": classes[:3], "classes": 4},
    )


def _ledgers() -> Iterator[Entry]:
    def charged(book: Any) -> Any:
        with book as ledger:
            for charge in charges(len(ledger.sites), 2):
                ledger.charge(charge)
            return [repr(ledger.run), ledger.sites, tt.Certificate.from_ledger(ledger, 1e-5).epsilon]

    def reopened(**k: Any) -> Any:
        with tt.SqliteLedger(**k) as ledger:
            ledger.charge(charges(1, 1)[0])
            return charged_already(ledger)

    def charged_already(ledger: Any) -> Any:
        return [repr(ledger.run), ledger.sites, tt.Certificate.from_ledger(ledger, 1e-5).epsilon]

    base = {"run": run_facts(), "sites": site_facts()}
    changes = {
        "run": run_facts(C=1000.0),
        "sites": site_facts(samples=5000),
        "budget": Change(tt.SiteBudget(1e-3, 1e-5), stops=BudgetExceeded),
    }
    yield Entry(
        "SqliteLedger",
        "new",
        reopened,
        base | {"target": Fresh("ledger.sqlite")},
        changes
        | {
            "target": Fresh("other.sqlite"),
            "at_least": Change(Head(5, "0" * 64), stops=Exception),
            "readonly": Change(True, stops=Exception),
        },
    )
    yield Entry(
        "Budget",
        "new",
        lambda **k: vars(tt.Budget(**k)._terms),
        {"path": Fresh("budget.sqlite"), "epsilon": 1.0},
        {
            "path": Fresh("other.sqlite"),
            "epsilon": 2.0,
            "delta": 1e-6,
            "unit": "person",
            "accountant": "renyi",
            "large_delta": True,
            "at_least": Change(Head(5, "0" * 64), stops=Exception),
        },
    )


def _check() -> Entry:
    def checked(**k: Any) -> Any:
        found = tt.check(**k)
        return [found._repr_html_(), found.noise, found.zeros, found.clipped]

    base = {"table": {"a": [0.1, 5.0, None]}, "schema": {"fields": [{"name": "a", "low": 0, "high": 1}]}}
    changes = {
        "table": {"a": [0.1, 0.5, None]},
        "schema": {"fields": [{"name": "a", "low": 0, "high": 9}]},
        "y": ["no", "yes", None],
        "classes": Change(["no", "yes", "perhaps"], {"y": ["no", "yes", None]}),
        "target_scale": Change(1.0, {"y": [100.0, 200.0, 300.0]}),
        "missing": Change("field", {"table": {"a": [0.1, 5.0, None], "b": [0.1, 0.2, 0.3]}, "schema": PAIR}),
        "data_norm": Change(2.0, {"table": np.full((3, 2), 1.0), "schema": None}),
        "epsilon": 2.0,
        "delta": 1e-6,
        "sites": 4,
        "colluding": 1,
        "total_rows": 1000,
    }
    return Entry("check", "a column", checked, base, changes)


PAIR = {"fields": [{"name": name, "low": 0, "high": 1} for name in "ab"]}
