"""Whitened coordinates, in which rows vary equally in every direction, learnt from noisy second moments.

All sites release the mean M of x x' over all rows, weighted and with noise, two or three times:

    release     M / cap,  M = mean of omega x~ x~',   x~ = W'x,   omega ||x~||^2 <= cap
    whiten      W <- W Q (l + nu)^(-1/2)      l, Q: eigenvalues ("levels") and eigenvectors of M, denoised;
                                              nu: half the largest eigenvalue of pure noise (`noise_edge`)
    rotate      W <- W Q                      after the last release, whose levels are kept

x is a row, omega its weight. A release is divided by its cap, so that its noise can be fixed before W is
known. mu is the privacy budget of the run (mu-GDP), and each release has a share of mu^2. All results of this
file are public, and every machine computes the same bits.
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

_FEW = 60.0  # if `Strength.rate` is at least this, a third release of moments is worth its cost
# shares of mu^2 for two releases: _SHARE, and then _PER_RATE times `rate`, between _SHARE and _MOST
_SHARE, _PER_RATE, _MOST = 0.02, 0.001, 0.06
_MANY = (0.02, 0.03, 0.04)  # shares of mu^2 for three releases of moments
_FLOOR = 1e-9  # a lower bound on the mean of the diagonal of M
_FEW_COLUMNS, _MANY_COLUMNS = 4, 600
_LIFT = 0.3  # _LIFT times the noise edge is added to the last levels: noise may hide that much of a level
_BIAS = 0.05 * 0.15 / 4.0  # the allowed loss from clipping, relative to the loss from noise


@dataclass(frozen=True)
class Strength:
    """How strong the signal of the rows is compared with the noise of a run, from public numbers.

    units : n, the number of records or persons.
    mu : the mu of the whole run.
    noises : the variance of the noise / the variance that one trusted party with all rows would need. It is
        N / h if h of N sites are honest.
    """

    units: int
    mu: float
    noises: float

    def rate(self, d: int) -> float:
        """n mu sqrt(h / N) / d: the strength of the signal compared with the noise, for d columns."""
        return self.units * self.mu / (math.sqrt(self.noises) * d)

    def shares(self, d: int) -> tuple[float, ...]:
        """The shares of mu^2 for the releases of moments."""
        rate = self.rate(d)
        return _MANY if rate >= _FEW else (_SHARE, min(max(_PER_RATE * rate, _SHARE), _MOST))

    def whitening_pays(self, d: int) -> bool:
        """Whether whitened coordinates are worth the privacy budget for the moments.

        The noise in the first moments must stay below 1, the largest eigenvalue that M can have:
        sqrt(2 d) sqrt(2 / 0.02) / (n mu) sqrt(N / h) < 1. With a constant and up to three columns, noise
        hides no direction, and clipping costs more than whitening gains. With more than _MANY_COLUMNS
        columns, the matrix of moments is too large.
        """
        return (
            _FEW_COLUMNS < d <= _MANY_COLUMNS
            and noise_edge(d, math.sqrt(2.0 / _SHARE) / (self.rate(d) * d)) < 1.0
        )

    def kappa(self, K: float) -> float:
        """The smallest clipping length, in units of sqrt K, for which the bias is far below the noise."""
        least, most = KAPPA
        return min(max(math.sqrt(_BIAS * self.units * self.mu * self.mu / (self.noises * K)), least), most)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The coordinates x~ = W'x of a row x, and the bounds on the length of x~.

    W : (d, d).   K : the effective dimension, the sum of l / (l + nu).
    kappa, q, cap : the gradient of one row has length at most q = kappa sqrt K. The cap of the next moments
        is min(4 q sqrt K, 2 K), but at least `CAP_LEAST`. At first q and cap are 1.
    mean : the mean of the original rows; zeros if no column is constant.
    levels : the second moments along the coordinates; empty until the last release.
    noise : the standard deviation of the noise in an entry of the last M (not divided by its cap).
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
        """The coordinates of the original rows, which have norm at most 1."""
        return cls(np.eye(d), float(d), 1.0, 1.0, 1.0, np.zeros(d), np.zeros(0))

    @property
    def plain(self) -> bool:
        """Whether these are the coordinates of the original rows."""
        return self.noise == 0.0

    def after(
        self, released: Array, noise: float, strength: Strength, constant: float | None, *, last: bool
    ) -> Coordinates:
        """The coordinates after one more release: M / cap with noise of standard deviation `noise`."""
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
        """omega = min(1, 2 q / r, cap / r^2): the weight of a row of length r in the next moments."""
        if self.plain:
            return np.ones(len(lengths))
        r = np.maximum(lengths, 1e-100)
        return np.minimum(1.0, np.minimum(2.0 * self.q / r, self.cap / r / r))

    def margin_square(self, u: Array) -> float:
        """An estimate of the mean of (u . x~)^2: its weighted mean, divided by a typical weight."""
        return total(self.levels * u * u) / min(1.0, 2.0 * self.kappa)


class WhitenedQuery(NamedTuple):
    """Asks for gradients at `points`, (repeats, d); if `points` is None, for moments in these coordinates."""

    coordinates: tuple[Coordinates, ...]
    points: Array | None
