"""Build the data, the problem, the network and the methods of a figure, and compute the cost of a run.

All schedules are fixed before a run, so its privacy cost is known before it starts.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ...core import checks
from ...core.errors import ParameterError, PrivacyLeakWarning
from ...core.formatting import format_cost, format_given
from ...core.types import Array
from ...data.datasets.adult import load_adult
from ...data.tables.column_parsing import MISSING, parse_column
from ...data.tables.column_types import Category
from ...data.tables.dealing import deal_evenly, deal_unevenly
from ...data.tables.encoder import BoundedEncoder
from ...data.tables.table_files import read_table
from ...graph import Graph
from ...methods.admm.perturbations import METHODS, Method
from ...objective.losses import Logistic
from ...objective.problem import Problem
from ...privacy.certificate.certificate import Certificate
from ...privacy.noise import NormNoise
from ...rng import SeededStreams
from ...runtime.setup import prepare
from ...schedules import Geometric
from ..demo.tasks import breast_cancer_rows
from . import spec

_STRIDE, _LEAST, _FINE = 4.0, 1e-6, 1e-3  # step factor, least rate and precision of `rate_within`


def certify_run(
    problem: Problem, graph: Graph, method: Method, *, rounds: int, delta: float, tol: float = 1e-8
) -> Certificate:
    """The certificate that a run on these rows will have."""
    return prepare(problem, graph, method, rounds=rounds, seed=0, tol=tol).forecast(delta)


def rate_within(cost: Callable[[float], float], epsilon: float) -> float:
    """The largest noise rate with a cost of at most epsilon, within 0.1%; `cost` must grow with the rate."""
    epsilon = checks.positive("epsilon", epsilon)
    low = high = 1.0
    while cost(low) > epsilon:
        low, high = low / _STRIDE, low
        if low < _LEAST:
            raise ParameterError(
                f"`epsilon` must be at least {format_cost(cost(low))} for this run, however large the "
                f"noise; got {format_given(epsilon)}. Use fewer rounds, or a larger penalty."
            )
    while high == low or cost(high) <= epsilon:
        low, high = high, high * _STRIDE
    while high > low * (1 + _FINE):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if cost(middle) <= epsilon else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class FigureRows:
    """The rows (X, y), and the SHA-256 of each file from which they were read."""

    X: Array
    y: Array
    sha256: Mapping[str, str]


def load_rows(facts: spec.FigureData) -> FigureRows:
    """All rows of a data set, in the order of its files."""
    if facts.file is not None and facts.columns is not None and facts.label is not None:
        label = facts.label.column, facts.label.positive
        return _own_rows(facts.file, json.dumps(facts.columns), *label, facts.rows)
    return _known_rows(facts.name, facts.scaling, facts.rows)


@lru_cache(maxsize=4)
def _own_rows(file: str, columns: str, column: str, positive: str, rows: str) -> FigureRows:
    """The rows of a user's table. The figure's file states the public facts for their encoding."""
    path, schema = Path(file), spec.public_schema(json.loads(columns))
    table = read_table(path, [*schema.names, column])
    known = parse_column(Category(column, (positive,)), table[column])
    X = BoundedEncoder(schema, rows=rows).transform(table)
    X[known == MISSING] = 0.0  # a row without a label becomes zeros
    y = np.where(known == 0, 1.0, -1.0)
    return FigureRows(X, y, {path.name: hashlib.sha256(path.read_bytes()).hexdigest()})


@lru_cache(maxsize=4)
def _known_rows(name: str, scaling: str, rows: str) -> FigureRows:
    if name == "adult":
        with warnings.catch_warnings():  # the figure's file states how the columns are scaled
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            data = load_adult(scaling=scaling, rows=rows)
        return FigureRows(data.X, data.y, data.sha256)
    X, y = breast_cancer_rows()
    return FigureRows(X, y, {"rows": hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()})


def build_problem(figure: spec.AnyFigure, regularization: float | None = None) -> Problem:
    """The problem of a figure, with its rows at the sites. `regularization` replaces the figure's rho."""
    facts = figure.data
    rows = load_rows(facts)
    X, y = rows.X, rows.y
    if facts.limit is not None:
        if facts.limit > len(y):
            raise ParameterError(
                f"`data.limit` must be at most {len(y)}, the number of rows; got {facts.limit}."
            )
        draw = SeededStreams(facts.seed).generator(repeat=0, site=0, purpose="deal", t=3)
        kept = np.sort(draw.permutation(len(y))[: facts.limit])
        X, y = X[kept], y[kept]
    if facts.deal == "evenly":
        hands = deal_evenly(X, y, facts.sites, seed=facts.seed)
    else:
        hands = deal_unevenly(
            X, y, facts.sites, seed=facts.seed, concentration=facts.concentration, least=facts.least
        )
    rho = figure.problem.regularization if regularization is None else regularization
    return Problem(hands, loss=Logistic(), C=figure.problem.C, regularization=rho)


def build_graph(figure: spec.AnyFigure) -> Graph:
    """The network of a figure."""
    n, facts = figure.data.sites, figure.graph
    if facts.kind == "random_regular" and facts.degree is not None:
        return Graph.random_regular(n, facts.degree, seed=facts.seed)
    return Graph.of(facts.kind, n)


def build_method(
    figure: spec.Figure, curve: spec.FigureCurve, problem: Problem, graph: Graph, rate: float | None = None
) -> tuple[Method, float]:
    """(method, rate): the method of a curve, and its noise rate in round 1; 0 if the curve states no budget.

    If the curve states a budget, the function searches for the rate that spends it.

    rate : the result of an earlier search, which replaces a new search.
    """
    noise, run = curve.noise, figure.run
    if not isinstance(noise, spec.BudgetNoise):
        return _method(curve, noise), 0.0

    def at(rate: float) -> Method:
        return _method(curve, NormNoise(Geometric(rate, noise.ratio)))

    def cost(rate: float) -> float:
        planned = certify_run(problem, graph, at(rate), rounds=run.rounds, delta=run.delta, tol=run.tol)
        return planned.epsilon

    found = rate_within(cost, noise.epsilon) if rate is None else rate
    return at(found), found


def _method(curve: spec.FigureCurve, noise: Any) -> Method:
    kind = METHODS[curve.method]
    penalty = curve.penalty(1) if kind.constant else curve.penalty
    stated = {"penalty": penalty, "dual_step": curve.dual_step, "noise": noise}
    made: Method = kind(**{name: value for name, value in stated.items() if value is not None})
    return made
