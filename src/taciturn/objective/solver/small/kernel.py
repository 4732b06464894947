"""Compiled solver for small sites with dense rows: damped Newton, one repeat after the other.

    minimise phi(f) = weight sum_n L(offset_n + Z_n f) + (m/2) ||f||^2 - <b, f>

Here f is the model, Z_n is row n, and L is the loss. m is called `strong` in gradient_evaluator.py, and b is
called `linear`. A repeat is one of several independent runs, each with its own b. The arguments `work` and
`room` are memory for intermediate results.

Each step goes in the direction -H^-1 g, where g is the gradient of phi, H = m I + Z' W Z is its Hessian, and
the diagonal matrix W contains weight L''. The direction is computed from a Cholesky factorisation of H. If
there are fewer rows than features, the smaller matrix m I + W^1/2 Z Z' W^1/2 is factorised instead, by
Woodbury's identity. The step length comes from the line search of `newton.py`, which uses only slopes and
guarantees that phi decreases. The result of a repeat does not depend on the other repeats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....core.types import Array
from ....kernels.algebra import factor, solve
from ....kernels.arithmetic import assign, compiled, dot
from .slopes import LossCode, curvatures, gradient_doubt, mean_quality, slopes, total_value

Whole = NDArray[np.int64]

_UP = 1.0 + 1e-9  # this factor covers the relative rounding errors of a norm and of m
_STEPS = 60  # after this many Newton steps the general solver takes over
_TRIALS = 60  # the most trial steps along one direction
# Stop if the gradient's norm has not halved for more than _PATIENCE steps, and is at most _NOISE times the
# bound on the gradient's rounding error.
_NOISE, _PATIENCE = 10.0, 3


class Matrices(NamedTuple):
    """One site's rows Z, their transpose, Z Z' (if rows < features), and memory for a Cholesky factor.

    norm, far : max ||x|| and max |offset|.
    """

    Z: Array
    Zt: Array
    ZZt: Array
    factor: Array
    offset: Array
    weight: float
    norm: float
    far: float


@compiled
def add_gram(A: Array, Z: Array, weights: Array) -> None:
    """A += the upper triangle of Z' diag(weights) Z, four rows at a time."""
    rows, d = Z.shape
    fours = rows - rows % 4
    for n in range(0, fours, 4):
        for i in range(d):
            a, b = weights[n] * Z[n, i], weights[n + 1] * Z[n + 1, i]
            c, e = weights[n + 2] * Z[n + 2, i], weights[n + 3] * Z[n + 3, i]
            for j in range(i, d):
                A[i, j] += (a * Z[n, j] + b * Z[n + 1, j]) + (c * Z[n + 2, j] + e * Z[n + 3, j])
    for n in range(fours, rows):
        for i in range(d):
            a = weights[n] * Z[n, i]
            for j in range(i, d):
                A[i, j] += a * Z[n, j]


@compiled
def product(At: Array, v: Array, out: Array) -> None:
    """out = A v, given At = A'. The columns of A are added one after the other."""
    rows = len(out)
    for n in range(rows):
        out[n] = 0.0
    for j in range(len(v)):
        c = v[j]
        for n in range(rows):
            out[n] += c * At[j, n]


@compiled
def margins(Zt: Array, offset: Array, f: Array, z: Array) -> None:
    """z = offset + Z f."""
    product(Zt, f, z)
    for n in range(len(offset)):
        z[n] += offset[n]


@compiled
def _direction(rows: Matrices, m: float, h: Array, g: Array, t: Array, p: Array) -> bool:
    """Set p = -H^-1 g; return False if H is not positive definite in floats. Overwrites the curvatures h."""
    count, d = rows.Z.shape
    A = rows.factor
    if d <= count:
        for i in range(d):
            for j in range(i, d):
                A[i, j] = 0.0
            A[i, i] = m
            p[i] = -g[i]
        for n in range(count):
            h[n] *= rows.weight
        add_gram(A, rows.Z, h)
        if not factor(A, d):
            return False
        solve(A, d, p)
        return True
    product(rows.Zt, g, t)
    for n in range(count):
        h[n] = math.sqrt(rows.weight * h[n])
        t[n] *= h[n]
    for i in range(count):
        for j in range(i, count):
            A[i, j] = h[i] * rows.ZZt[i, j] * h[j]
        A[i, i] += m
    if not factor(A, count):
        return False
    solve(A, count, t)
    for n in range(count):
        t[n] *= h[n]
    product(rows.Z, t, p)
    for j in range(d):
        p[j] = (p[j] - g[j]) / m
    return True


@compiled
def _step(
    law: LossCode, weight: float, a: float, first: float, rise: float, z: Array, u: Array, t: Array, s: Array
) -> float:
    """A step length x that decreases phi.

    The slope of phi at the step length x is first + x rise + weight <L'(z + x u), u>; at 0 it is -a.
    """
    bend = weight * law.bend * dot(u, u) + rise
    low, high, at = 0.0, np.inf, 1.0
    for _ in range(_TRIALS):
        for n in range(len(z)):
            t[n] = z[n] + at * u[n]
        slopes(law, t, s)
        slope = first + at * rise + weight * dot(s, u)
        if slope < -0.5 * a:
            low = at
        elif at * slope > a * a / (4.0 * bend):
            high = at
        else:
            return at
        at = 2.0 * at if high == np.inf else 0.5 * (low + high)
    return low if low > 0.0 else at


