"""Do the 95% intervals of answers contain the truth in 95% of cases? `python -m benchmarks.coverage`

Samples come from populations whose true values are known. For each sample, the library's code counts the rows
and computes the estimates, and the noise has the standard deviation that the question's method chooses. Masks
and messages are left out, because they change no number. The output has one line for each kind of interval.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from taciturn.core.types import Array
from taciturn.data.tables.column_types import Boolean, Category, Number
from taciturn.data.tables.schema import Schema
from taciturn.graph import Graph
from taciturn.methods.base import Network
from taciturn.methods.programs.counts import Counts, OuterProducts
from taciturn.methods.programs.own_program import ProgramTable
from taciturn.questions.question import CountsQuestion, NoisyCounts, PublicTable, SiteTable, Totals
from taciturn.questions.shipped.correlations import Correlations
from taciturn.questions.shipped.describe import Describe
from taciturn.questions.shipped.regression_score import (
    regression_cells,
    regression_lengths,
    summarise_regression,
)
from taciturn.questions.shipped.score import score_cells, score_lengths, summarise
from taciturn.questions.shipped.survival import Survival

SETTINGS = ((1_000, 0.5), (5_000, 1.0), (20_000, 2.0))
"""(number of rows, epsilon) of each setting. There are five sites, one may collude, and delta is 1e-5."""

Found = Iterator[tuple[str, Any, float]]
"""Yields, for every interval, its kind, the estimate with the interval, and the true value."""

TOLD = 1.0
"""The standard deviation of the noise that estimates assume, relative to the true one. 1.0 is correct."""


def network(n: int) -> Network:
    table = ProgramTable([None] * 5, np.full(5, n // 5), 1)
    return Network.of(table, Graph.complete(5))


def noisy(
    lengths: tuple[int, ...], cells: Array, n: int, epsilon: float, rng: np.random.Generator
) -> NoisyCounts:
    """Counts of cells, (rows, tables), with the noise that the method adds for this epsilon."""
    tables = Counts(lengths, epsilon, 1e-5, 1).prepare(network(n)).tables
    sigma = tables.sums[0].grid * tables.sums[0].std * math.sqrt(5)
    exact = [np.bincount(cells[:, k], minlength=length) for k, length in enumerate(lengths)]
    return NoisyCounts(tuple(one + sigma * rng.standard_normal(len(one)) for one in exact), TOLD * sigma, n)


def ask(
    question: CountsQuestion, public: PublicTable, columns: dict[str, Any], n: int, epsilon: float, rng: Any
) -> Any:
    cells = question.cells(public, SiteTable(columns, n))
    return question.estimate(public, noisy(question.lengths(public), cells, n, epsilon, rng))


WARDS = {"a": 0.6, "b": 0.3, "c": 0.08}
AGES = PublicTable(Schema((Number("age", 0, 100), Category("ward", tuple(WARDS)), Boolean("smoker"))))


def describe(n: int, epsilon: float, rng: np.random.Generator) -> Found:
    """Describe ages in two groups. The ages come from two uniform distributions, and 5% are missing."""
    old = rng.random(n) < 0.3
    age = np.where(old, rng.uniform(60, 90, n), rng.uniform(20, 60, n))
    age[rng.random(n) < 0.05] = np.nan
    ward = rng.choice([*WARDS, "?"], n, p=[*WARDS.values(), 0.02])
    columns = {"age": age, "ward": ward, "smoker": rng.choice(["yes", "no"], n, p=[0.2, 0.8])}
    found = ask(Describe(by="smoker"), AGES, columns, n, epsilon, rng)
    truth = {0.05: 20 + 0.05 / 0.7 * 40, 0.25: 20 + 0.25 / 0.7 * 40, 0.5: 20 + 0.5 / 0.7 * 40}
    truth |= {0.75: 60 + 0.05 / 0.3 * 30, 0.95: 60 + 0.25 / 0.3 * 30}
    second = 0.3 * (75**2 + 30**2 / 12) + 0.7 * (40**2 + 40**2 / 12)
    mean = 0.3 * 75 + 0.7 * 40
    for end, each in (("", found.columns), (", of a group", found.groups["no"])):
        yield f"mean{end}", each["age"].mean, mean
        yield f"SD{end}", each["age"].sd, math.sqrt(second - mean * mean)
        for q, spot in each["age"].quantiles.items():
            yield f"quantile{end}", spot, truth[q]
        yield f"missing{end}", each["age"].readable, 0.95
        for name, share in WARDS.items():
            yield f"share of a category{end}", each["ward"].shares[name], share
    for k, share in enumerate(found.columns["age"].shares.values()):
        known = 0.7 / 8 if 4 <= k < 12 else 0.3 / 6 if 12 <= k < 18 else 0.0
        yield "share of a bin", share, 0.95 * known


def describe_edges(n: int, epsilon: float, rng: np.random.Generator) -> Found:
    """Describe the worst case for bins: each value is at the end of its bin that is further from the mean."""
    values, chance = np.array([10.001, 30.001, 69.999, 94.999]), np.array([0.2, 0.25, 0.35, 0.2])
    age = rng.choice(values, n, p=chance)
    found = ask(Describe(columns=("age",)), AGES, {"age": age}, n, epsilon, rng)["age"]
    mean = float(chance @ values)
    yield "SD, at the ends of bins", found.sd, math.sqrt(float(chance @ (values - mean) ** 2))
    up = np.where(age < 50, age + 4.998, age)
    found = ask(Describe(columns=("age",)), AGES, {"age": up}, n, epsilon, rng)["age"]
    yield "mean, at the ends of bins", found.mean, mean + 4.998 * 0.45


def evaluate(n: int, epsilon: float, rng: np.random.Generator) -> Found:
    """Evaluate a calibrated model whose scores are expit(2 Z), where Z is standard normal."""
    bins, truth = 20, _score_truth()
    p = expit(2 * rng.standard_normal(n))
    y = (rng.random(n) < p).astype(np.int64)
    found = summarise(
        noisy(score_lengths(2, bins), score_cells(y, p[:, None], bins), n, epsilon, rng), (0, 1), bins, 0.95
    )
    for name in ("accuracy", "auc", "brier", "log_loss"):
        yield name, getattr(found, name), truth[name]
    for k, point in enumerate(found.calibration[1]):
        if not math.isnan(point.share.value):
            yield "calibration", point.share, truth["calibration"][k]
    for row in found.thresholds:
        for name in ("sensitivity", "specificity", "precision", "flagged"):
            yield f"threshold: {name}", getattr(row, name), truth[f"{name} {row.threshold:g}"]


@cache
def _score_truth(bins: int = 20) -> dict[str, Any]:
    """The true scores, computed from two million standard normal quantiles."""
    exact: dict[str, Any] = {}
    p = expit(2 * ndtri((np.arange(2_000_000) + 0.5) / 2_000_000))
    cell = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
    middle = (cell + 0.5) / bins
    rank = (np.cumsum(1 - p) - (1 - p) / 2) / np.sum(1 - p)
    exact["accuracy"], exact["brier"] = np.mean(np.maximum(p, 1 - p)), np.mean(p * (1 - p))
    exact["log_loss"] = -np.mean(p * np.log(middle) + (1 - p) * np.log(1 - middle))
    exact["auc"] = np.sum(p * rank) / np.sum(p)
    exact["calibration"] = [p[cell == k].mean() for k in range(bins)]
    for k in range(2, bins, 2):
        above, at = cell >= k, f"{k / bins:g}"
        exact[f"sensitivity {at}"] = p[above].sum() / p.sum()
        exact[f"specificity {at}"] = (1 - p)[~above].sum() / (1 - p).sum()
        exact[f"precision {at}"], exact[f"flagged {at}"] = p[above].mean(), above.mean()
    return exact


def regress(n: int, epsilon: float, rng: np.random.Generator) -> Found:
    """Score predictions x of y = x + error. x is uniform; errors are uniform, or at the ends of bins."""
    x, sign = rng.uniform(-6, 6, n), rng.choice([-1.0, 1.0], n)
    for end, error in (("", rng.uniform(0, 3, n)), (", at the ends of bins", rng.choice([0.999, 2.999], n))):
        cells = regression_cells(x + sign * error, x, (-10.0, 10.0), 40)
        counts = noisy(regression_lengths(40), cells, n, epsilon, rng)
        found = summarise_regression(counts, (-10.0, 10.0), 40, 0.95)
        square, size = (3.0, 1.5) if end == "" else ((0.999**2 + 2.999**2) / 2, 1.999)
        yield f"R squared{end}", found.r2, 1 - square / (12.0 + square)
        yield f"mean absolute error{end}", found.mae, size
        yield f"RMSE{end}", found.rmse, math.sqrt(square)


STUDY = PublicTable(Schema((Number("time", 0, 24), Boolean("event"), Category("arm", ("a", "b")))))


def survive(n: int, epsilon: float, rng: np.random.Generator) -> Found:
    """Estimate survival in two arms: exponential times with mean 20, censored at uniform times up to 40."""
    event, censored = rng.exponential(20, n), rng.uniform(0, 40, n)
    columns = {
        "time": np.minimum(event, censored),
        "event": (event <= censored).astype(float),
        "arm": rng.choice(["a", "b"], n),
    }
    found = ask(Survival(time="time", event="event", by="arm", bins=12), STUDY, columns, n, epsilon, rng)
    for name, curve in (("", found.all), (", of a group", found.groups["a"])):
        for t, share in zip(curve.times, curve.survival, strict=True):
            yield f"survival curve{name}", share, math.exp(-t / 20)
        yield f"median survival{name}", curve.median, 20 * math.log(2)
    yield "log-rank: p above 0.05", _Above(found.p_value), 0.05


class _Above:
    """A p-value as an interval, which contains 0.05 if the p-value is above 0.05."""

    def __init__(self, p: float) -> None:
        self.low, self.high = 0.0, p


PAIR = PublicTable(Schema(tuple(Number(name, -1, 1) for name in "xyz")))


def correlate(n: int, epsilon: float, rng: np.random.Generator) -> Found:
    """Correlate three columns. Each is the sum of two uniform numbers, and nothing is clipped."""
    shared, own = rng.uniform(-0.5, 0.5, (n, 1)), rng.uniform(-0.5, 0.5, (n, 3))
    columns = dict(zip("xyz", (shared + own).T, strict=True))
    question = Correlations()
    tables = OuterProducts(4, epsilon, 1e-5, 1).prepare(network(n)).tables
    Q = question.rows(PAIR, SiteTable(columns, n)).X
    M = Q.T @ Q / n
    values = (M * np.where(np.eye(4) == 1, 1.0, math.sqrt(2)))[np.triu_indices(4)]
    std = tables.sums[0].grid * tables.sums[0].std * math.sqrt(5)
    values = values + std * rng.standard_normal(len(values))
    sums = tuple(replace(one, std=TOLD * one.std) for one in tables.sums)
    found = question.answer(PAIR, Totals(tables.program, sums, 5, n, values))
    for e in found.means.values():
        yield "mean (correlations)", e, 0.0
    for e in found.sds.values():
        yield "SD (correlations)", e, math.sqrt(1 / 6)
    for e in found.correlation.values():
        yield "correlation", e, 0.5
    yield "largest component", found.variances[0], 2 / 3


STUDIES = (describe, describe_edges, evaluate, regress, survive, correlate)


def study(repeats: int, studies: Any = STUDIES, settings: Any = SETTINGS) -> dict[str, list[tuple[int, int]]]:
    """For each kind and setting: (number of intervals that contain the truth, number of intervals)."""
    found: dict[str, list[list[int]]] = defaultdict(lambda: [[0, 0] for _ in settings])
    for one in studies:
        for k, (n, epsilon) in enumerate(settings):
            for seed in range(repeats):
                for kind, e, truth in one(n, epsilon, np.random.default_rng([seed, k])):
                    found[kind][k][0] += bool(e.low <= truth <= e.high)
                    found[kind][k][1] += 1
    return {kind: [(held, total) for held, total in each] for kind, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--only", nargs="*", default=[one.__name__ for one in STUDIES])
    given = parser.parse_args()
    heads = [f"{n:,} rows, epsilon {epsilon:g}" for n, epsilon in SETTINGS]
    print("| interval | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|")
    for one in STUDIES:
        if one.__name__ in given.only:
            start = time.perf_counter()
            for kind, each in study(given.repeats, (one,)).items():
                cells = [f"{held / total:.1%} of {total:,}" if total else "-" for held, total in each]
                print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
            print(f"<!-- {one.__name__}: {time.perf_counter() - start:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
