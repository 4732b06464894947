"""Estimates from noisy counts, with intervals that include the noise and the sampling error.

Let f be a smooth function of the counts c, and g its gradient. The variance of f(c) has two parts. The first
comes from the noise, which has the standard deviation sigma in each count. The second is the sampling
variance, because the n counted rows are a sample:

    sigma^2 ||g||^2  +  sum c g^2 - (sum c g)^2 / n

All of this is computed from released numbers, so it costs no extra privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..core import checks
from ..core.types import Array


@dataclass(frozen=True)
class Estimate:
    """A number and its confidence interval, which includes the noise and the sampling error."""

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Spread:
    """The facts that determine the intervals of estimates from one table of counts.

    sigma : the standard deviation of the noise of one count.
    units : the number of counted records; or of persons, if each person counts once.
    level : the confidence level of the intervals.
    estimated : whether `units` is an estimate, such as the size of a group; otherwise it is public.
    """

    sigma: float
    units: int
    level: float = 0.95
    estimated: bool = False

    @property
    def z(self) -> float:
        """Half the width of an interval, in standard deviations of the estimate."""
        return float(-ndtri((1 - checks.probability("level", self.level)) / 2))

    def estimate(
        self,
        value: float,
        gradient: Array,
        counts: Array,
        *,
        within: tuple[float, float] = (0.0, 1.0),
        extra: float = 0.0,
        width: float = 0.0,
    ) -> Estimate:
        """The estimate of a function f(counts), from its value and its gradient.

        within : the range of f.
        extra : a number that is added to the variance.
        width : the distance by which each end of the interval is moved outwards.
        """
        kept = clean(counts, self.units)
        sample = float(np.sum(kept * gradient**2) - np.sum(kept * gradient) ** 2 / self.units)
        noise = self.sigma**2 * float(np.sum(gradient**2))
        half = self.z * math.sqrt(noise + max(sample, 0.0) + extra) + width
        low, high = within
        middle = min(max(value, low), high)
        return Estimate(middle, min(max(value - half, low), middle), max(min(value + half, high), middle))

    def share(self, counts: Array, chosen: Array) -> Estimate:
        """The share of all units that are in the chosen cells of a table of counts.

        All counts add up to the public number of units. So the chosen cells give one estimate of the share,
        and 1 minus the share of the other cells gives a second estimate. The result is the weighted mean of
        both estimates that has the least noise. If the number of units is itself an estimate, the result is
        the count in the chosen cells divided by the count in all cells.
        """
        if self.estimated:
            return self.ratio(counts, chosen.astype(float), np.ones(len(counts)))
        other = float(np.count_nonzero(chosen)) / len(counts)
        gradient = np.where(chosen, 1.0 - other, -other) / self.units
        return self._proportion(other + float(np.sum(counts * gradient)), gradient, self.units)

    def mean(
        self, counts: Array, values: Array, *, most: float, width: float = 0.0, least: float = 0.0
    ) -> Estimate:
        """The mean over the units in the first len(values) cells; a unit in cell k has the value values[k].

        least, most : the range of the mean.
        width : the distance by which each end of the interval is moved outwards.
        If the noisy number of these units is at most twice the standard deviation of its noise, the mean is
        NaN and the interval is (least, most).
        """
        units = float(counts[: len(values)].sum())
        if units <= 2 * self.sigma * math.sqrt(len(values)):
            return Estimate(math.nan, least, most)
        value = float(np.sum(counts[: len(values)] * values)) / units
        gradient = np.zeros(len(counts))
        gradient[: len(values)] = (values - value) / units
        return self.estimate(value, gradient, counts, within=(least, most), width=width)

    def ratio(self, counts: Array, upper: Array, lower: Array) -> Estimate:
        """The ratio of two weighted sums of counts, sum(upper * counts) / sum(lower * counts).

        The weights are from 0 to 1, and `upper` is at most `lower`, so the ratio is a proportion.
        If the denominator is at most twice the standard deviation of its noise, the value is NaN and the
        interval is (0, 1).
        """
        top, bottom = float(np.sum(counts * upper)), float(np.sum(counts * lower))
        if bottom <= 2 * self.sigma * math.sqrt(float(np.sum(lower**2))):
            return Estimate(math.nan, 0.0, 1.0)
        return self._proportion(top / bottom, (upper - top / bottom * lower) / bottom, bottom)

    def _proportion(self, value: float, gradient: Array, units: float) -> Estimate:
        """The estimate of a proportion with the denominator `units`.

        Its sampling variance is computed as if two more units were counted in the numerator, and four more
        in the denominator (Agresti and Coull). Otherwise a proportion of 0 or 1 would have no sampling error.
        """
        inside = min(max(value, 0.0), 1.0)
        middle = min(max((value * units + 2) / (units + 4), 0.0), 1.0)
        half = self.z * math.sqrt(self.sigma**2 * float(np.sum(gradient**2)) + middle * (1 - middle) / units)
        return Estimate(inside, max(min(value, 1.0) - half, 0.0), min(max(value, 0.0) + half, 1.0))


def clean(counts: Array, units: int) -> Array:
    """Counts with negative counts set to 0, scaled so that their sum is `units`."""
    kept = np.maximum(counts, 0.0)
    total = float(kept.sum())
    return kept * (units / total) if total > 0 else np.full(len(kept), units / len(kept))
