"""The public callables that run something, with a change of each parameter that must matter or be refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt
from support.parameter_questions import ask_curves
from support.parameters import BAR, Change, Entry, Fresh, Made, look_at
from support.problems import make_sites
from taciturn.auditing.observer import Case
from taciturn.core.errors import BudgetExceeded, ParameterError

SPEED = "changes how long it takes and not what comes out: tests/runtime/test_local.py"
SITES = make_sites(n=4, rows=15, d=2)
X, Y = np.vstack([x for x, _ in SITES]), np.concatenate([y for _, y in SITES])
PLACE, PERSON = np.arange(60) % 3, np.arange(60) // 2
PENALTY = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(5.0), output_noise=tt.GaussianNoise(1e-3))


def run_entries() -> Iterator[Entry]:
    """All of them."""
    yield from _runs()
    yield from _plans()
    yield from _estimators()
    yield from _statistics()
    yield from _files()


def _runs() -> Iterator[Entry]:
    problem = tt.Problem(SITES, C=1.0, regularization=0.1)
    other = tt.Problem(SITES[::-1], C=2.0, regularization=0.1)
    base = {"problem": problem, "graph": tt.Graph.ring(4), "rounds": 3}
    common = {"problem": other, "graph": tt.Graph.complete(4), "rounds": 4, "history": True}
    bare = {"threads": SPEED, "progress": BAR}
    seen = {
        **common,
        "repeats": 2,
        "seed": 1,
        "engine": "nonsense",
        "checkpoint": Change(Fresh("checkpoint"), {"rounds": 10}),
        "every": 20,
    }
    falling = {"method": tt.MADMM(tt.Geometric(0.5, 0.5), 0.1)}
    masked = tt.MaskedDescent(epsilon=1.0)
    not_masked = {"tol": 1e-3, "method": PENALTY}

    def simulated(**k: Any) -> Any:
        return look_at(tt.simulate(**k), replayable=True)

    def trained(**k: Any) -> Any:
        return look_at(tt.train(**k), replayable=False)

    yield Entry(
        "simulate",
        "penalty",
        simulated,
        base | {"method": PENALTY},
        {**seen, "method": falling["method"].__class__(0.5, 0.5), "tol": 1e-2, "start": "random"}
        | {"strict": Change(False, falling)},
        bare,
    )
    yield Entry(
        "simulate",
        "masked",
        simulated,
        base | {"method": masked},
        seen | not_masked | {"start": "random", "strict": False},
        bare,
    )
    real = {
        **common,
        "measure": True,
        "ledger": Fresh("ledger.sqlite"),
        "budget": Change(tt.SiteBudget(1e-3, 1e-5), stops=BudgetExceeded),
    }
    yield Entry(
        "train",
        "penalty",
        trained,
        base | {"method": PENALTY},
        real | {"method": tt.MADMM(0.5, 0.5), "tol": 1e-6, "idealised": True},
        bare,
    )
    yield Entry(
        "train",
        "masked",
        trained,
        base | {"method": masked},
        real | not_masked | {"idealised": True},
        bare,
    )


def _plans() -> Iterator[Entry]:
    def planned(**k: Any) -> Any:
        found = tt.plan(**k)
        told = {name: value for name, value in found.to_dict().items() if name != "seed"}
        return [told, repr(found.certificate.run), found.certificate.sites]

    schema = tt.data.Schema((tt.data.Number("age", 0, 100), tt.data.Number("size", 0, 9)))
    base = {"epsilon": 1.0, "samples": 300, "graph": tt.Graph.ring(4), "dimension": 2}
    changes = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "samples": [200, 300, 300, 300],
        "graph": tt.Graph.complete(4),
        "dimension": 3,
        "C": Change(2.0, {"regularization": 0.5}),
        "regularization": 0.5,
        "loss": tt.SmoothHinge(),
        "rounds": 3,
        "max_rounds": 3,
        "effort": "full",
        "noise": "gaussian",
        "proxy": schema,
        "outputs": 3,
        "output_noise": False,
        "real": False,
        "data_norm": 2.0,
        "seed": 1,
        "large_delta": Change(True, {"delta": 0.1}),
        "baseline": True,
        "unit": "person",
        "whiten": True,
    }
    quick = base | {"effort": "quick", "noise": "gaussian"}
    given = changes | {"noise": "norm", "colluding": 1}
    yield Entry("plan", "trusting nobody", planned, quick | {"rounds": 2}, given)
    yield Entry("plan", "any rounds", planned, quick, {"max_rounds": 1})
    rehearsed = base | {"rounds": 1, "samples": 30, "noise": "gaussian"}
    yield Entry("plan", "rehearsed", planned, rehearsed, {"effort": "quick", "baseline": False, "seed": 1})
    yield Entry("plan", "colluding", planned, base | {"colluding": 1}, changes | {"colluding": 0})
    for name, wrong in (("noise", "rubbish"), ("proxy", "nonsense"), ("effort", "quick"), ("seed", 0)):
        yield Entry("plan", f"colluding, {wrong}", planned, base | {"colluding": 1}, {name: wrong})
    yield Entry("plan", "wrong proxy", planned, quick, {"proxy": "nonsense"})


def _fitted(kind: Any, /, **k: Any) -> Any:
    label = Y if issubclass(kind, tt.PrivateHuberRegressor) else np.where(Y > 0, "yes", "no")
    model = kind(**k).fit(X, label)
    certificate = model.certificate_
    kept = [repr(certificate.run), certificate.sites, certificate.epsilon]
    return [*kept, model.coef_, model.intercept_, model.trace_.released]


def _estimators() -> Iterator[Entry]:
    def logistic(**k: Any) -> Any:
        return _fitted(tt.PrivateLogisticRegression, **k)

    shares = {"no": 0.4, "yes": 0.6}
    changes = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "sites": 3,
        "graph": "ring",
        "data_norm": 2.0,
        "colluding": 1,
        "fit_intercept": False,
        "intercept_scaling": 0.25,
        "C": Change(2.0, {"regularization": 0.5}),
        "regularization": 0.5,
        "rounds": 3,
        "max_rounds": 3,
        "noise": "gaussian",
        "method": PENALTY,
        "effort": "quick",
        "whiten": True,
        "ledger": Fresh("ledger.sqlite"),
        "random_state": 1,
        "large_delta": Change(True, {"delta": 0.1}),
        "classes": ["no", "yes"],
        "class_weight": {"no": 1.0, "yes": 0.5},
        "class_shares": Change(shares, {"class_weight": "balanced"}),
    }
    base = {"sites": 4, "random_state": 0}
    bar = {"verbose": BAR}
    quick = base | {"effort": "quick", "rounds": 2, "noise": "gaussian"}
    own = base | {"epsilon": 50.0, "method": PENALTY, "rounds": 2}
    name = "PrivateLogisticRegression"
    nobody = changes | {"effort": Change("full", {"rounds": 1}), "epsilon": 3.0, "noise": "norm"}
    nobody |= {"whiten": Change(True, {"rounds": 3})}
    yield Entry(name, "trusting nobody", logistic, quick, nobody, bar)
    yield Entry(name, "colluding", logistic, base | {"colluding": 1}, changes | {"colluding": 2}, bar)
    primal = tt.PrimalPerturbation(0.5, tt.GaussianNoise(50.0))
    given = changes | {"method": primal, "epsilon": Change(1e-3, stops=ParameterError)}
    yield Entry(name, "own method", logistic, own, given, bar)
    free = base | {"epsilon": float("inf"), "max_rounds": 5}
    overruled = ("delta", "large_delta", "colluding", "noise", "effort", "whiten")
    without = dict.fromkeys(overruled, "no promise is made")
    given = {name: change for name, change in changes.items() if name not in without}
    given |= {"epsilon": Change(1.0, {"rounds": 2, "max_rounds": None}), "method": tt.ADMM(0.5)}
    yield Entry(name, "without privacy", logistic, free, given, bar | without)
    yield Entry(name, "both", logistic, base | {"colluding": 1, "rounds": 10}, {"max_rounds": 5})
    known = {*changes, "verbose"}  # a parameter of one of these that the first does not have needs a change
    for kind, more in (
        (tt.PrivateLinearSVC, {"smoothing": 0.1}),
        (tt.PrivateHuberRegressor, {"scale": 2.0, "target_scale": 3.0}),
    ):
        inherited = dict.fromkeys(known & {*signature(kind).parameters}, f"inherited: see {name}")
        call = lambda kind=kind, **k: _fitted(kind, **k)  # noqa: E731
        yield Entry(kind.__name__, "colluding", call, base | {"colluding": 1, "rounds": 3}, more, inherited)
    columns = {"a": (-1, 1), "b": (-1, 1)}
    more = {"schema": {"a": (-2, 2), "b": (-1, 1)}, "curves": 3, "data_norm": 2.0}
    for kind, own in (
        (tt.PrivateAdditiveClassifier, {}),
        (tt.PrivateAdditiveRegressor, {"scale": 2.0, "target_scale": 3.0}),
    ):
        told = {*known, *own} & {*signature(kind).parameters} - {*more}
        inherited = dict.fromkeys(told, "inherited: see the estimator that it derives from")
        call = lambda kind=kind, **k: _fitted(kind, **k)  # noqa: E731
        given = base | {"colluding": 1, "rounds": 3, "schema": columns}
        yield Entry(kind.__name__, "colluding", call, given, more, inherited)


LABELS = np.where(Y > 0, "yes", "no")
SCHEMA = tt.data.Schema((tt.data.Number("a", -1, 1), tt.data.Number("b", -1, 1)))


@cache
def _classifier(seed: int) -> Any:
    model = tt.PrivateLogisticRegression(sites=4, colluding=1, rounds=3, random_state=seed)
    return model.set_params(classes=["no", "yes"]).fit(X, LABELS)


@cache
def _regressor() -> Any:
    return tt.PrivateHuberRegressor(sites=4, colluding=1, rounds=3, random_state=0).fit(X, Y)


ONE, OTHER, NUMBERS = Made(partial(_classifier, 0)), Made(partial(_classifier, 1)), Made(_regressor)


def _statistics() -> Iterator[Entry]:
    counted = {
        "epsilon": 2.0,
        "delta": 1e-6,
        "site": PLACE,
        "person": PERSON,
        "sites": 4,
        "colluding": 1,
        "bins": 10,
        "level": 0.9,
        "large_delta": Change(True, {"delta": 0.1}),
        "ledger": Fresh("ledger.sqlite"),
        "random_state": 1,
        "engine": "mars",
    }

    def scored(**k: Any) -> Any:
        found = tt.private_score(**k)
        run, sites = found.certificate.run, found.certificate.sites
        return [repr(run), sites, found.confusion, found.accuracy, found.calibration]

    def described(**k: Any) -> Any:
        found = tt.private_description(**k)
        return [repr(found.certificate.run), found.certificate.sites, *(column.line() for column in found)]

    base = {"clf": ONE, "X": X, "y": LABELS, "epsilon": 1.0, "random_state": 0}
    rows = {"clf": OTHER, "X": -X, "y": LABELS[::-1], "public": True}
    yield Entry("private_score", "counts", scored, base, rows | counted)
    table = {"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 0] > 0, "x", "y")}
    schema = tt.data.Schema.of(a=(-1.0, 1.0), b=(-1.0, 1.0), kind=["x", "y"])
    base = {"table": table, "schema": schema, "epsilon": 5.0, "random_state": 0}
    rows = {"table": table | {"a": -X[:, 0]}, "schema": {"a": (-1.0, 1.0)}, "by": "kind"}
    yield Entry("private_description", "counts", described, base, rows | counted)
    yield from ask_curves(X, table, counted)
    yield from _programs(counted)

    case = Case("tiny", "", PENALTY, old=[1.0], new=[-1.0], rounds=1, samples=5)
    wider = Case("wide", "", PENALTY, old=[0.5], new=[-1.0], rounds=1, samples=5)
    yield Entry(
        "audit",
        "one case",
        lambda **k: tt.audit(**k).to_dict(),
        {"cases": [case], "runs": 200, "seed": 0},
        {"cases": [wider], "runs": 300, "confidence": 0.9, "seed": 1},
        {"progress": BAR},
    )


class Mean(tt.Program):
    """The mean of every column, in one sum."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def steps(self, facts: Any) -> list[tt.Step]:
        return [tt.Step("mean", facts.columns, 1.0)]

    def start(self) -> Any:
        return None

    def query(self, state: Any) -> tt.Query:
        return tt.Query(tt.expressions.columns() * self.factor)

    def advance(self, state: Any, total: Any) -> Any:
        return total.values

    def result(self, state: Any) -> Any:
        return state


