"""Canaries: secrets in rows, labels, targets, ids and cells, of every odd type, show up nowhere.

Whatever an entry does with them, no error with all that led to it, no warning, log line, printed line, repr,
pickle or file may hold one. Site names, columns, schemas and declared classes are public and hold none.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import functools
import io
import logging
import pickle
import random
import struct
import traceback
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import sparse

import taciturn as tt
from support.sitework import SCHEMA, table
from taciturn.cli.app import run
from taciturn.core.errors import TaciturnError
from taciturn.data import BoundedEncoder, Schema
from taciturn.sites.rounds.prepare import make_ready

WORD = "".join(random.Random(1).choices("bcdfghjkmnpqrstvwxz", k=12))
NUMBER = random.Random(2).randrange(10**14, 10**15)
"""Both are in no source line, so that a traceback shows them only where they leak."""
ODD = {
    "text": WORD,
    "numpy text": np.str_(WORD),
    "bytes": WORD.encode(),
    "numpy bytes": np.bytes_(WORD),
    "number": float(NUMBER),
    "huge": float(NUMBER) * 1e280,
    "tiny": float(NUMBER) * 1e-320,
    "whole": NUMBER,
    "beyond 64 bits": NUMBER * 10**30,
    "decimal": Decimal(NUMBER) / 1000,
    "complex": complex(NUMBER, 1),
    "date": dt.date(1931, 7, 23),
    "time": np.datetime64("1931-07-23T04:05:06"),
    "list": [WORD],
    "dict": {WORD: NUMBER},
    "object": type("Odd", (), {"__repr__": lambda self: WORD})(),
    "number as text": str(NUMBER),
    "number with a slip": f"{NUMBER}O",
}
_NUMBERS = (float(NUMBER), float(NUMBER) * 1e280)
SECRETS = (
    *(WORD.encode(), b"1931-07-23", b"1931, 7, 23", struct.pack("<d", NUMBER)),
    *(str(NUMBER).encode(), *(repr(value).encode() for value in _NUMBERS)),
    *(f"{NUMBER:.{digits}g}".encode() for digits in (7, 9, 12)),
)
kinds = st.sampled_from(sorted(ODD))
forms = st.sampled_from(["list", "object", "own", "frame", "category", "series", "tuple", "masked", "sparse"])
places = st.sampled_from(["row", "label", "id", "new row", "score"])


class Listener(logging.Handler):
    """Every log line of every logger."""

    def __init__(self) -> None:
        super().__init__(0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextlib.contextmanager
def watched():
    """All output meanwhile, including errors with their whole chain."""
    heard, listener = io.StringIO(), Listener()
    logging.getLogger().addHandler(listener)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
                try:
                    yield heard
                except Exception as error:
                    heard.write(chain(error))
    finally:
        logging.getLogger().removeHandler(listener)
    text = heard.getvalue() + "".join(f"{one.message} {one.source}" for one in told) + "".join(listener.lines)
    assert_silent(text.encode(), "said")


def chain(error: BaseException | None) -> str:
    """An error, and whatever was raised before it, hidden from a traceback or not."""
    text = ""
    while error is not None:
        text += "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)
        text += repr(getattr(error, "__notes__", ""))
        before = error.__cause__ or error.__context__
        if error.__cause__ is not None and error.__context__ not in (None, error.__cause__):
            text += chain(error.__context__)
        error = before
    return text


def assert_silent(content: bytes, where: str) -> None:
    for secret in SECRETS:
        assert secret not in content, f"a canary of kind {secret[:4]!r}... is {where}"


def with_canary(values: np.ndarray, kind: str, form: str):
    """A column of numbers or texts with one secret among them."""
    cells = values.tolist()
    cells[1] = ODD[kind]
    if form in ("object", "masked"):
        column = np.empty(len(cells), dtype=object)
        column[:] = cells
        return np.ma.masked_array(column, mask=[False] * len(cells)) if form == "masked" else column
    if form == "own":
        return np.array(cells)  # whatever NumPy makes of it
    if form in ("frame", "series"):
        return pd.Series(cells)
    if form == "category":
        return pd.Series([str(cell) for cell in cells], dtype="category")
    return tuple(cells) if form == "tuple" else cells


def rows(rng: np.random.Generator, kind: str | None, form: str):
    """(40, 3), with a secret in one cell."""
    X = rng.uniform(-0.5, 0.5, (40, 3))
    if kind is None:
        return X
    if form == "sparse":
        X[1, 1] = float(NUMBER)
        return sparse.csr_array(X)
    if form in ("frame", "category", "series"):
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        return frame.assign(b=with_canary(X[:, 1], kind, form))
    cells = X.tolist()
    cells[1][1] = ODD[kind]
    return np.array(cells, dtype=object) if form == "object" else np.array(cells) if form == "own" else cells


METHOD = tt.PenaltyPerturbation(0.5, 0.5, tt.GaussianNoise(400.0), output_noise=tt.GaussianNoise(1e-3))
FIXED = {"sites": 2, "epsilon": float("inf"), "rounds": 1, "random_state": 0}  # rows go the same way as ever


@functools.cache
def fitted(regression: bool):
    """An estimator that has seen no secret."""
    X = np.random.default_rng(1).uniform(-0.5, 0.5, (40, 3))
    return estimator(regression).fit(X, X[:, 0] if regression else np.where(X[:, 0] > 0, "yes", "no"))


def estimator(regression: bool):
    if regression:
        return tt.PrivateHuberRegressor(**FIXED)
    return tt.PrivateLogisticRegression(classes=["no", "yes"], **FIXED)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=kinds, form=forms, place=places, regression=st.booleans())
def test_estimators_leak_no_canary(kind, form, place, regression):
    rng = np.random.default_rng(0)
    y = rng.normal(size=40) if regression else rng.choice(["no", "yes"], 40)
    clean = rng.uniform(-0.5, 0.5, (40, 3))
    with watched() as heard:
        if place == "new row":
            fitted(regression).predict(rows(rng, kind, form))
            return
        if place == "score":
            heard.write(repr(fitted(regression).score(clean, with_canary(y, kind, form))))
            return
        model = estimator(regression).fit(
            rows(rng, kind, form) if place == "row" else clean,
            with_canary(y, kind, form) if place == "label" else y,
            site=np.arange(40) % 2,
            person=with_canary(np.arange(40), kind, form) if place == "id" else None,
        )
        heard.write(repr(model) + model._repr_html_() + repr(vars(model)) + model.certificate_.statement())
        heard.write(model.certificate_.to_json() + repr(model.trace_) + repr(model.trace_.settings))
        assert_silent(pickle.dumps(model), "in a pickle")


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=kinds, form=forms, place=st.sampled_from(["row", "label", "id"]))
def test_problems_and_simulations_leak_no_canary(kind, form, place):
    rng = np.random.default_rng(0)
    y, ids = rng.choice([-1.0, 1.0], 40), np.arange(40)
    with watched() as heard:
        first = (
            rows(rng, kind if place == "row" else None, form),
            with_canary(y, kind, form) if place == "label" else y,
        )
        persons = [with_canary(ids, kind, form), np.arange(40, 80)] if place == "id" else None
        problem = tt.Problem(
            [first, (rng.uniform(-0.5, 0.5, (40, 3)), y)], C=1.0, regularization=0.1, persons=persons
        )
        made = tt.simulate(problem, tt.Graph.path(2), METHOD, rounds=1, seed=0)
        heard.write(repr(problem) + repr(made) + made._repr_html_() + repr(made.settings))
        heard.write(made.certificate().to_json())


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=kinds, form=forms, column=st.sampled_from(["age", "sex"]))
def test_encoders_leak_no_canary(kind, form, column):
    encoder = BoundedEncoder(Schema.from_dict(SCHEMA), data_norm=1.0)
    cells = {"age": np.array([50.0, 30.0, 20.0]), "sex": np.array(["f", "m", "f"])}
    with watched() as heard:
        odd = with_canary(cells[column], kind, form)
        given_table = cells | {column: odd}
        if form in ("frame", "category", "series"):
            given_table = pd.DataFrame({name: list(values) for name, values in given_table.items()})
        encoded = encoder.fit(given_table).transform(given_table)
        heard.write(repr(encoded) + repr(encoder) + repr(vars(encoder)))
        assert_silent(pickle.dumps(encoder), "in a pickle")
    with watched() as heard:
        encoder.transform(odd)


# -- files ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A job of two sites, as `taciturn init` writes it."""
    folder = tmp_path_factory.mktemp("canaries") / "study"
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["init", str(folder)]) == 0
    return folder


