"""PrivateSurvival: survival curves from noisy counts of events and censorings in intervals of time.

    n_j = units observed at the start of interval j,  c_j = censorings and d_j = events in interval j
    S_j = prod_{k <= j} (1 - d_k / n_k)           Kaplan-Meier, with times moved to the end of their interval

A unit is a record, or a person. Confidence bands come from simulations, which draw samples from the noisy
counts (with negative counts set to 0) and add noise with the public standard deviation. A censored unit may
have left at the start of its interval; so lower bands also allow for n_k - c_k in place of n_k. The log-rank
test simulates samples and noise under its hypothesis of equal hazards: each group has the hazards of all
units together.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.notebook import Picture
from ...core.types import Array
from ..answer import PrivateAnswer
from ..estimates import Estimate, clean
from ..question import NoisyCounts

_DRAWS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalCurve:
    """The survival curve of one group, estimated from noisy counts.

    times : the ends of the intervals. survival : S at the end of each interval.
    at_risk, events, censored : n_j, d_j and c_j of each interval, with negative counts set to 0.
    """

    times: Array
    survival: tuple[Estimate, ...]
    at_risk: Array
    events: Array
    censored: Array

    @property
    def median(self) -> Estimate:
        """The end of the interval in which S falls to 1/2; NaN if S stays above 1/2.

        The confidence interval begins at the start of the interval in which the lower band falls to 1/2. It
        ends at the end of the interval in which the upper band falls to 1/2. (The time of an event within its
        interval is not known.)
        """
        ends = self.times.tolist()

        def first(values: list[float]) -> int:
            return next((j for j, s in enumerate(values) if s <= 0.5), len(ends))

        value, low, high = (
            first([getattr(e, name) for e in self.survival]) for name in ("value", "low", "high")
        )
        return Estimate([*ends, math.nan][value], [0.0, *ends][low], [*ends, math.inf][high])

    def facts(self) -> dict[str, Any]:
        """The curve as plain JSON values."""
        return {
            "times": self.times.tolist(),
            "survival": [vars(e) for e in self.survival],
            "at_risk": self.at_risk.tolist(),
            "events": self.events.tolist(),
            "censored": self.censored.tolist(),
            "median": {k: v if math.isfinite(v) else None for k, v in vars(self.median).items()},
        }


@dataclass(frozen=True, eq=False, repr=False)
class PrivateSurvival(PrivateAnswer):
    """The survival curves of all units (`all`) and of each group, for example `found["treated"].survival`.

    p_value : the p-value of the log-rank test that all groups have the same hazards. It accounts for the
        noise. None with fewer than two groups.
    """

    all: SurvivalCurve
    groups: Mapping[str, SurvivalCurve]
    released: NoisyCounts
    statistic: float | None = None
    p_value: float | None = None
    by: str = ""

    @property
    def title(self) -> str:
        return f"Survival of {self.released.units:,} {self.unit_name}{f' by {self.by}' if self.by else ''}"

    def __getitem__(self, name: str) -> SurvivalCurve:
        return self.groups[name]

    def __repr__(self) -> str:
        return f"PrivateSurvival({', '.join(self.groups) or 'all'}, {self.certificate})"

    def table(self) -> list[list[str]]:
        rows = [["group", "time", "at risk", "events", "censored", "survival", "from", "to"]]
        for name, curve in {"all": self.all, **self.groups}.items():
            for j, e in enumerate(curve.survival):
                counts = [f"{one[j]:.0f}" for one in (curve.at_risk, curve.events, curve.censored)]
                shown = [f"{value:.4f}" for value in (e.value, e.low, e.high)]
                rows.append([name, f"{curve.times[j]:g}", *counts, *shown])
        if self.p_value is not None:
            rows.append(["log-rank", "", "", "", "", "", "p", f"{self.p_value:.3g}"])
        return rows

    def notebook(self) -> tuple[dict[str, str], dict[str, str]]:
        facts = {
            f"median, {name}": str(curve.median) for name, curve in {"all": self.all, **self.groups}.items()
        }
        return facts | ({} if self.p_value is None else {"log-rank p": f"{self.p_value:.3g}"}), {}

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"units": self.released.units, "noise": self.released.sigma}
        found |= {"all": self.all.facts(), "by": self.by or None}
        found["groups"] = {name: curve.facts() for name, curve in self.groups.items()}
        return found | {"log_rank": {"statistic": self.statistic, "p_value": self.p_value}}

    def plot(self) -> Picture:
        """The curves with their bands: straight lines between the ends of the intervals."""
        from ..pictures import Line, draw_lines

        start = Estimate(1.0, 1.0, 1.0)
        curves = self.groups or {"all": self.all}
        lines = [Line(name, [0.0, *c.times.tolist()], [start, *c.survival]) for name, c in curves.items()]
        return draw_lines(lines, "time", "survival", self.title)


def estimate_curves(
    found: NoisyCounts, tables: Array, edges: Array, names: tuple[str, ...], level: float, by: str
) -> PrivateSurvival:
    """Curves of all units and of each group. `tables` has one row of noisy counts for each group.

    If there are groups, `tables` has one more row at its end: the units whose group cannot be read.
    """
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(tables.tobytes()).digest()[:8], "big"))
    sigma, times = found.sigma, edges[1:]
    whole = _curve(tables.sum(axis=0), sigma * math.sqrt(len(tables)), times, level, rng)
    groups = {name: _curve(tables[k], sigma, times, level, rng) for k, name in enumerate(names)}
    if len(groups) < 2:
        return PrivateSurvival(whole, groups, found, by=by)
    split = tables[: len(names), :-1]
    statistic, p_value = _log_rank(split, sigma, rng)
    return PrivateSurvival(whole, groups, found, statistic, p_value, by)


def survival_of(counts: Array, *, early: bool = False) -> Array:
    """S at the end of every interval, (..., intervals).

    counts : (..., 2 intervals + 1): events, censorings, and the units that were observed to the end.
    early : treat censored units as censored at the start of their interval.
    """
    d, c = _parts(counts)
    n = at_risk(counts) - (c if early else 0.0)
    hazard = np.where(n > 0.5, np.clip(d / np.maximum(n, 0.5), 0.0, 1.0), 0.0)
    return np.asarray(np.cumprod(1 - hazard, axis=-1))


def at_risk(counts: Array) -> Array:
    """n_j: the number of units under observation at the start of every interval."""
    d, c = _parts(counts)
    left = np.cumsum((d + c)[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(left + counts[..., -1:])


def _parts(counts: Array) -> tuple[Array, Array]:
    bins = counts.shape[-1] // 2
    return counts[..., :bins], counts[..., bins : 2 * bins]


def _curve(
    counts: Array, sigma: float, times: Array, level: float, rng: np.random.Generator
) -> SurvivalCurve:
    """A curve. Its confidence band shows how far simulated samples and simulated noise move the estimate."""
    split, units = counts[:-1], max(round(float(counts.sum())), 1)
    kept = clean(counts, units)
    drawn = rng.multinomial(units, kept / kept.sum(), size=_DRAWS) + sigma * rng.standard_normal(
        (_DRAWS, len(counts))
    )
    moved = survival_of(drawn[:, :-1]) - survival_of(kept[:-1])
    tail = 100 * (1 - level) / 2
    below, above = np.percentile(moved, [tail, 100 - tail], axis=0)
    value = np.minimum.accumulate(survival_of(split))
    early = np.maximum(survival_of(kept[:-1]) - survival_of(kept[:-1], early=True), 0.0)
    low = np.clip(value - np.maximum(above, 0.0) - early, 0.0, 1.0)
    high = np.clip(value - np.minimum(below, 0.0), 0.0, 1.0)
    drowned = at_risk(split) <= 2 * sigma * np.sqrt(2.0 * np.arange(len(times), 0, -1) + 1)
    lost = np.logical_or.accumulate(drowned)  # here noise may exceed n_j, so the curve has no lower bound
    low = np.where(lost, 0.0, low)
    high = np.where(lost, np.minimum.accumulate(np.where(lost, 1.0, high)), high)
    low, high = np.minimum.accumulate(np.minimum(low, value)), np.maximum(high, value)
    survival = tuple(Estimate(*map(float, row)) for row in zip(value, low, high, strict=True))
    n, d, c = (np.maximum(one, 0.0) for one in (at_risk(split), *_parts(split)))
    return SurvivalCurve(times, survival, n, d, c)


def _log_rank(split: Array, sigma: float, rng: np.random.Generator) -> tuple[float, float]:
    """(statistic, p-value) of the log-rank test.

    All groups have equal hazards in the simulations. The p-value is the share of simulations with a statistic
    at least as large as this one. The statistic leaves out the last group, because the excess events of all
    groups add up to 0.
    """
    kept = np.maximum(split, 0.0)
    sizes = np.maximum(np.rint(kept.sum(axis=1)), 1).astype(np.int64)
    pairs = zip(sizes, _equal_hazards(kept), strict=True)
    drawn = np.stack([rng.multinomial(n, p, size=_DRAWS) for n, p in pairs], axis=1)
    excess = _excess(drawn + sigma * rng.standard_normal(drawn.shape))[:, :-1]
    centre, covered = excess.mean(axis=0), np.atleast_2d(np.cov(excess.T))
    inverse = np.linalg.pinv(covered)

    def size(found: Array) -> Array:
        return np.asarray(np.einsum("...i,ij,...j->...", found - centre, inverse, found - centre))

    statistic = float(size(_excess(split)[:-1]))
    exceeded = int(np.count_nonzero(size(excess) >= statistic))
    return statistic, (1 + exceeded) / (1 + _DRAWS)


def _excess(split: Array) -> Array:
    """Observed minus expected events of every group, (..., groups)."""
    n, d = at_risk(split), _parts(split)[0]
    hazard = d.sum(axis=-2) / np.maximum(n.sum(axis=-2), 1.0)
    return np.asarray((d - n * hazard[..., None, :]).sum(axis=-1))


def _equal_hazards(kept: Array) -> Array:
    """The probability of each cell in each group, if only censoring differs between groups.

    The hazards of all groups are then those of all units together.
    """
    n, (d, c) = at_risk(kept), _parts(kept)
    hazard = np.clip(d.sum(axis=0) / np.maximum(n.sum(axis=0), 1e-9), 0.0, 1.0)
    leaving = np.clip(c / np.maximum(n - d, 1e-9), 0.0, 1.0)
    left = np.cumprod(np.concatenate([np.ones((len(kept), 1)), (1 - hazard) * (1 - leaving)], axis=1), axis=1)
    before, end = left[:, :-1], left[:, -1:]
    cells = np.concatenate([before * hazard, before * (1 - hazard) * leaving, end], axis=1)
    return np.asarray(cells / cells.sum(axis=1, keepdims=True))
