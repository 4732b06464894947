"""Coordinates in which rows vary alike in every direction, learnt from noisy second moments.

    release     M / cap,  M = mean of omega x~ x~',   x~ = W'x,   omega ||x~||^2 <= cap
    whiten      W <- W Q (l + nu)^(-1/2)      l, Q: the cleaned levels and vectors of M, nu: half of its noise
    rotate      W <- W Q                      after the last release, whose levels are kept

What is released is divided by its cap, so that its noise is fixed before W is known. All of this is
public, and the same bits everywhere. Programs of sums that want good coordinates start here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.types import Array
from ...kernels.algebra import matrix_product, rebuild, total
from ...privacy.accounting.sensitivity import CAP_LEAST, KAPPA
from .moments import cleaned, noise_edge

_FEW = 60.0  # the rate from which a third release of moments pays
_SHARE, _PER_RATE, _MOST = 0.02, 0.001, 0.06
_MANY = (0.02, 0.03, 0.04)
_FLOOR = 1e-9  # the least mean of the diagonal of M
_FEW_COLUMNS, _MANY_COLUMNS = 4, 600
_LIFT = 0.3  # of the edge, added to the levels of the last release: what noise may have hidden
_BIAS = 0.05 * 0.15 / 4.0  # of the loss that clipping may cost, in units of what noise costs


@dataclass(frozen=True)
class Strength:
    """The signal strength of a run, in public numbers.

    units, mu : n, and mu of the whole run.   noises : N / h, how much more noise than a trusted centre's.
    """

    units: int
    mu: float
    noises: float

    def rate(self, d: int) -> float:
        """e = n mu sqrt(h / N) / d."""
        return self.units * self.mu / (math.sqrt(self.noises) * d)

    def shares(self, d: int) -> tuple[float, ...]:
        """The shares of mu^2 for the releases of moments."""
        rate = self.rate(d)
        return _MANY if rate >= _FEW else (_SHARE, min(max(_PER_RATE * rate, _SHARE), _MOST))

    def whitening_pays(self, d: int) -> bool:
        """Whether better coordinates are worth their price.

        The noise of the first moments must stay below 1, the largest level that rows of norm 1 can have:
        sqrt(2 d) sqrt(2 / 0.02) / (n mu) sqrt(N / h) < 1. With a constant and up to three columns the noise
        hides no direction, and clipping costs more than it saves. With very many a matrix is too long.
        """
        return (
            _FEW_COLUMNS < d <= _MANY_COLUMNS
            and noise_edge(d, math.sqrt(2.0 / _SHARE) / (self.rate(d) * d)) < 1.0
        )

    def kappa(self, K: float) -> float:
        """The clip in units of sqrt K: as tight as keeps the bias below the noise."""
        least, most = KAPPA
        return min(max(math.sqrt(_BIAS * self.units * self.mu * self.mu / (self.noises * K)), least), most)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """x~ = W'x, and how long it may count.

    W : (d, d).   K : the effective dimension.   kappa, q, cap : q = kappa sqrt K bounds the length of a
        row, cap = min(4 q sqrt K, 2 K) its square in the next moments; both are 1 before the first release.
    mean : of the rows as they are; 0 where no column is constant.
    levels : of the second moments along the coordinates, after the last release; until then empty.
    noise : the standard deviation of an entry of the last M, cap included.
    """

    W: Array
    K: float
    kappa: float
    q: float
    cap: float
    mean: Array
    levels: Array
    noise: float = 0.0

    @classmethod
    def of_rows(cls, d: int) -> Coordinates:
        """The rows as they are, of norm at most 1."""
        return cls(np.eye(d), float(d), 1.0, 1.0, 1.0, np.zeros(d), np.zeros(0))

    @property
    def plain(self) -> bool:
        """Whether these are the rows as they are."""
        return self.noise == 0.0

    def after(
        self, released: Array, noise: float, strength: Strength, constant: float | None, *, last: bool
    ) -> Coordinates:
        """The coordinates after one more release of moments / cap, whose noise has this spread."""
        released, noise = released * self.cap, noise * self.cap
        levels, vectors, _ = cleaned(released, noise, 0.0, _FLOOR)
        levels = np.maximum(levels, 0.0)
        edge = noise_edge(len(levels), noise)
        mean = self.mean
        if self.plain and constant is not None:
            mean = np.ascontiguousarray(rebuild(levels, vectors)[-1]) / constant
        W = matrix_product(self.W, np.ascontiguousarray(vectors.T))
        if last:
            return Coordinates(W, self.K, self.kappa, self.q, self.cap, mean, levels + _LIFT * edge, noise)
        nu = 0.5 * edge
        K = max(1.0, total(levels / (levels + nu)))
        kappa = strength.kappa(K)
        q = kappa * math.sqrt(K)
        cap = max(min(4.0 * q * math.sqrt(K), 2.0 * K), CAP_LEAST)
        return Coordinates(W / np.sqrt(levels + nu), K, kappa, q, cap, mean, np.zeros(0), noise)

    def row_weights(self, lengths: Array) -> Array:
        """omega = min(1, 2 q / r, cap / r^2): what a row of length r counts in the next moments."""
        if self.plain:
            return np.ones(len(lengths))
        r = np.maximum(lengths, 1e-100)
        return np.minimum(1.0, np.minimum(2.0 * self.q / r, self.cap / r / r))

    def margin_square(self, u: Array) -> float:
        """About the mean of (u . x~)^2: that of the weighted rows over what weights leave."""
        return total(self.levels * u * u) / min(1.0, 2.0 * self.kappa)


class WhitenedQuery(NamedTuple):
    """The next query: moments in these coordinates, or gradients at `points`, (repeats, d)."""

    coordinates: tuple[Coordinates, ...]
    points: Array | None
