"""private_score: accuracy, confusion matrix, AUC and calibration of a classifier, from one masked sum.

Two classes: one table, (class, cell of the score). More: one table (class, predicted class) and one
(this class or not, cell of its score) for each class. A row whose label was not declared, or of which the
model can say nothing, has a place of its own in every table and counts as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from scipy.special import expit

from .. import checks
from ..errors import DataError, ParameterError
from ..estimators.labels import places
from ..notebook import facts_table
from ..privacy.certificate.certificate import Certificate
from ..types import Array
from .counting import Cells, CountWishes, NoisyCounts, release_counts
from .estimates import Estimate, Spread


@dataclass(frozen=True)
class CalibrationPoint:
    """Rows whose score is about `score`: how many there are, and which share of them is of the class."""

    score: float
    rows: float
    share: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class PrivateScore:
    """How good a classifier is, as far as noise lets it be known; every number was released at once.

    accuracy, auc : with intervals that include the noise and the chance of the sample; the AUC of several
        classes is the mean of each against the rest. Its interval includes what cells of the score hide.
    confusion : rows of each class (down) that were given each class (across), never below 0; the noise moves
        an entry by at most `margin` at the level asked for.
    calibration : for each class (the second of two) the points of its curve.
    certificate : what it cost.
    """

    classes: tuple[Any, ...]
    accuracy: Estimate
    auc: Estimate
    confusion: Array
    margin: float
    calibration: Mapping[Any, tuple[CalibrationPoint, ...]]
    certificate: Certificate
    released: NoisyCounts

    def __repr__(self) -> str:
        return f"PrivateScore(accuracy={self.accuracy}, auc={self.auc}, {self.certificate})"

    def _repr_html_(self) -> str:
        facts = {"accuracy": f"{self.accuracy}", "AUC": f"{self.auc}"}
        for label, row in zip(self.classes, self.confusion, strict=True):
            cells = ", ".join(f"{count:.0f}" for count in row)
            facts[f"rows of class {label}"] = f"{cells}, each up to {self.margin:.0f} off"
        return facts_table("Private score", facts, self.certificate.statement())


def private_score(
    clf: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float = 1e-5,
    site: Any = None,
    person: Any = None,
    sites: int = 5,
    colluding: int | None = None,
    bins: int = 20,
    level: float = 0.95,
    large_delta: bool = False,
    ledger: str | PathLike[str] | None = None,
    random_state: int | None = None,
) -> PrivateScore:
    """Accuracy, confusion matrix, AUC and calibration on private rows, under one (epsilon, delta) in all.

    Everything comes from one masked sum of counts. It is charged to the `Budget` it is in, if it is in one.

    Parameters
    ----------
    clf : a fitted classifier; a model that was trained on these rows is charged for by itself.
    X, y : the rows and their labels; `clf.classes_` is taken to be public.
    epsilon, delta, site, person, sites, colluding, large_delta : as in the fit of an estimator.
    bins : cells of a score between 0 and 1, an even number; more of them tell more and are noisier.
    level : of all intervals.
    ledger : a new file for a durable record, or None.
    random_state : a seed makes it replayable, and the certificate says `simulated`.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (4000, 3))
    >>> clf = tt.PrivateLogisticRegression(sites=4, colluding=1, random_state=0).fit(X, X[:, 0] > 0)
    >>> score = tt.private_score(clf, X, X[:, 0] > 0, epsilon=0.5, colluding=1, random_state=0)
    >>> bool(score.accuracy.low < clf.score(X, X[:, 0] > 0) < score.accuracy.high)
    True
    """
    wishes = CountWishes(epsilon, delta, site, person, sites, colluding, large_delta, ledger, random_state)
    bins = _even(bins)
    Spread(1.0, 1, level).z  # noqa: B018 - a level that makes no sense is told before anything is spent
    classes = np.asarray(getattr(clf, "classes_", ()))
    if len(classes) < 2:
        raise ParameterError("`clf` must be a fitted classifier with at least two `classes_`.")
    known = places(classes, y)
    scores = _scores(clf, X, len(known))
    silent = ~np.isfinite(scores).all(axis=1)
    truth = np.where((known < 0) | silent, len(classes), known)
    cells, lengths = _cells(truth, np.nan_to_num(scores), bins)
    found = release_counts(cells, lengths, wishes, "private_score")
    return _summarise(found, tuple(classes.tolist()), bins, level)


def _even(bins: int) -> int:
    if checks.whole("bins", bins, least=2) % 2:
        raise ParameterError(f"`bins` must be even, so that 1/2 lies between two of them; got {bins}.")
    return bins


def _scores(clf: Any, X: Any, rows: int) -> Array:
    """(rows, 1) for two classes, the second one's score, else (rows, classes), all within 0 and 1."""
    if hasattr(clf, "predict_proba"):
        found = np.asarray(clf.predict_proba(X), dtype=np.float64)
        found = found[:, 1:] if found.shape[1] == 2 else found
    else:
        found = expit(np.asarray(clf.decision_function(X), dtype=np.float64))
        found = found[:, None] if found.ndim == 1 else found
    if len(found) != rows:
        raise DataError(f"`X` and `y` must have one entry per row; got {len(found)} and {rows}.")
    return np.clip(found, 0.0, 1.0)