def _programs(counted: dict[str, Any]) -> Iterator[Entry]:
    def ran(**k: Any) -> Any:
        found = tt.run_program(**k)
        return [repr(found.certificate.run), found.certificate.sites, found.value]

    base = {"program": Mean(), "X": X, "epsilon": 1.0, "random_state": 0}
    rows = {"program": Mean(0.5), "X": -X, "y": Y}
    same = {name: change for name, change in counted.items() if name not in ("bins", "level")}
    yield Entry("run_program", "mean", ran, base, rows | same)


JOB = """format = "taciturn-training/1"
name = "tiny"
epsilon = 3.0
seed = 1
colluding = 1
rounds = 3
label = { column = "y", classes = ["no", "yes"] }
schema = { fields = [{ name = "a", low = -1, high = 1 }] }
sites = [{ name = "n", data = "n.csv" }, { name = "s", data = "s.csv" }, { name = "w", data = "w.csv" }]
"""


@cache
def _folder() -> Path:
    """Two models, and a job with its tables."""
    folder = Path(tempfile.mkdtemp(prefix="taciturn-parameters-"))
    tt.save_model(_classifier(0), folder / "model.json", schema=SCHEMA)
    tt.save_model(_regressor(), folder / "other.json")
    rows = [f"{x:.3f},{label}" for x, label in zip(X[:, 0], LABELS, strict=True)]
    for i, site in enumerate("nsw"):
        (folder / f"{site}.csv").write_text("a,y\n" + "\n".join(rows[i::3]) + "\n")
    (folder / "job.toml").write_text(JOB)
    (folder / "two.toml").write_text(JOB.replace("3.0", "2.0"))
    return folder


