"""PrivateScore: how good a classifier is on the rows of all sites, estimated from noisy tables of counts.

The score of a row is the predicted probability of a class. Scores are counted in bins from 0 to 1. With two
classes there is one table of counts: (class, bin of the score). With more classes there is one table (class,
predicted class), and for each class one table (this class or not, bin of its score). Rows with an undeclared
label, or without a prediction, have separate cells in every table and count as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.notebook import Picture, draw_bars
from ...core.types import Array
from ..answer import WORSE, PrivateAnswer
from ..estimates import Estimate, Spread
from ..question import NoisyCounts


@dataclass(frozen=True)
class CalibrationPoint:
    """The rows whose score is near `score`: how many there are, and the share that belongs to the class."""

    score: float
    rows: float
    share: Estimate


@dataclass(frozen=True)
class ThresholdRow:
    """The quality of predictions that put every row with a score above `threshold` into the second class.

    flagged : of the rows with a label and a prediction, the share with a score above the threshold.
    """

    threshold: float
    sensitivity: Estimate
    specificity: Estimate
    precision: Estimate
    flagged: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class PrivateScore(PrivateAnswer):
    """How good a classifier is. All numbers come from one noisy release.

    accuracy, auc : with intervals that include the noise and the sampling error. The interval of the AUC also
        includes the binning error. With more than two classes, the AUC is the mean of the AUCs of each class
        against the rest.
    brier, log_loss : for two classes only. The log loss is computed from the midpoints of the scores' bins.
    confusion : the number of rows of each class (down) that were predicted to be in each class (across),
        never below 0. At the requested confidence level, the noise moves an entry by at most `margin`.
    calibration : the points of the calibration curve of each class; with two classes, only of the second.
    thresholds : for two classes only, sensitivity, specificity, precision and the flagged share at some
        thresholds.
    unanswered : the share of rows with an undeclared label or without a prediction.
    groups : a `PrivateScore` for each site or group, if the job asked for it.
    """

    classes: tuple[Any, ...]
    accuracy: Estimate
    auc: Estimate
    confusion: Array
    margin: float
    calibration: Mapping[Any, tuple[CalibrationPoint, ...]]
    unanswered: Estimate
    released: NoisyCounts
    brier: Estimate | None = None
    log_loss: Estimate | None = None
    thresholds: tuple[ThresholdRow, ...] = ()
    groups: Mapping[str, PrivateScore] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"Private score on {self.released.units:,} {self.unit_name}"

    def __repr__(self) -> str:
        return f"PrivateScore(accuracy={self.accuracy}, auc={self.auc}, {self.certificate})"

    @property
    def constant(self) -> float:
        """The approximate accuracy of the best constant prediction: the share of the most frequent class."""
        return float(self.confusion.sum(axis=1).max() / max(float(self.confusion.sum()), 1.0))

    @property
    def worse_than_constant(self) -> bool:
        """Whether the interval of the accuracy is entirely below `constant`, or that of the AUC below 1/2."""
        return self.accuracy.high < self.constant or self.auc.high < 0.5

    def table(self) -> list[list[str]]:
        each = [self, *self.groups.values()]
        rows = [["", "all", *self.groups]]
        if any(one.worse_than_constant for one in each):
            rows.append([WORSE, *("yes" if one.worse_than_constant else "no" for one in each)])
        rows += [["accuracy", *(str(one.accuracy) for one in each)], ["AUC", *(str(one.auc) for one in each)]]
        for name, key in (("Brier score", "brier"), ("log loss", "log_loss")):
            if getattr(self, key) is not None:
                rows.append([name, *(str(getattr(one, key)) for one in each)])
        for row in self.thresholds:
            for name in ("sensitivity", "specificity"):
                cells = (str(getattr(_at(one, row), name)) for one in each)
                rows.append([f"{name} above {row.threshold:g}", *cells])
        rows.append(["unanswered", *(str(one.unanswered) for one in each)])
        for k, label in enumerate(self.classes):
            for j, other in enumerate(self.classes):
                cells = (f"{one.confusion[k][j]:.0f} (up to {one.margin:.0f} off)" for one in each)
                rows.append([f"class {label}, predicted {other}", *cells])
        return rows

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"units": self.released.units, "classes": list(self.classes)}
        for key in ("accuracy", "auc", "brier", "log_loss", "unanswered"):
            value = getattr(self, key)
            found |= {} if value is None else {key: vars(value)}
        found |= {"confusion": self.confusion.tolist(), "margin": self.margin}
        found |= {"constant": self.constant, "worse_than_constant": self.worse_than_constant}
        found["calibration"] = {
            str(label): [vars(point) | {"share": vars(point.share)} for point in curve]
            for label, curve in self.calibration.items()
        }
        found["thresholds"] = [
            {key: vars(value) if isinstance(value, Estimate) else value for key, value in vars(row).items()}
            for row in self.thresholds
        ]
        if self.groups:
            found["groups"] = {name: one.facts() for name, one in self.groups.items()}
        return found

    def notebook(self) -> tuple[dict[str, str], dict[str, str]]:
        facts, pictures = {" ".join(row[:-1]): row[-1] for row in self.table()[1:]}, {}
        for at in (row.threshold for row in self.thresholds if row.threshold != 0.5):
            facts.pop(f"sensitivity above {at:g}", None)
            facts.pop(f"specificity above {at:g}", None)
        if self.thresholds:
            facts["other thresholds"] = "see .thresholds, or print(.text())"
        for label, points in self.calibration.items():
            name = f"calibration, class {label}"
            facts[name] = "share of the class by score, from 0 to 1"
            pictures[name] = draw_bars([point.share.value for point in points], label=name)
        return facts, pictures

    def plot(self) -> Picture:
        """The calibration curve of every class."""
        from ..pictures import Line, draw_lines

        lines = []
        for label, curve in self.calibration.items():
            known = [point for point in curve if point.share.value == point.share.value]
            lines.append(Line(str(label), [p.score for p in known], [p.share for p in known]))
        return draw_lines(lines, "score", "share of the class", "Calibration", diagonal=True)


def _at(score: PrivateScore, row: ThresholdRow) -> ThresholdRow:
    return next(one for one in score.thresholds if one.threshold == row.threshold)


def score_lengths(classes: int, bins: int) -> tuple[int, ...]:
    """The number of cells of each table."""
    return (3 * bins,) if classes == 2 else ((classes + 1) * classes, *(3 * bins,) * classes)


def score_cells(truth: NDArray[np.int64], scores: Array, bins: int) -> NDArray[np.int64]:
    """For every row, the number of its cell in each table, as an array (rows, tables)."""
    place = np.clip(np.ceil(scores * bins).astype(np.int64) - 1, 0, bins - 1)
    if scores.shape[1] == 1:
        return np.asarray(truth[:, None] * bins + place)
    K = scores.shape[1]
    first = truth * K + scores.argmax(axis=1)
    kind = np.where(truth[:, None] == K, 2, truth[:, None] == np.arange(K))
    return np.column_stack([first, kind * bins + place])


def summarise(
    found: NoisyCounts, classes: tuple[Any, ...], bins: int, level: float, *, estimated: bool = False
) -> PrivateScore:
    """The `PrivateScore` from the noisy counts.

    estimated : whether the number of units is an estimate; otherwise it is public.
    """
    spread, K = Spread(found.sigma, found.units, level, estimated), len(classes)
    if K == 2:
        table = found.tables[0]
        guess = np.tile(np.arange(bins) >= bins // 2, 3)
        label = np.repeat([0, 1, 2], bins)
        right, silent = guess == label, label == 2
        confusion = table[: 2 * bins].reshape(2, 2, bins // 2).sum(axis=2)
        tables, each = [table], math.sqrt(bins / 2)
    else:
        table, *tables = found.tables
        right, silent = np.eye(K + 1, K, dtype=bool).ravel(), np.arange((K + 1) * K) >= K * K
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
        unanswered=spread.share(table, silent),
        released=found,
        **(_of_two(table, bins, spread) if K == 2 else {}),
    )


def _of_two(table: Array, bins: int, spread: Spread) -> dict[str, Any]:
    """Brier score, log loss and threshold table for the second of two classes."""
    middle, half = (np.arange(bins) + 0.5) / bins, 0.5 / bins
    off = np.concatenate([middle, 1 - middle])
    kept = np.maximum(table[: 2 * bins], 0.0)
    width = float(np.sum(kept * half * (2 * off + half)) / max(kept.sum(), 1.0))
    return {
        "brier": spread.mean(table, off**2, most=1.0, width=width),
        "log_loss": spread.mean(table, -np.log(1 - off), most=math.log(2 * bins)),
        "thresholds": tuple(
            _threshold(table, k, bins, spread) for k in range(bins // 10 or 1, bins, bins // 10 or 1)
        ),
    }


def _threshold(table: Array, k: int, bins: int, spread: Spread) -> ThresholdRow:
    """The figures if rows with a score in bin k or a higher bin are predicted to be in the second class."""
    cells, label = np.tile(np.arange(bins), 3), np.repeat([0, 1, 2], bins)
    above = (cells >= k) & (label < 2)

    def share(upper: NDArray[np.bool_], lower: NDArray[np.bool_]) -> Estimate:
        return spread.ratio(table, (upper & lower).astype(float), lower.astype(float))

    return ThresholdRow(
        k / bins,
        share(above, label == 1),
        share(~above, label == 0),
        share(label == 1, above),
        share(above, label < 2),
    )


def _auc(table: Array, bins: int, spread: Spread) -> Estimate:
    """P(score of a row of the class > score of a row of the rest); two rows in one bin count one half."""
    rest, mine = table[:bins], table[bins : 2 * bins]
    P, Q = float(mine.sum()), float(rest.sum())
    least = 2 * spread.sigma * math.sqrt(bins)
    if min(P, Q) <= least:
        return Estimate(math.nan, 0.0, 1.0)
    below = np.cumsum(rest) - rest / 2
    above = P - np.cumsum(mine) + mine / 2
    value = float(np.sum(mine * below)) / (P * Q)
    gradient = np.concatenate([above / (P * Q) - value / Q, below / (P * Q) - value / P, np.zeros(bins)])
    extra = spread.sigma**4 * (bins * (bins - 1) / 2 + bins / 4) / (P * Q) ** 2  # products of two noise terms
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
