"""Seeded estimators, statistics, plans and jobs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt
from support.seeded_rows import Outcome, as_sparse, digest, digest_of_text, rows
from taciturn.jobs.train_job import TrainedJob


def fit_estimators() -> Iterator[tuple[str, Outcome]]:
    """What estimators with a `random_state` learn."""
    X, y = rows(99, 300, 6)
    old = tt.PrivateLogisticRegression(epsilon=1.0, sites=4, graph="ring", random_state=3).fit(X, y)
    yield "logistic regression", _fitted(old)
    X, y = rows(98, 600, 6)
    targets, classes, person = 3.0 * X[:, 0] + y, X[:, :3].argmax(axis=1), np.arange(600) // 2
    usual: dict[str, Any] = {"epsilon": 2.0, "sites": 4, "random_state": 5}
    quick: dict[str, Any] = {"effort": "quick"}
    white = quick | {"whiten": True}
    for word, trust in (("", quick), (", whitened", white), (", colluding", {"colluding": 1})):
        told = usual | trust
        logistic, ring = tt.PrivateLogisticRegression(**told), {"graph": "ring"}
        yield f"classification{word}", _fitted(logistic.fit(X, y))
        yield f"classification, own sites{word}", _fitted(logistic.fit(X, y, site=np.arange(600) % 3))
        yield f"classification, persons{word}", _fitted(logistic.fit(X, y, person=person))
        yield f"classification, sparse rows{word}", _fitted(logistic.fit(as_sparse([(X, y)])[0][0], y))
        balanced = {"class_weight": "balanced", "class_shares": {-1.0: 0.3, 1.0: 0.7}, "classes": [-1.0, 1.0]}
        weighted = tt.PrivateLogisticRegression(**told, **balanced, fit_intercept=False)
        yield f"classification, weighted classes{word}", _fitted(weighted.fit(X, y))
        yield f"support vectors{word}", _fitted(tt.PrivateLinearSVC(**told, **ring).fit(X, y))
        huber = tt.PrivateHuberRegressor(**told, target_scale=3.0)
        yield f"regression{word}", _fitted(huber.fit(X, targets))
        yield f"regression, persons{word}", _fitted(huber.fit(X, targets, person=person))
    yield (
        "one against the rest",
        _fitted(tt.PrivateLogisticRegression(**usual, effort="quick").fit(X, classes)),
    )
    yield (
        "one against the rest, support vectors",
        _fitted(tt.PrivateLinearSVC(**usual, noise="norm", effort="quick").fit(X, classes)),
    )
    several = tt.PrivateLogisticRegression(**usual, colluding=1)
    yield "several classes, colluding", _fitted(several.fit(X, classes))
    yield "several classes, persons, colluding", _fitted(several.fit(X, classes, person=person))
    own = tt.PrimalPerturbation(0.01, tt.GaussianNoise(4.0), grid=2.0**-20, clip=64.0)
    chosen = tt.PrivateLogisticRegression(**usual, method=own, rounds=3, C=1.0, regularization=0.01)
    yield "a user's method", _fitted(chosen.fit(X, y))
    unprotected = tt.PrivateLogisticRegression(epsilon=float("inf"), sites=4, random_state=5)
    yield "no privacy", Outcome(_fitted(unprotected.fit(X, y)).hash)


def _fitted(model: Any) -> Outcome:
    """The model, every released vector, and what it says of a few rows."""
    told = model.predict(rows(1, 20, model.n_features_in_)[0])
    learnt = model.coef_, model.intercept_, model.site_coef_
    if model.random_state == 3:  # pinned before the others were
        return Outcome(digest(*learnt), model.certificate_)
    return Outcome(digest(*learnt, model.site_intercept_, model.trace_.released, told), model.certificate_)


def release_statistics() -> Iterator[tuple[str, Outcome]]:
    """Counts with a `random_state`, and what is made of them."""
    X, y = rows(97, 800, 6)
    classes, person = X[:, :3].argmax(axis=1), np.arange(800) // 2
    usual: dict[str, Any] = {"epsilon": 2.0, "random_state": 4}
    fit: dict[str, Any] = {"epsilon": 4.0, "colluding": 1, "sites": 4, "random_state": 5}
    two = tt.PrivateLogisticRegression(**fit).fit(X, y)
    three = tt.PrivateLogisticRegression(**fit).fit(X, classes)
    yield "score", _scored(tt.private_score(two, X, y, **usual))
    yield "score, colluding", _scored(tt.private_score(two, X, y, colluding=1, bins=10, **usual))
    yield "score, persons", _scored(tt.private_score(two, X, y, person=person, colluding=1, **usual))
    yield "score, several classes", _scored(tt.private_score(three, X, classes, **usual))
    table = {"size": 50 + 30 * X[:, 0], "kind": np.where(y > 0, "a", "b"), "age": 40 + 20 * X[:, 1]}
    schema = tt.data.Schema(
        (tt.data.Number("size", 0, 100), tt.data.Category("kind", ("a", "b")), tt.data.Number("age", 0, 150))
    )
    ranges = {"size": (0.0, 100.0), "age": (0.0, 150.0)}
    numbers = {name: table[name] for name in ranges}
    yield "description", _described(tt.private_description(table, schema, **usual))
    yield "description, colluding", _described(tt.private_description(table, schema, colluding=1, **usual))
    yield "description, persons", _described(tt.private_description(numbers, ranges, person=person, **usual))


def _scored(score: tt.PrivateScore) -> Outcome:
    told = [[e.value, e.low, e.high] for e in (score.accuracy, score.auc)]
    points = [(p.score, p.rows, p.share.value) for curve in score.calibration.values() for p in curve]
    found = digest(*score.released.tables, score.confusion, [score.margin], told, points)
    return Outcome(found, score.certificate)


def _described(found: tt.PrivateDescription) -> Outcome:
    columns = [column for column in found if column.mean is not None and column.quantiles is not None]
    means = [(column.mean.value, column.mean.low, column.mean.high) for column in columns]
    spots = [[spot.value for spot in column.quantiles.values()] for column in columns]
    return Outcome(digest(*found.released.tables, means, spots), found.certificate)


def make_plans() -> Iterator[tuple[str, Outcome]]:
    """What `tt.plan` chooses."""
    usual: dict[str, Any] = {"epsilon": 1.0, "samples": 2000, "graph": tt.Graph.ring(5), "dimension": 8}
    uneven = usual | {"samples": [500, 1000, 2000], "graph": "path", "epsilon": [0.5, 1.0, 2.0]}
    wishes: dict[str, dict[str, Any]] = {
        "plan": usual | {"effort": "quick"},
        "plan, pure": usual | {"effort": "quick", "delta": 0.0},
        "plan, uneven sites": uneven | {"effort": "quick"},
        "plan, persons": usual | {"effort": "quick", "unit": "person", "real": False},
        "plan, several outputs": usual | {"effort": "quick", "outputs": 3, "loss": tt.SmoothHinge(0.5)},
        "plan, rehearsed": usual | {"samples": 300, "max_rounds": 10, "baseline": True, "seed": 2},
        "plan, masked": usual | {"colluding": 1},
        "plan, masked, several classes": usual | {"colluding": 2, "outputs": 3, "rounds": 8},
        "plan, masked, persons": usual | {"colluding": 0, "unit": "person"},
        "plan, masked, wide": usual | {"colluding": 1, "dimension": 400},
    }
    for name, wish in wishes.items():
        found = tt.plan(**wish)
        told = {key: value for key, value in found.to_dict().items() if key not in ("sentence", "proxy")}
        if "price" in told:
            told["price"] = {key: value for key, value in told["price"].items() if key != "sentence"}
        yield name, Outcome(digest_of_text(told), found.certificate)


JOB = """
format = "taciturn-training/1"
name = "visits"
epsilon = 3.0
seed = 1
label = { column = "again", classes = ["no", "yes"] }
schema = { fields = [{ name = "age", low = 0, high = 100 }, { name = "ward", values = ["a", "b"] }] }
sites = [{ name = "north", data = "north.csv" }, { name = "south", data = "south.csv" }, \
{ name = "west", data = "west.csv" }]
"""


def train_jobs() -> Iterator[tuple[str, Outcome]]:
    """What `tt.train_job` learns from files, in a rehearsal with a seed."""
    made = np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as place:
        for site in ("north", "south", "west"):
            lines = [
                f"{made.integers(100)},{made.choice(['a', 'b'])},{made.choice(['no', 'yes'])},{site}{k // 2}"
                for k in range(200)
            ]
            Path(place, f"{site}.csv").write_text("age,ward,again,patient\n" + "\n".join(lines) + "\n")
        kinds = {
            "job": 'effort = "quick"\n',
            "job, persons": 'effort = "quick"\nperson = "patient"\n',
            "job, colluding": 'colluding = 1\nperson = "patient"\n',
        }
        for name, more in kinds.items():
            Path(place, "job.toml").write_text(more + JOB)
            trained = tt.train_job(Path(place, "job.toml"), Path(place, name))
            yield name, _fitted_job(trained)


def _fitted_job(trained: TrainedJob) -> Outcome:
    model = trained.estimator
    return Outcome(digest(model.coef_, model.intercept_, model.trace_.released), model.certificate_)