@compiled
def _minimise(
    law: LossCode, rows: Matrices, m: float, b: Array, f: Array, goal: float, work: Array, room: Array
) -> float:
    """Replace the starting point in f by the best model found. Return a bound on its gradient's norm."""
    count, d = rows.Z.shape
    z, u, s, t, h = work[0, :count], work[1, :count], work[2, :count], work[3, :count], work[4, :count]
    g, p, best = room[0], room[1], room[2]
    pull = math.sqrt(dot(b, b))
    least, bound, idle = np.inf, np.inf, 0
    assign(best, f)
    for _ in range(_STEPS):
        margins(rows.Zt, rows.offset, f, z)
        slopes(law, z, s)
        product(rows.Z, s, g)
        for j in range(d):
            g[j] = rows.weight * g[j] + (m * f[j] - b[j])
        size = math.sqrt(dot(g, g))
        if not size < np.inf:
            break
        sizes = rows.weight, rows.norm, rows.far, d + 1.0
        doubt = gradient_doubt(law, sizes, count, m, math.sqrt(dot(f, f)), pull)
        idle = 0 if size < 0.5 * least else idle + 1
        if size < least:
            least, bound = size, _UP * (size + doubt)
            assign(best, f)
        if bound <= goal or (idle > _PATIENCE and size <= _NOISE * doubt):
            break
        curvatures(law, z, s, h)
        if not (_direction(rows, m, h, g, t, p) and dot(g, p) < 0.0):
            for j in range(d):
                p[j] = -g[j] / m
        product(rows.Zt, p, u)
        rise = m * dot(p, p)
        at = _step(law, rows.weight, -dot(g, p), m * dot(f, p) - dot(b, p), rise, z, u, t, s)
        for j in range(d):
            f[j] += at * p[j]
    assign(f, best)
    return bound


@compiled
def most_rows(first: Whole) -> int:
    """The number of rows of the largest site."""
    most = 0
    for i in range(len(first) - 1):
        most = max(most, first[i + 1] - first[i])
    return most


@compiled
def turn(Z: Array, Zt: Array) -> None:
    """Write the transpose of Z into Zt."""
    for n in range(len(Z)):
        for j in range(len(Zt)):
            Zt[j, n] = Z[n, j]


@compiled
def minimise_sites(
    law: LossCode, Z: Array, offset: Array, first: Whole, facts: Array, b: Array, f: Array, bound: Array
) -> None:
    """Solve all repeats of all sites: replace the starting points in f, (sites, repeats, d), by minimisers.

    Site i has the rows first[i] to first[i + 1] - 1 of Z and offset. facts[i] has six numbers: the weight,
    max ||x||, max |offset|, the largest number of entries in a row, m, and the target for the gradient's
    norm. On return, `bound`, (sites, repeats), has upper bounds on the norms of the gradients.
    """
    sites, repeats, d = f.shape
    most = most_rows(first)
    side = min(most, d)
    A, K, turned = np.zeros((side, side)), np.zeros((side, side)), np.empty(most * d)
    work, room, ones = np.empty((5, most)), np.empty((3, d)), np.ones(d)
    for i in range(sites):
        start, stop = first[i], first[i + 1]
        Zt = turned[: (stop - start) * d].reshape((d, stop - start))
        turn(Z[start:stop], Zt)
        if stop - start < d:
            for k in range(side):
                for j in range(side):
                    K[k, j] = 0.0
            add_gram(K, Zt, ones)
        weight, norm, far, _, m, goal = facts[i]
        rows = Matrices(Z[start:stop], Zt, K, A, offset[start:stop], weight, norm, far)
        for r in range(repeats):
            bound[i, r] = _minimise(law, rows, m, b[i, r], f[i, r], goal, work, room)


@compiled
def measure_sites(
    law: LossCode,
    classify: bool,
    Z: Array,
    offset: Array,
    first: Whole,
    f: Array,
    losses: Array,
    qualities: Array,
) -> None:
    """Fill `losses` with the mean losses at f, and `qualities` with accuracies or mean absolute errors."""
    sites, repeats, d = f.shape
    z, turned = np.empty(most_rows(first)), np.empty(most_rows(first) * d)
    for i in range(sites):
        start, stop = first[i], first[i + 1]
        count = stop - start
        Zt = turned[: count * d].reshape((d, count))
        turn(Z[start:stop], Zt)
        for r in range(repeats):
            margins(Zt, offset[start:stop], f[i, r], z[:count])
            losses[i, r] = total_value(law, z[:count]) / count
            qualities[i, r] = mean_quality(z[:count], classify)