def _cells(truth: Cells, scores: Array, bins: int) -> tuple[Cells, tuple[int, ...]]:
    """The cell of every row in every table, (rows, tables), and the tables' lengths."""
    place = np.clip(np.ceil(scores * bins).astype(np.int64) - 1, 0, bins - 1)
    if scores.shape[1] == 1:
        return truth[:, None] * bins + place, (3 * bins,)
    K = scores.shape[1]
    first = truth * K + scores.argmax(axis=1)
    kind = np.where(truth[:, None] == K, 2, truth[:, None] == np.arange(K))
    return np.column_stack([first, kind * bins + place]), ((K + 1) * K, *(3 * bins,) * K)


def _summarise(found: NoisyCounts, classes: tuple[Any, ...], bins: int, level: float) -> PrivateScore:
    spread, K = Spread(found.sigma, found.units, level), len(classes)
    if K == 2:
        table = found.tables[0]
        guess = np.tile(np.arange(bins) >= bins // 2, 3)
        label = np.repeat([0, 1, 2], bins)
        right = guess == label
        confusion = table[: 2 * bins].reshape(2, 2, bins // 2).sum(axis=2)
        tables, each = [table], math.sqrt(bins / 2)
    else:
        table, *tables = found.tables
        right = np.eye(K + 1, K, dtype=bool).ravel()
        confusion, each = table[: K * K].reshape(K, K), 1.0
    curves = [_auc(one, bins, spread) for one in tables]
    middle = [float(np.mean(part)) for part in zip(*((e.value, e.low, e.high) for e in curves), strict=True)]
    named = classes[1:] if K == 2 else classes
    return PrivateScore(
        classes=classes,
        accuracy=spread.share(table, right),
        auc=Estimate(*middle),
        confusion=np.maximum(confusion, 0.0),
        margin=spread.z * found.sigma * each,
        calibration={name: _curve(one, bins, spread) for name, one in zip(named, tables, strict=True)},
        certificate=found.certificate,
        released=found,
    )


def _auc(table: Array, bins: int, spread: Spread) -> Estimate:
    """P(score of a row of the class > score of another); rows in one cell count half."""
    rest, mine = table[:bins], table[bins : 2 * bins]
    P, Q = float(mine.sum()), float(rest.sum())
    least = 2 * spread.sigma * math.sqrt(bins)
    if min(P, Q) <= least:
        return Estimate(math.nan, 0.0, 1.0)
    below = np.cumsum(rest) - rest / 2
    above = P - np.cumsum(mine) + mine / 2
    value = float(np.sum(mine * below)) / (P * Q)
    gradient = np.concatenate([above / (P * Q) - value / Q, below / (P * Q) - value / P, np.zeros(bins)])
    extra = spread.sigma**4 * (bins * (bins - 1) / 2 + bins / 4) / (P * Q) ** 2  # noise times noise
    ties = float(np.sum(np.maximum(mine, 0) * np.maximum(rest, 0))) / (2 * P * Q)
    return spread.estimate(value, gradient, table, extra=extra, width=ties)


def _curve(table: Array, bins: int, spread: Spread) -> tuple[CalibrationPoint, ...]:
    points = []
    for k in range(bins):
        mine, both = np.zeros(len(table)), np.zeros(len(table))
        mine[bins + k] = both[k] = both[bins + k] = 1.0
        rows = max(float(np.sum(table * both)), 0.0)
        points.append(CalibrationPoint((k + 0.5) / bins, rows, spread.ratio(table, mine, both)))
    return tuple(points)
