"""RegressionScore: R squared, mean absolute error and RMSE of a regression on the rows of all sites.

They are estimated from two noisy tables of counts: residuals in bins, and targets in bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from ..answer import WORSE, PrivateAnswer
from ..estimates import Estimate, Spread
from ..question import NoisyCounts


@dataclass(frozen=True, eq=False, repr=False)
class RegressionScore(PrivateAnswer):
    """How good a regression is. All numbers come from one noisy release.

    r2 : 1 - mean squared error / variance of the target.
    mae, rmse : the mean absolute error and the root of the mean squared error, in the target's units.
    unanswered : the share of rows without a target or without a prediction.
    groups : a score for each site or group, if the job asked for it.

    Targets and predictions are first clipped to the public range. Intervals include noise, sampling error and
    binning error.
    """

    r2: Estimate
    mae: Estimate
    rmse: Estimate
    unanswered: Estimate
    released: NoisyCounts
    groups: Mapping[str, RegressionScore] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"Private score of a regression on {self.released.units:,} {self.unit_name}"

    @property
    def worse_than_constant(self) -> bool:
        """Whether the whole interval of `r2` is below 0, the value of the best constant prediction."""
        return self.r2.high < 0.0

    def table(self) -> list[list[str]]:
        named = {"R squared": "r2", "mean absolute error": "mae", "RMSE": "rmse", "unanswered": "unanswered"}
        each = {"": self} | {name: one for name, one in self.groups.items()}
        rows = [["", "estimate", "from", "to"]]
        for group, one in each.items():
            for name, key in named.items():
                e, said = getattr(one, key), f"{name}, {group}" if group else name
                rows.append([said, f"{e.value:.4g}", f"{e.low:.4g}", f"{e.high:.4g}"])
            if one.worse_than_constant:
                rows.append([f"{WORSE}, {group}" if group else WORSE, "yes", "", ""])
        return rows

    def facts(self) -> dict[str, Any]:
        named = ("r2", "mae", "rmse", "unanswered")
        found: dict[str, Any] = {"units": self.released.units}
        found["worse_than_constant"] = self.worse_than_constant
        found |= {name: vars(getattr(self, name)) for name in named}
        return found | (
            {"groups": {name: one.facts() for name, one in self.groups.items()}} if self.groups else {}
        )


def regression_lengths(bins: int) -> tuple[int, ...]:
    """The lengths of the tables of residuals and of targets. Their last cells count the unanswered rows."""
    return 2 * bins + 1, bins + 1


def regression_cells(y: Array, predicted: Array, span: tuple[float, float], bins: int) -> NDArray[np.int64]:
    """For every row, the number of its cell in each of the two tables, as an array (rows, 2)."""
    low, high = span
    silent = ~(np.isfinite(y) & np.isfinite(predicted))
    y, predicted = (np.clip(np.where(silent, low, one), low, high) for one in (y, predicted))
    step = (high - low) / bins
    residual = np.clip(np.floor((y - predicted) / step).astype(np.int64) + bins, 0, 2 * bins - 1)
    target = np.clip(np.floor((y - low) / step).astype(np.int64), 0, bins - 1)
    return np.column_stack([np.where(silent, 2 * bins, residual), np.where(silent, bins, target)])


def summarise_regression(
    found: NoisyCounts, span: tuple[float, float], bins: int, level: float, *, estimated: bool = False
) -> RegressionScore:
    """The score from the noisy counts: means over the midpoints of bins.

    A value differs from the midpoint of its bin by at most half a bin width.
    estimated : whether the number of units is an estimate; otherwise it is public.
    """
    spread, width = Spread(found.sigma, found.units, level, estimated), span[1] - span[0]
    step = width / bins
    residuals, targets = found.tables
    middles = (np.arange(2 * bins, dtype=np.float64) - bins + 0.5) * step
    mae = spread.mean(residuals, np.abs(middles), most=width, width=step / 2)
    squared = spread.mean(residuals, middles**2, most=width**2)
    places = (np.arange(bins, dtype=np.float64) + 0.5) * step
    middle = spread.mean(targets, places, most=width)
    silent = np.arange(2 * bins + 1) == 2 * bins
    variance = spread.mean(targets, (places - middle.value) ** 2, most=width**2)
    return RegressionScore(
        r2=_ratio(squared, variance, step),
        mae=mae,
        rmse=_root(squared, step / 2, width),
        unanswered=spread.share(residuals, silent),
        released=found,
    )


def _root(squared: Estimate, half: float, most: float) -> Estimate:
    """The root of a mean square. Moving each value by at most `half` moves the root by at most `half`."""
    low, high = math.sqrt(squared.low) - half, math.sqrt(squared.high) + half
    return Estimate(math.sqrt(max(squared.value, 0.0)), max(low, 0.0), min(high, most))


def _ratio(squared: Estimate, variance: Estimate, step: float) -> Estimate:
    """R squared. Its interval assumes the worst case of both arguments together, so it is wide."""
    if not variance.value > 0:
        return Estimate(math.nan, -math.inf, 1.0)
    error, spread = _root(squared, step / 2, math.inf), _root(variance, step / 2, math.inf)
    low = -math.inf if spread.low <= 0 else 1 - (error.high / spread.low) ** 2
    return Estimate(1 - squared.value / variance.value, low, 1 - (error.low / max(spread.high, 1e-300)) ** 2)
