"""Compiled solver for small sites with sparse rows: Newton with conjugate gradients, four repeats at a time.

    minimise phi(f) = weight sum_n L(offset_n + Z_n f) + (m/2) ||f||^2 - <b, f>

Here f is the model, Z_n is row n, and L is the loss. m is called `strong` in gradient_evaluator.py, and b is
called `linear`. A repeat is one of several independent runs, each with its own b. Each repeat has a lane,
which is one column of the arrays. A lane that is done keeps its model while the others continue. The
arguments `work` and `room` are memory for intermediate results.

Conjugate gradients that stop early still give a descent direction. So the first directions are only
approximate; the faster the gradient decreases, the more exact the next direction is. The step length comes
from the line search of `newton.py`, which uses only slopes and guarantees that phi decreases.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ....core.types import Array
from ....kernels.arithmetic import compiled
from .lanes import LANES, SparseRows, add_scaled, backward, dots, fill_lanes, forward, margins, sparse_rows
from .slopes import LossCode, curvatures, gradient_doubt, mean_quality, slopes, total_value

_UP = 1.0 + 1e-9  # this factor covers the relative rounding errors of a norm and of m
_STEPS = 60  # after this many Newton steps the general solver takes over
_TRIALS = 60  # the most trial steps along one direction
_PRODUCTS = 150  # the most products with the Hessian for one direction
# Stop if the gradient's norm has not halved for more than _PATIENCE steps, and is at most _NOISE times the
# bound on the gradient's rounding error.
_NOISE, _PATIENCE = 10.0, 3
_LOOSE = 0.1  # the largest ||H p + g|| / ||g|| that is allowed for a direction p


@compiled
def _directions(
    rows: SparseRows, m: float, h: Array, G: Array, need: Array, P: Array, u: Array, room: Array, work: Array
) -> None:
    """Compute P ~ -H^-1 G with ||H P + G||^2 <= need in every lane, and u = Z P; h is weight L''."""
    Q, left, HQ, y, v = room[0], room[1], room[2], work[0], work[1]
    rest, new, bend, by = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    P[:] = 0.0
    u[:] = 0.0
    dots(G, G, rest)
    for j in range(len(G)):
        for r in range(LANES):
            left[j, r] = -G[j, r] if rest[r] > need[r] else 0.0
            Q[j, r] = left[j, r]
    for _ in range(_PRODUCTS):
        if not np.any(rest > need):
            return
        forward(rows, Q, y)
        for n in range(len(y)):
            for r in range(LANES):
                v[n, r] = h[n, r] * y[n, r]
        backward(rows, v, HQ)
        for j in range(len(G)):
            for r in range(LANES):
                HQ[j, r] += m * Q[j, r]
        dots(Q, HQ, bend)
        for r in range(LANES):
            by[r] = rest[r] / bend[r] if rest[r] > need[r] and bend[r] > 0.0 else 0.0
        add_scaled(P, by, Q)
        add_scaled(u, by, y)
        add_scaled(left, -by, HQ)
        dots(left, left, new)
        for r in range(LANES):
            going = by[r] > 0.0 and new[r] > need[r]
            by[r] = new[r] / rest[r] if going else -1.0
            rest[r] = new[r] if going else 0.0
        for j in range(len(G)):
            for r in range(LANES):
                Q[j, r] = left[j, r] + by[r] * Q[j, r] if by[r] >= 0.0 else 0.0


@compiled
def _steps(
    law: LossCode,
    weight: float,
    a: Array,
    first: Array,
    rise: Array,
    z: Array,
    u: Array,
    work: Array,
    at: Array,
) -> None:
    """Set at[lane] to a step length that decreases phi, as `kernel._step` does.

    If a[lane] is not positive, the lane's direction is not a descent direction, and at[lane] is set to 0.
    """
    t, s = work[0], work[1]
    low, high, size, slope = np.zeros(LANES), np.full(LANES, np.inf), np.empty(LANES), np.empty(LANES)
    open_ = a > 0.0
    dots(u, u, size)
    for r in range(LANES):
        at[r] = 1.0 if open_[r] else 0.0
    for _ in range(_TRIALS):
        if not np.any(open_):
            return
        for n in range(len(z)):
            for r in range(LANES):
                t[n, r] = z[n, r] + at[r] * u[n, r]
        slopes(law, t.reshape(t.size), s.reshape(s.size))
        dots(s, u, slope)
        for r in range(LANES):
            if not open_[r]:
                continue
            here = first[r] + at[r] * rise[r] + weight * slope[r]
            if here < -0.5 * a[r]:
                low[r] = at[r]
            elif at[r] * here > a[r] * a[r] / (4.0 * (weight * law.bend * size[r] + rise[r])):
                high[r] = at[r]
            else:
                open_[r] = False
                continue
            at[r] = 2.0 * at[r] if high[r] == np.inf else 0.5 * (low[r] + high[r])
    for r in range(LANES):
        at[r] = low[r] if open_[r] and low[r] > 0.0 else at[r]


@compiled
def _gradients(
    law: LossCode, rows: SparseRows, m: float, B: Array, F: Array, z: Array, s: Array, G: Array
) -> None:
    """Compute z, s = L'(z) and G = grad phi at the models F, in every lane."""
    margins(rows, F, z)
    slopes(law, z.reshape(z.size), s.reshape(s.size))
    backward(rows, s, G)
    for j in range(len(G)):
        for r in range(LANES):
            G[j, r] = rows.weight * G[j, r] + (m * F[j, r] - B[j, r])


