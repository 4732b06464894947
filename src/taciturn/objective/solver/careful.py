"""Gradients with very small rounding errors, for accuracies (`tol`) that ordinary gradients cannot reach.

Each matrix A is split as A = H + T. The high part H has only the first beta bits of the entries; the rest T
is smaller by a factor of about 2^-beta. If 2 beta + log2(terms) <= 53, a sum of `terms` products of two high
parts is exact in floats, in whatever order BLAS adds the products. Only products that contain a rest T are
rounded. Their error zeta is small: about 2^-beta gamma(d), where rounding.py defines gamma. The only other
errors come from rounding the margins z and the slopes L'(z) to floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ...core.types import Array
from ..blocks import Block
from ..rows import Matrix
from .gradient_evaluator import GradientEvaluator
from .rounding import U, exact_bits, gamma


class CarefulGradientEvaluator(GradientEvaluator):
    """Gradients of phi (see gradient_evaluator.py), each with an upper bound on its rounding error."""

    _at: Array | None = None  # the models of the last evaluation; `_doubt` has its error bounds
    _doubt: Array

    def doubt(self, F: Array) -> Array:
        """An upper bound on the norm of the rounding error of `gradient(F)`, (repeats,)."""
        if self._at is not F:
            self.gradient(F)
        return self._doubt

    def gradient(self, F: Array) -> Array:
        """The gradient of phi at every row of F, (repeats, d)."""
        self.count += 1
        Ft = np.ascontiguousarray(F.T)
        data, error = np.zeros_like(Ft), np.zeros_like(Ft)
        parts: dict[float, list[Block]] = {}
        for block in self.blocks:
            parts.setdefault(block.weight, []).append(block)
        for weight, blocks in parts.items():
            high, low, doubt = np.zeros_like(Ft), np.zeros_like(Ft), np.zeros_like(Ft)
            for block in blocks:
                product, rest, unsure = self._block(block, Ft)
                high, slip = _two_sum(high, product)
                low += slip + rest
                doubt += unsure
            part = weight * (high + low)
            data += part
            error += weight * (doubt + len(blocks) * U * np.abs(low)) + 4 * U * np.abs(part)
        error *= 1.0 + 1e-6
        error += 8 * U * (np.abs(data) + self._smooth_sizes(F).T)
        self._doubt = np.sqrt(np.sum(np.square(error), axis=0)) * (1.0 + 1e-6)
        self._at = F
        return self.with_smooth_terms(F, np.ascontiguousarray(data.T))

    def _block(self, block: Block, Ft: Array) -> tuple[Array, Array, Array]:
        """(the exact part of Z' L'(z), its small rest, an upper bound on the error), for one block."""
        loss = self.objective.loss
        wide, tall = _terms(block.Z)
        beta = exact_bits(max(wide, tall))
        Z_high, Z_low, top = _split_matrix(block.Z, beta)
        z, dz = _margins(block, Ft, Z_high, Z_low, beta)
        zeta = 4 * gamma(wide + 4) * 2.0**-beta * wide * top * np.max(np.abs(Ft), axis=0)
        dz += zeta
        slope = np.asarray(loss.slope(z))
        within = getattr(loss, "curvature_within", None)
        bend = loss.curvature_bound if within is None else within(z, dz)
        dz = dz + 2 * U * (np.abs(z) + getattr(loss, "shift", 0.0))
        size = np.abs(slope)
        ds = bend * dz + 8 * U * size + 1e-300
        slope_high, slope_low = _split_columns(slope, beta)
        product = Z_high.T @ slope_high
        rest = Z_high.T @ slope_low + Z_low.T @ slope
        crumbs = 4 * gamma(tall + 2) * 2.0**-beta * tall * top * np.max(size, axis=0)
        sizes: Any = abs(block.Z)
        return product, rest, sizes.T @ ds + crumbs

    def _smooth_sizes(self, F: Array) -> Array:
        """|rho R'(f)| + |curvature f| + |linear| for every entry, (repeats, d)."""
        objective = self.objective
        regular = np.abs(objective.rho * objective.regularizer.gradient(F))
        return np.asarray(regular + np.abs(self.curvature * F) + np.abs(self.linear))


def _margins(block: Block, Ft: Array, Z_high: Any, Z_low: Any, beta: int) -> tuple[Array, Array]:
    """(z, a bound on the error of z without zeta) for the rows of a block and every model."""
    F_high, F_low = _split_columns(Ft, beta)
    high, low = Z_high @ F_high, Z_high @ F_low + Z_low @ Ft
    if block.offset is not None:
        high, slip = _two_sum(high, np.broadcast_to(block.offset[:, None], high.shape))
        low = low + slip
    z = high + low
    return z, U * np.abs(z) + 4 * U * np.abs(low)


def _terms(Z: Matrix) -> tuple[int, int]:
    """Upper bounds on the number of nonzero entries in a row, and in a column."""
    if isinstance(Z, np.ndarray):
        return Z.shape[1], Z.shape[0]
    tall = np.max(np.bincount(Z.indices, minlength=1))
    return int(np.max(np.diff(Z.indptr))), int(tall)


def _split_columns(A: Array, beta: int) -> tuple[Array, Array]:
    """(H, T) with A = H + T. The entries of a column of H are multiples of 2^-beta p, where p is the largest
    absolute value in the column, rounded up to a power of two."""
    return _split(A, np.max(np.abs(A), axis=0), beta)


def _split_matrix(Z: Matrix, beta: int) -> tuple[Any, Any, float]:
    """(H, T, top) with Z = H + T, where top is the largest absolute value of all entries."""
    entries = Z if isinstance(Z, np.ndarray) else Z.data
    top = float(np.max(np.abs(entries), initial=0.0))
    high, low = _split(entries, np.float64(top), beta)
    if isinstance(Z, np.ndarray):
        return high, low, top
    return _with_entries(Z, high), _with_entries(Z, low), top


def _split(A: Array, top: Any, beta: int) -> tuple[Array, Array]:
    """(H, T) with A = H + T. Adding and then subtracting 1.5 * 2^52 quanta rounds A to H, in whole quanta."""
    quantum = np.exp2(np.ceil(np.log2(np.where(top > 0.0, top, 1.0))) - beta)
    anchor = 1.5 * 2.0**52 * quantum
    high = (A + anchor) - anchor
    return high, A - high


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """(s, e) with s = fl(a + b) and s + e = a + b exactly [Knuth]."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _with_entries(Z: sparse.csr_array, data: Array) -> sparse.csr_array:
    return sparse.csr_array((data, Z.indices, Z.indptr), shape=Z.shape, copy=False)
