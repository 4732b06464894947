"""The second moments M of the rows from the first release, corrected for the known noise.

    Full    M = mean of x x', as eigenvectors and eigenvalues ("levels")     usual for up to 256 columns
    Wide    M = diag(variances) + mean mean', which needs memory O(d)        usual for more columns

With several hundred columns, the noise hides all of M except its diagonal and the mean of x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...core.types import Array
from ...kernels.algebra import eigenpairs, product, rebuild, total, transposed_product
from ...kernels.arithmetic import dot

LEAST = 0.1  # the lowest allowed level / the mean level, because noise hides lower ones; 0 to 0.25 work too
_FIXED = 1e-3  # the level of a constant column (whose variance is 0) / the mean level


@dataclass(frozen=True, eq=False)
class Full:
    """M as eigenvalues and eigenvectors.

    levels, vectors : the eigenvalues of M, and the eigenvectors as rows.
    constant : the value of the last column if it is the same in every row, else None.
    gain : step t multiplies the curvature by 1 + gain (t - 1), so that converged directions are averaged.
    """

    levels: Array
    vectors: Array
    constant: float | None
    gain: float = 0.1

    @classmethod
    def from_release(cls, released: Array, noise: float, constant: float | None) -> Full:
        """From the noisy upper triangle of M, its off-diagonal entries times sqrt 2."""
        levels, vectors, level = cleaned(released, noise)
        d = len(levels)
        floor = LEAST * max(total(levels) / d, LEAST * level)
        return cls(np.minimum(np.maximum(levels, floor), 1.0), vectors, constant)

    @property
    def all_levels(self) -> Array:
        """The levels from which `step_size.run_time` computes the length of the descent."""
        return self.levels

    def at(self, s: Array) -> Array:
        """s in the coordinates in which signal and noise are compared."""
        return product(self.vectors, s)

    def times(self, x: Array) -> Array:
        """M x."""
        return transposed_product(self.vectors, self.levels * product(self.vectors, x))

    def solve(self, a: float, p: float, g: Array) -> Array:
        """(a M + p)^-1 g."""
        return transposed_product(self.vectors, product(self.vectors, g) / (a * self.levels + p))

    def margins(self, y: Array) -> tuple[float, float]:
        """Mean and standard deviation of x.y over the rows.

        The mean of x is the constant's column of M divided by the constant; 0 if there is no constant.
        """
        My = self.times(y)
        mean = 0.0 if self.constant is None else float(My[-1]) / self.constant
        return mean, math.sqrt(max(dot(y, My) - mean * mean, 0.0))


@dataclass(frozen=True, eq=False)
class Wide:
    """M = diag(levels) + mean mean', with the same methods as `Full`. Every vector is (d,)."""

    levels: Array
    mean: Array
    gain: float = 0.05

    @classmethod
    def from_release(cls, released: Array, noise: float, constant: float | None) -> Wide:
        """From the noisy means of x and of x^2, concatenated. A known constant column is left out of both."""
        k = len(released) // 2
        mean, squares = released[:k], released[k:]
        mean = mean * max(0.0, 1.0 - k * noise * noise / max(dot(mean, mean), 1e-300))
        diagonal, level = _shrunk(squares, noise)
        levels = np.maximum(diagonal - mean * mean, LEAST * diagonal)
        if constant is not None:
            mean, levels = np.append(mean, constant), np.append(levels, _FIXED * level)
        return cls(levels, mean)

    @property
    def all_levels(self) -> Array:
        return np.append(self.levels, dot(self.mean, self.mean))

    def at(self, s: Array) -> Array:
        length = dot(self.mean, self.mean)
        return s - self.mean * (dot(self.mean, s) / length) if length > 0 else s

    def times(self, x: Array) -> Array:
        return self.levels * x + self.mean * dot(self.mean, x)

    def solve(self, a: float, p: float, g: Array) -> Array:
        q = a * self.levels + p
        u = self.mean / q
        return np.asarray(g / q - u * (a * dot(u, g) / (1.0 + a * dot(u, self.mean))))

    def margins(self, y: Array) -> tuple[float, float]:
        return dot(self.mean, y), math.sqrt(dot(self.levels * y, y))


Shape = Full | Wide
"""An estimate of M."""


def cleaned(
    released: Array, noise: float, least: float = LEAST, floor: float | None = None
) -> tuple[Array, Array, float]:
    """The levels of M, its eigenvectors as rows, and the mean of its diagonal, from a noisy upper triangle.

    The diagonal is shrunk towards its mean and subtracted. Of the rest, only eigenvalues beyond +-edge are
    kept, where edge = sqrt(2 d) noise is about the largest eigenvalue of pure noise. Noise turns a true
    eigenvalue theta into theta + w^2 / theta, w = edge / 2; the function inverts this. The entries of the
    diagonal are at least `least` times their mean, and this mean is at least `floor`.
    """
    M = symmetric(released)
    d = len(M)
    diagonal, level = _shrunk(np.ascontiguousarray(np.diagonal(M)), noise, least, floor)
    levels, vectors = eigenpairs(M - np.diag(diagonal))
    edge, size = noise_edge(d, noise), np.abs(levels)
    theta = 0.5 * (size + np.sqrt(np.maximum(levels * levels - edge * edge, 0.0)))
    signal = np.where(size > edge, np.where(levels < 0, -theta, theta), 0.0)
    levels, vectors = eigenpairs(np.diag(diagonal) + rebuild(signal, vectors))
    return levels, vectors, level


def noise_edge(d: int, noise: float) -> float:
    """sqrt(2 d) noise: about the largest eigenvalue of a d x d matrix of pure noise."""
    return math.sqrt(2.0 * d) * noise


def symmetric(released: Array) -> Array:
    """The symmetric matrix from its upper triangle, row by row, with off-diagonal entries times sqrt 2."""
    d = (math.isqrt(8 * len(released) + 1) - 1) // 2
    M = np.zeros((d, d))
    M[np.triu_indices(d)] = released
    upper = np.triu(M, 1) / math.sqrt(2.0)
    return np.asarray(upper + upper.T + np.diag(np.diagonal(M)))


def _shrunk(
    diagonal: Array, noise: float, least: float = LEAST, floor: float | None = None
) -> tuple[Array, float]:
    """(diagonal, mean): the diagonal, shrunk towards its mean by as much as the known noise explains."""
    k = len(diagonal)
    mean = max(total(diagonal) / k, 1e-6 / k if floor is None else floor)
    apart = diagonal - mean
    spread = dot(apart, apart)
    keep = max(0.0, 1.0 - k * noise * noise / spread) if spread > 0 else 0.0
    return np.maximum(mean + keep * apart, least * mean), mean
