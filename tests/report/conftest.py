"""Reports of made-up numbers: one run, a comparison, and a minimal report."""

import numpy as np
import pytest

import taciturn as tt
from taciturn.graph import Graph
from taciturn.methods.run import Run
from taciturn.privacy.certificate.certificate import Certificate
from taciturn.report import (
    Accounting,
    Chart,
    Curve,
    KeyNumber,
    Mark,
    NetworkMap,
    ReportData,
    SiteCosts,
    Statement,
)
from taciturn.report.certificates import places

ROUNDS = 60
ROUND = tuple(range(1, ROUNDS + 1))
KINDS = (
    ("renyi", "(ε, δ), Rényi", "ε at δ = 10⁻⁵", 3.0, 0.6),
    ("pure", "Pure ε, tight", "ε at δ = 0", 34.8, 1.0),
    ("paper", "The paper's P(t)", "P(t)", 38.9, 1.0),
)


def metric(name: str, start: float, end: float, speed: float, width: float) -> Curve:
    """A curve that settles, with a range around it."""
    t = np.arange(ROUNDS)
    mean = end + (start - end) * np.exp(-speed * t)
    wobble = width * (0.6 + 0.4 * np.sin(t / 3))
    return Curve(name, ROUND, mean.tolist(), (mean - wobble).tolist(), (mean + wobble).tolist())


def charts(names: list[str]) -> list[Chart]:
    """Loss, accuracy and the gap between sites."""
    k = range(len(names))
    loss = [metric(names[i], 0.69, 0.37 + 0.04 * i, 0.12, 0.004 + 0.01 * i) for i in k]
    accuracy = [metric(names[i], 0.62, 0.84 - 0.02 * i, 0.15, 0.003 + 0.004 * i) for i in k]
    gap = [metric(names[i], 2.0, 0.004 * (i + 1), 0.2, 0.0005) for i in k]
    return [
        Chart(
            "loss", "Loss", "mean logistic loss", loss, private=False, note="Mean and range of 10 repeats."
        ),
        Chart("accuracy", "Accuracy", "rows classified correctly", accuracy, "percent", private=False),
        Chart("gap", "Disagreement", "largest distance from the mean", gap, log=True, private=False),
    ]


def accountings(names: list[str], sites: int) -> list[Accounting]:
    """Three ways to count, the last site of each run the worst."""
    found = []
    for key, short, label, total, growth in KINDS:
        curves, costs = [], []
        for i, name in enumerate(names):
            shape = (np.array(ROUND) / ROUNDS) ** growth
            by_round = [
                (total * (0.8**i) * (0.7 + 0.3 * (j + 1) / sites) * shape).tolist() for j in range(sites)
            ]
            curves.append(Curve(name, ROUND, by_round[-1], by_round[0], by_round[-1]))
            costs.append(SiteCosts(name, [row[-1] for row in by_round], by_round if sites <= 24 else ()))
        chart = Chart(key, "By round, the worst site", label, curves, "bound")
        found.append(Accounting(key, short, f"What {short} counts.", chart, costs))
    return found


def statement(name: str) -> Statement:
    """What a certificate says of one run."""
    return Statement(
        name,
        "Replacing one record changes the chance of anything seen by at most the factor exp(3.00).\n"
        "It assumes that each record is held by one site only.",
        ("one record is replaced", "noise is fresh"),
        ("Theorem 3",),
        {"epsilon": 2.9688, "delta": 1e-5, "worst_site": 4, "run": {"method": "penalty"}},
    )


def report(names: list[str], graph: Graph) -> ReportData:
    """A whole report of these runs over this network."""
    counted = accountings(names, graph.n)
    key_numbers = {}
    for i, name in enumerate(names):
        loss, accuracy, _ = (chart.curves[i] for chart in charts(names))
        key_numbers[name] = [
            KeyNumber("Loss", loss.mean[-1], "plain", loss.low[-1], loss.high[-1]),
            KeyNumber("Accuracy", accuracy.mean[-1], "percent", accuracy.low[-1], accuracy.high[-1]),
            *(KeyNumber(entry.short, max(entry.sites[i].totals), "bound") for entry in counted),
        ]
    return ReportData(
        title="Adult across five sites" if len(names) == 1 else "Penalty against dual perturbation",
        subtitle="45,222 records, 105 features, logistic loss",
        headline="This run, all 60 rounds and all 5 sites, cost any one record at most (3.00, 10⁻⁵).",
        marks=[
            Mark(
                "Simulated",
                "The noise came from a seed and can be replayed: for study, not for real records.",
            ),
            Mark("Idealised", "The exact minimiser is assumed: nothing covers the solver's last error."),
        ],
        key_numbers=key_numbers,
        charts=charts(names),
        accountings=counted,
        network=NetworkMap(
            [f"site {i}" for i in range(graph.n)],
            graph.edges,
            places(graph),
            graph.name,
            [9044 + 7 * i for i in range(graph.n)],
        ),
        statements=[statement(name) for name in names],
        settings={"rounds": 60, "repeats": 10, "method": {"penalty": [0.5, 1.04], "noise": {"rate": 3.0}}},
        provenance={
            "seed": 0,
            "versions": {"python": "3.11", "taciturn": "0.1.0"},
            "data": "sha256 5b00…603d",
        },
    )


@pytest.fixture(scope="session")
def single() -> ReportData:
    """One run on a ring of five."""
    return report(["PP (1.04, 1.03)"], Graph.ring(5))


@pytest.fixture(scope="session")
def comparison() -> ReportData:
    """Four runs on a ring of five."""
    return report(["PP (1.04, 1.03)", "PP (1.02, 1.01)", "DVP (1, 1)", "DVP (1, 1.03)"], Graph.ring(5))


@pytest.fixture(scope="session")
def crowd() -> ReportData:
    """Two runs at a hundred sites."""
    return report(["PP", "DVP"], Graph.random_regular(100, 6, seed=1))


@pytest.fixture(scope="session")
def bare() -> ReportData:
    """A claim and nothing else."""
    return ReportData("A fit", "It cost at most (1.00, 10⁻⁵).", statements=[Statement("fit", "In words.")])


@pytest.fixture(scope="session")
def runs() -> dict[str, Run]:
    """Real runs, small: norm noise, Gaussian noise, none; three uneven sites on a path."""
    generator = np.random.default_rng(7)
    sites = []
    for rows in (30, 45, 60):
        X = generator.normal(size=(rows, 4))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        sites.append((X, np.where(X[:, 0] + 0.3 * generator.normal(size=rows) > 0, 1.0, -1.0)))
    problem = tt.Problem(sites, loss=tt.Logistic(), C=1.0, regularization=0.1)
    noises = {
        "norm": tt.NormNoise(rate=tt.Geometric(3.0, 1.02)),
        "gaussian": tt.GaussianNoise(1.0),
    }
    methods = {
        name: tt.PenaltyPerturbation(penalty=tt.Geometric(0.5, 1.1), dual_step=0.5, noise=noise)
        for name, noise in noises.items()
    }
    return {
        name: tt.simulate(problem, Graph.path(3), method, rounds=5, repeats=3, seed=1)
        for name, method in {**methods, "none": tt.ADMM(penalty=0.5)}.items()
    }


@pytest.fixture(scope="session")
def certificates(runs: dict[str, Run]) -> dict[str, Certificate]:
    """What those runs cost."""
    return {name: Certificate.from_ledger(run.ledger, delta=1e-5) for name, run in runs.items()}