def spoil(path: Path) -> None:
    """A secret of every kind in every column, one to a row, and a row of another length."""
    with path.open(newline="") as file:
        names, *lines = csv.reader(file)
    cells = [(word, column) for word in WORDS for column in range(len(names))]
    for line, (word, column) in zip(lines, cells, strict=False):
        line[column] = word
    lines[-1] = [WORD, str(NUMBER)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *lines])


WORDS = [
    WORD,
    str(NUMBER),
    f"{NUMBER}e200",
    f"-{NUMBER}",
    f'"{WORD}',
    f"=HYPERLINK({WORD})",
    "1931-07-23",
    f"{WORD}\x00",
]


def test_job_trained_from_files_leaks_no_canary_in_its_output(study):
    for site in sorted(study.rglob("*.csv")):
        spoil(site)
    with watched():
        assert run(["check", str(study / "job.toml")]) in (0, 1, 2)
        done = tt.train_job(study / "job.toml")
        print(repr(done), repr(done.estimator), done.estimator.certificate_.statement())
    files = [path for path in sorted((study / "run").rglob("*")) if path.is_file()]
    assert len(files) >= 5
    for path in files:
        assert_silent(path.read_bytes(), f"in {path.name}")
    with watched():
        assert run(["predict", str(study / "run" / "model.json"), str(study / "new.csv")]) == 0
        run(["train", str(study / "job.toml")])
        run(["verify", str(study / "run" / "ledger.sqlite")])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["cells", "no header", "quote", "binary"])
