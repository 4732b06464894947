"""Prove upper bounds on V(w) at given w, for a loss: python tools/prove_widening.py logistic 1.5

They are the nodes in taciturn.privacy.accounting.widening, which defines V and w. Let the slopes p of a loss
be in [lo, 1], with curvature at most S(p) <= 1 at slope p. For t >= 0, let pi(t) be the largest
E(pZ - p' - t)+ over all p(z) in [lo, 1] that fall (or, for V-, rise) with |p'| <= w S(p), where Z is normal.
With v = |p'|, nu the normal density and B(z, p) = E[(pZ - t)+; Z > z],

    E(pZ - p' - t)+ = B(-inf, p(-inf)) + integral of ( nu [(zp +- v - t)+ - (zp - t)+] -+ v B_p ) dz,

with the upper signs for a falling p. The bracket is convex in v and 0 at v = 0, so per unit of |dp| = v dz it
is largest at v = w S(p). So a path p(z) is given by the z at which it passes each slope p. The slopes are
divided into cells, and the path passes every cell once. With dp = S du, passing a cell takes a range of z of
at least (width of the cell in u) / w. The cells are chosen so that this range is one bin of z. The integrand
is bounded from above in every cell and bin, and dynamic programming finds the best path. pi is convex, so
chords between its values lie above it. Beyond the last t, a closed form holds, with g(t) = E(Z - t)+:

    logistic     t >= 4w                      pi(t) <= g(t)         pointwise: p (z + 4 w (1-p)) <= max(z, 4w)
    log-cosh     falling, t >= 2w             pi(t) <= g(t)         likewise, on one side of 0 only
    one-sided    t >= w V / (V - 1)           pi(t) <= g(t - w)     pZ + v <= Z+ + w
    two-sided    2 g(t - w) <= V g(t / V)     pi(t) <= 2 g(t - w)   w = 0 if p rises; the ratio grows with t

A one-sided p that rises needs only V = 1: pZ - p' <= max(Z, 0). The computed sums have at most 10^5 numbers
of similar size, so their relative rounding error is below 1e-11. The bounds include this error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

EXACT_BELOW = 1.0 - 1e-11
SHAPES = ("logistic", "one-sided", "log-cosh", "any")
_CUT = 1e-7  # slopes this close to a zero of the curvature are one cell, which may take no z


def nu(z):
    return np.exp(-(np.minimum(np.abs(z), 39.0) ** 2) / 2) / np.sqrt(2 * np.pi)


def g(t):
    return nu(t) - t * ndtr(-t)


@dataclass(frozen=True)
class Cells:
    """The cells of slopes, from 1 down to lo.

    high, low : the two ends of each cell.   fall : the largest w S(p) in it.
    timed : whether passing the cell takes at least one bin of z.
    """

    high: np.ndarray
    low: np.ndarray
    fall: np.ndarray
    timed: np.ndarray

    @classmethod
    def of(cls, shape, w, step):
        lo = 0.0 if shape in ("logistic", "one-sided") else -1.0
        if shape == "logistic":
            far = np.log(1 / _CUT) / 4
            p = 1 / (1 + np.exp(-4 * np.arange(far, -far, -w * step)))
        elif shape == "log-cosh":
            far = np.arctanh(1 - _CUT)
            p = np.tanh(np.arange(far, -far, -w * step))
        else:
            p = np.arange(1.0, lo, -w * step)[1:]
        ends = np.concatenate([[1.0], p[p > lo], [lo]])
        high, low = ends[:-1], ends[1:]
        timed = np.ones(len(high), dtype=bool)
        timed[0], timed[-1] = shape in ("one-sided", "any"), False
        return cls(high, low, w * _curvature(shape, high, low), timed)


def _curvature(shape, high, low):
    """The largest S(p) in a cell."""
    if shape in ("one-sided", "any"):
        return np.ones_like(high)
    peak = 0.5 if shape == "logistic" else 0.0
    p = np.clip(peak, low, high)
    return 4 * p * (1 - p) if shape == "logistic" else 1 - p**2


def _gain(cells, j, t1, t2, falling, a, b):
    """The largest integrand per |dp| in cell j, for each bin [a, b] of z and any t in [t1, t2]."""
    high, low, fall = cells.high[j], cells.low[j], cells.fall[j]
    corners = np.stack([a * high, b * high, a * low, b * low])
    ends = nu(a), nu(b)
    most = np.where(a * b < 0, nu(0.0), np.maximum(*ends))
    if not falling:
        spared = np.clip((corners.min(axis=0) - t2) / fall, 0, 1)
        return -spared * np.minimum(*ends) + _slope_of_staying(high, low, t1, t2, a, b)[1]
    bracket = np.clip(1 - (t1 - corners.max(axis=0)) / fall, 0, 1)
    gain = most * bracket - _slope_of_staying(high, low, t1, t2, a, b)[0]
    if low > 0:
        if low**2 >= t2 * fall:  # nu(z) (1 - (t - zp) / v) grows with z up to nu(t/p), where it meets B_p
            gain = np.minimum(gain, 0.0)
        gain = np.where(a * low >= t2, 0.0, gain)  # the bracket is 1 and B_p = nu(z)
    return gain


def _slope_of_staying(high, low, t1, t2, a, b):
    """Bounds on B_p: nu(max(z, t/p)) for p > 0; nu(z) - nu(t/p) where z < t/p, else 0, for p < 0."""
    if low >= 0:
        far = t2 / low if low > 0 else np.inf
        return nu(np.maximum(b, far)), nu(np.maximum(a, t1 / high))
    if high > 0:
        return np.full_like(a, -nu(t1 / low)), np.full_like(a, nu(t1 / high))
    least = np.where(a < t1 / low, np.minimum(nu(a) - nu(t1 / low), 0.0), 0.0)
    if high == 0:
        return least, np.zeros_like(a)
    return least, np.where(b < t2 / high, np.minimum(nu(b) - nu(t2 / high), 0.0), 0.0)


def _staying(p, t):
    """B(-inf, p)"""
    return abs(p) * g(t / abs(p)) if p else 0.0


def excess(shape, falling, w, t1, t2=None, step=0.005, reach=12.0):
    """An upper bound on pi(t1); or, for one-sided shapes, on pi(t) - g(t) for every t in [t1, t2]."""
    relative, t2 = t2 is not None, t1 if t2 is None else t2
    cells = Cells.of(shape, w, step)
    z = np.arange(-10.0 if cells.low[-1] >= 0 else -reach, reach + step / 2, step)
    a, b = z[:-1], z[1:]
    best = 0.0 if relative else max(_staying(1.0, t1), _staying(cells.low[-1], t1))
    value, skipped = np.full(a.shape, -np.inf), 0.0
    order = range(len(cells.high)) if falling else range(len(cells.high) - 1, -1, -1)
    for j in order:
        high, low = cells.high[j], cells.low[j]
        start = skipped if relative else max(_staying(high, t1), _staying(low, t1))
        if relative and low > 0:
            skipped -= nu(t2 / low) * (high - low)
        value = np.maximum(value, start)
        gain = _gain(cells, j, t1, t2, falling, a, b) * (high - low)
        before = np.maximum.accumulate(value)  # the best value with z in this bin or in a bin to its left
        passed = np.maximum.accumulate(gain + before)
        if cells.timed[j]:  # passing the cell takes at least one bin
            left = np.concatenate([[-np.inf], before[:-1]])
            passed = np.maximum(np.concatenate([[-np.inf], passed[:-1]]), gain + left)
        value = passed
        best = max(best, float(value.max()))
    return best + 1e-11 if relative else best / EXACT_BELOW


def least_width(excess_at, t):
    """The least V >= 1 with V g(t/V) - g(t) >= `excess_at`; the left side falls with t."""
    low, high = 1.0, 2.0
    while high * g(t / high) - g(t) < excess_at:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle * g(t / middle) - g(t) >= excess_at else (middle, high)
    return high


def chord_width(t, pi, least):
    """The least V >= `least` whose V g(t/V) is above the chord of two values of pi."""
    slope = (pi[1] - pi[0]) / (t[1] - t[0])

    def above(V):
        at = np.clip(-V * ndtri(np.clip(-slope, 1e-300, 1)), *t)  # where the two are nearest
        return pi[0] + slope * (at - t[0]) <= V * g(at / V)

    if above(least):
        return least
    low, high = least, least + 0.01
    while not above(high):
        high = 1 + 2 * (high - 1)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return high


def _done(shape, falling, w, t, V):
    """Whether the closed form is valid from t on."""
    if shape == "logistic":
        return t >= 4 * w
    if shape == "one-sided":
        return t / V <= t - w
    if shape == "log-cosh" and falling:
        return t >= 2 * w
    lag = w if falling else 0.0
    return t / V <= t - lag and 2 * g(t - lag) <= V * g(t / V)


def width(shape, falling, w, step=0.005, spacing=0.02):
    """A proven V+ (falling) or V- (rising)."""
    if not falling and shape in ("logistic", "one-sided"):
        return 1.0
    V = {"logistic": 1.0, "one-sided": 1 + w / 25, "log-cosh": 1.0 if falling else 1.0012}.get(
        shape, 1 + w / 20 if falling else 1.0012
    )
    if shape == "logistic" and w <= 0.9:  # no chords, because V - 1 is almost 0
        starts = np.arange(0.0, 4 * w, spacing)
        return max(least_width(excess(shape, True, w, t, t + spacing, step), t + spacing) for t in starts)
    t, pi = 0.0, excess(shape, falling, w, 0.0, step=step)
    while not _done(shape, falling, w, t, V):
        if t > 30:
            raise RuntimeError(f"no convergence for {shape} at w = {w:g}, V = {V:.4g}")
        new = t + (2 * spacing if t < 3 else min(0.1, 0.25 / t))
        value = excess(shape, falling, w, new, step=step, reach=min(max(12.0, new + 9), 37.0))
        V = max(V, chord_width((t, new), (pi, value), V))
        t, pi = new, value
    return V


if __name__ == "__main__":
    for rate in map(float, sys.argv[2:]):
        fineness = 0.02 if rate < 0.2 else 0.01 if rate < 0.4 else 0.0025
        both = [width(sys.argv[1], falling, rate, fineness) for falling in (True, False)]
        print(f"({rate:g}, {sum(both) / 2:.8f}),  # {both[0]:.6f} falling, {both[1]:.6f} rising", flush=True)
