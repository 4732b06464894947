"""Measured lower bounds on epsilon, from counts of events in many runs on two neighbouring data sets.

If a run is (epsilon, delta) private then, for every event S, P_old(S) <= e^epsilon P_new(S) + delta. So an
event that is counted more often on the old data than on the new data proves

    epsilon >= ln( (low(P_old(S)) - delta) / high(P_new(S)) )

if the event was chosen independently of these counts. Here S is the event that some score of a run is above
(or below) a threshold. One half of the runs serves to choose the score, the threshold, and the side (above or
below). The event is counted in the other half. The exact binomial bounds low and high (Clopper and Pearson,
1934) on these counts give the lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array

Side = Literal["old", "new"]

_THRESHOLDS = 200  # the number of thresholds that are tried on the first half of the runs


@dataclass(frozen=True)
class Measurement:
    """A lower bound on epsilon that holds with probability `confidence`, and the counts that prove it.

    score, threshold : the event is that this score is above the threshold (below it if `side` is "new").
    side : the data set, "old" or "new", on which the event should happen more often.
    often, seldom : how many of the `runs` runs had the event, on the data set `side` and on the other data
        set.
    """

    epsilon: float
    delta: float
    confidence: float
    score: str
    side: Side
    threshold: float
    often: int
    seldom: int
    runs: int

    def to_dict(self) -> dict[str, Any]:
        """The measurement as JSON values; an infinite threshold is null."""
        return asdict(self) | {"threshold": self.threshold if math.isfinite(self.threshold) else None}


@dataclass(frozen=True)
class MeanRatio:
    """An estimate of the mean of p_new / p_old over runs on the old data.

    The true mean is 1 if p_new and p_old are the densities from which the runs were drawn. The error of the
    estimate exceeds `margin` with probability at most 1 - (confidence of the audit).
    """

    mean: float
    margin: float

    @property
    def holds(self) -> bool:
        """Whether 1 lies within the margin."""
        return abs(self.mean - 1.0) <= self.margin


def clopper_pearson(hits: ArrayLike, trials: int, beta: float) -> tuple[Array, Array]:
    """(low, high): bounds on the probability of a hit, each wrong with probability at most beta."""
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k > 0, stats.beta.ppf(beta, np.maximum(k, 1), trials - k + 1), 0.0)
    high = np.where(k < trials, stats.beta.ppf(1 - beta, k + 1, np.maximum(trials - k, 1)), 1.0)
    return np.asarray(low), np.asarray(high)


def epsilon_of_counts(
    often: ArrayLike, seldom: ArrayLike, trials: int, delta: float, confidence: float
) -> Array:
    """ln((low - delta) / high), or 0 if this is negative; wrong with probability at most 1 - confidence."""
    beta = (1 - confidence) / 2
    low, _ = clopper_pearson(often, trials, beta)
    _, high = clopper_pearson(seldom, trials, beta)
    return np.log(np.maximum((low - delta) / high, 1.0))


def measure(
    scores: Mapping[str, tuple[Array, Array]], *, delta: float, confidence: float = 1 - 1e-6
) -> Measurement:
    """The lower bound on epsilon that the scores prove.

    scores : maps the name of each score to its values in the runs on the old data, and on the new data.

    A larger score should mean that the old data are more likely. The runs must be independent, and there must
    be as many runs on the old data as on the new data.
    """
    if not 0 <= checks.real("delta", delta) < 1:
        raise ParameterError(f"`delta` must be at least 0 and below 1; got {delta:g}.")
    checks.probability("confidence", confidence)
    pairs = {name: _check_scores(name, *pair) for name, pair in scores.items()}
    choices = [
        (*_best(old[0::2], new[0::2], side, delta, confidence), name, side)
        for name, (old, new) in pairs.items()
        for side in ("old", "new")
    ]
    _, threshold, name, side = max(choices, key=lambda choice: choice[0])
    old, new = (part[1::2] for part in pairs[name])
    often, seldom = (int(count) for count in _counts(old, new, np.array([threshold]), side)[:, 0])
    return Measurement(
        epsilon=float(epsilon_of_counts(often, seldom, len(old), delta, confidence)),
        delta=delta,
        confidence=confidence,
        score=name,
        side="old" if side == "old" else "new",
        threshold=threshold,
        often=often,
        seldom=seldom,
        runs=len(old),
    )


def measure_mu(scores: Mapping[str, tuple[Array, Array]], *, confidence: float = 1 - 1e-6) -> float:
    """A lower bound on mu for runs that are mu-GDP (mu-Gaussian differentially private).

    If a run is mu-GDP then Phi^-1(P_old(S)) - Phi^-1(P_new(S)) <= mu for every event S. This bound can use
    events of medium probability. Counts estimate their probability far more precisely than the probability of
    rare events; but a bound on epsilon at a small delta needs rare events.
    """
    beta = (1 - confidence) / 2
    pairs = {name: _check_scores(name, *pair) for name, pair in scores.items()}

    def proven(old: Array, new: Array, thresholds: Array) -> Array:
        often, seldom = _counts(old, new, thresholds, "old")
        low, _ = clopper_pearson(often, len(old), beta)
        _, high = clopper_pearson(seldom, len(old), beta)
        return np.asarray(stats.norm.ppf(low) - stats.norm.ppf(high))

    choices = []
    for name, (old, new) in pairs.items():
        thresholds = np.quantile(np.concatenate([old[0::2], new[0::2]]), np.linspace(0.02, 0.98, _THRESHOLDS))
        found = proven(old[0::2], new[0::2], thresholds)
        choices.append((float(np.max(found)), float(thresholds[np.argmax(found)]), name))
    _, threshold, name = max(choices)
    old, new = (part[1::2] for part in pairs[name])
    return max(0.0, float(proven(old, new, np.array([threshold]))[0]))


def mean_ratio(old: Array, new: Array, *, confidence: float = 1 - 1e-6, most: float = math.inf) -> MeanRatio:
    """The mean of min(w, M) on the old data plus the mean of (1 - M/w)+ on the new data. It should be 1.

    w = p_new / p_old; `old` and `new` contain ln w for the runs on each data set. The part of E_old[w] that
    min(w, M) leaves out is exactly E_new[(1 - M/w)+]. So the values in both means are bounded, and the
    margin is valid for every distribution of w. It consists of an empirical Bernstein bound for each side of
    each mean (Maurer and Pontil, 2009). M = min(most, max(2, sqrt(n)/8)) is fixed before the runs; `most` is
    a bound on w.
    """
    M = min(most, max(2.0, math.sqrt(len(old)) / 8))
    with np.errstate(over="ignore"):
        kept = np.minimum(np.exp(old), M)
        rest = np.maximum(1 - M * np.exp(-new), 0.0)
    tail = (1 - confidence) / 4
    margin = _bernstein(kept, M, tail) + _bernstein(rest, 1.0, tail)
    return MeanRatio(float(kept.mean() + rest.mean()), margin)


def _bernstein(values: Array, most: float, tail: float) -> float:
    """A bound on the error of the mean of values in [0, most]; fails with probability `tail` on each side."""
    n, log = len(values), math.log(2 / tail)
    return math.sqrt(2 * float(np.var(values, ddof=1)) * log / n) + 7 * most * log / (3 * (n - 1))


def _check_scores(name: str, old: Array, new: Array) -> tuple[Array, Array]:
    if old.ndim != 1 or old.shape != new.shape or len(old) < 4:
        raise ParameterError(
            f"`scores[{name!r}]` must be two arrays of equal length >= 4; got {old.shape} and {new.shape}."
        )
    if np.isnan(old).any() or np.isnan(new).any():
        raise ParameterError(f"`scores[{name!r}]` must not contain NaN.")
    return old, new


def _best(old: Array, new: Array, side: str, delta: float, confidence: float) -> tuple[float, float]:
    """(bound, threshold): the largest lower bound on these runs, and the threshold that gives it.

    The thresholds are scores of runs on the other data set (not `side`): the most extreme score, which none
    of these runs passes, and scores that at least 16 of them pass. A threshold that 1 to 15 of them pass may
    look good by chance.
    """
    n = len(old)
    ranks = np.unique(np.append(np.geomspace(min(16, n - 1), n - 1, _THRESHOLDS).astype(np.intp), 0))
    thresholds = np.sort(new)[::-1][ranks] if side == "old" else np.sort(old)[ranks]
    often, seldom = _counts(old, new, thresholds, side)
    bounds = epsilon_of_counts(often, seldom, n, delta, confidence)
    at = int(np.argmax(bounds))
    return float(bounds[at]), float(thresholds[at])


def _counts(old: Array, new: Array, thresholds: Array, side: str) -> NDArray[np.int64]:
    """(often, seldom) for every threshold: counts of scores above it for side "old", below it for "new"."""
    if side == "old":
        return np.stack(
            [len(part) - np.searchsorted(np.sort(part), thresholds, "right") for part in (old, new)]
        )
    return np.stack([np.searchsorted(np.sort(part), thresholds, "left") for part in (new, old)])