def test_commands_on_broken_tables_leak_no_canary(tmp_path, study, suffix, how):
    path = tmp_path / f"rows.{suffix}"
    head = (study / "new.csv").read_text().splitlines()[0].split(",")
    frame = pd.DataFrame({name: [WORD, NUMBER, None] for name in head}).astype(str)
    if how == "no header":
        frame.columns = [f"{WORD}{k}" for k in range(len(head))]
    if how == "binary":
        path.write_bytes(b"\xff\xfe" + WORD.encode() + struct.pack("<d", NUMBER))
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        path.write_text(frame.to_csv(index=False) + ('"' + WORD if how == "quote" else ""))
    model = study / "run" / "model.json"
    with watched():
        if model.exists():
            run(["predict", str(model), str(path)])
            run(["predict", str(model), str(path), "--out", str(tmp_path / "out.csv")])
        (tmp_path / "job.toml").write_text((study / "job.toml").read_text().replace(".csv", f".{suffix}"))
        for site in study.rglob("*.csv"):
            copy = tmp_path / site.relative_to(study).with_suffix(f".{suffix}")
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(path.read_bytes())
        run(["check", str(tmp_path / "job.toml")])
        run(["train", str(tmp_path / "job.toml")])


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(word=st.sampled_from(WORDS), column=st.sampled_from(["age", "sex", "income", "note"]))
@example(word=WORDS[0], column="income")
def test_site_file_leaks_no_canary(tmp_path_factory, word, column):
    site = table(tmp_path_factory.mktemp("site"), lines_with(word, column))
    with watched() as heard:
        ready = make_ready(site)
        heard.write(repr(ready) + repr(ready.forecast()))
    if (word, column) == (WORDS[0], "income"):  # it waits for its neighbours, so once is enough
        with watched():
            run(["site", "check", str(site.folder / "site.toml")])


def lines_with(word: str, column: str) -> str:
    text = io.StringIO()
    names = ["age", "sex", "income", "note"]
    cells = {"age": "50", "sex": "f", "income": "high", "note": "x"}
    csv.writer(text).writerows(
        [names, *([cells[name] if name != column else word for name in names] for _ in range(6))]
    )
    return text.getvalue()


def test_leaked_canary_is_detected():
    """The detector itself: a leak of either kind fails, however deep it is in a chain of exceptions."""
    for secret in (WORD, str(NUMBER)):
        with pytest.raises(AssertionError, match="a canary"), watched():
            try:
                float(f"x{secret}")
            except ValueError:
                raise TaciturnError("all is well") from None
    with pytest.raises(AssertionError, match="a canary"), watched():
        warnings.warn(WORD, stacklevel=1)
    with pytest.raises(AssertionError, match="a canary"), watched():
        logging.getLogger("any").error(WORD)
    model = tt.PrivateHuberRegressor()
    model.kept = np.array([float(NUMBER)])
    with pytest.raises(AssertionError, match="in a pickle"):
        assert_silent(pickle.dumps(model), "in a pickle")