def _in_folder(name: str) -> Made:
    return Made(lambda: _folder() / name)


def _files() -> Iterator[Entry]:
    def saved(fitted: Any, path: Path, **k: Any) -> str:
        tt.save_model(fitted, path, **k)
        return path.read_text()

    def loaded(**k: Any) -> Any:
        model = tt.load_model(**k)
        return [type(model).__name__, model.predict({"a": ["x", 0.5], "b": [0.1, 0.2]})]

    def trained(**k: Any) -> Any:
        model = tt.train_job(**k).estimator
        return [model.coef_, repr(model.certificate_.run)]

    yield Entry(
        "save_model",
        "file",
        saved,
        {"fitted": ONE, "path": Fresh("model.json")},
        {"fitted": NUMBERS, "path": Fresh("other.json"), "schema": SCHEMA},
    )
    yield Entry(
        "load_model",
        "file",
        loaded,
        {"path": _in_folder("model.json")},
        {
            "path": Change(_in_folder("other.json"), stops=Exception),
            "unreadable": Change("raise", stops=Exception),
        },
    )
    yield Entry(
        "train_job",
        "file",
        trained,
        {"path": _in_folder("job.toml"), "out": Fresh("run")},
        {"path": _in_folder("two.toml"), "out": Fresh("other")},
        {"verbose": BAR, "again": "after a run that was cut off: tests/system/test_train_crash.py"},
    )