@compiled
def _move(
    law: LossCode, rows: SparseRows, m: float, B: Array, F: Array, need: Array, room: Array, work: Array
) -> None:
    """Make one Newton step in every lane whose `need` is finite; room[3] holds the gradients at F."""
    G, P, z, u, s, h = room[3], room[4], work[2], work[3], work[4], work[5]
    curvatures(law, z.reshape(z.size), s.reshape(s.size), h.reshape(h.size))
    for n in range(len(h)):
        for r in range(LANES):
            h[n, r] *= rows.weight
    _directions(rows, m, h, G, need, P, u, room, work)
    a, first, pull, rise, at = (
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
    )
    dots(G, P, a)
    dots(F, P, first)
    dots(B, P, pull)
    dots(P, P, rise)
    _steps(law, rows.weight, -a, m * first - pull, m * rise, z, u, work, at)
    add_scaled(F, at, P)


@compiled
def _minimise(
    law: LossCode, rows: SparseRows, m: float, B: Array, F: Array, goal: float, bound: Array
) -> None:
    """Minimise phi in every lane: replace the starting points in F, (d, lanes), by the best models found.

    On return, bound[lane] is an upper bound on the gradient's norm at the lane's model.
    """
    d, count = len(F), len(rows.pointers) - 1
    sizes = rows.weight, rows.norm, rows.far, rows.width + 1.0
    room, work, best = np.zeros((5, d, LANES)), np.zeros((6, count, LANES)), F.copy()
    size, length, pull, need = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    least, before, idle = np.full(LANES, np.inf), np.full(LANES, np.inf), np.zeros(LANES)
    done = np.zeros(LANES, dtype=np.bool_)
    dots(B, B, pull)
    bound[:] = np.inf
    for _ in range(_STEPS):
        _gradients(law, rows, m, B, F, work[2], work[4], room[3])
        dots(room[3], room[3], size)
        dots(F, F, length)
        for r in range(LANES):
            need[r] = np.inf
            if done[r]:
                continue
            now = math.sqrt(size[r])
            doubt = gradient_doubt(law, sizes, count, m, math.sqrt(length[r]), math.sqrt(pull[r]))
            idle[r] = 0.0 if now < 0.5 * least[r] else idle[r] + 1.0
            if now < least[r]:
                least[r], bound[r] = now, _UP * (now + doubt)
                for j in range(d):
                    best[j, r] = F[j, r]
            stuck = idle[r] > _PATIENCE and now <= _NOISE * doubt
            done[r] = bound[r] <= goal or stuck or not now < np.inf
            if not done[r]:
                fall = now / before[r]
                need[r] = (max(min(_LOOSE, 0.9 * fall * fall), 0.3 * goal / now) * now) ** 2
                before[r] = now
        if np.all(done):
            break
        _move(law, rows, m, B, F, need, room, work)
    for j in range(d):
        for r in range(LANES):
            F[j, r] = best[j, r]


@compiled
def minimise_sparse_sites(
    law: LossCode,
    entries: Array,
    columns: NDArray[np.int32],
    pointers: NDArray[np.int64],
    offset: Array,
    first: NDArray[np.int64],
    facts: Array,
    b: Array,
    f: Array,
    bound: Array,
) -> None:
    """Solve all repeats of all sites, as `kernel.minimise_sites` does. Row n begins at entry pointers[n]."""
    sites, repeats, d = f.shape
    F, B, bounds = np.empty((d, LANES)), np.empty((d, LANES)), np.empty(LANES)
    for i in range(sites):
        start, stop = first[i], first[i + 1]
        weight, norm, far, width, m, goal = facts[i]
        near, numbers = pointers[start : stop + 1], (weight, norm, far, width)
        rows = sparse_rows(entries, columns, near, offset[start:stop], numbers)
        for r in range(0, repeats, LANES):
            fill_lanes(f[i], r, F)
            fill_lanes(b[i], r, B)
            _minimise(law, rows, m, B, F, goal, bounds)
            for k in range(min(LANES, repeats - r)):
                bound[i, r + k] = bounds[k]
                for j in range(d):
                    f[i, r + k, j] = F[j, k]


@compiled
def measure_sparse_sites(
    law: LossCode,
    classify: bool,
    entries: Array,
    columns: NDArray[np.int32],
    pointers: NDArray[np.int64],
    offset: Array,
    first: NDArray[np.int64],
    f: Array,
    losses: Array,
    qualities: Array,
) -> None:
    """Fill `losses` with the mean losses at f, and `qualities` with accuracies or mean absolute errors."""
    sites, repeats, d = f.shape
    F = np.empty((d, LANES))
    for i in range(sites):
        start, stop = first[i], first[i + 1]
        near = pointers[start : stop + 1]
        rows = sparse_rows(entries, columns, near, offset[start:stop], (1.0, 1.0, 0.0, 0.0))
        z = np.empty((stop - start, LANES))
        for r in range(0, repeats, LANES):
            fill_lanes(f[i], r, F)
            margins(rows, F, z)
            for k in range(min(LANES, repeats - r)):
                one = z[:, k].copy()
                losses[i, r + k] = total_value(law, one) / len(one)
                qualities[i, r + k] = mean_quality(one, classify)
