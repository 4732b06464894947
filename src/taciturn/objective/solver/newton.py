"""Damped Newton on one repeat: globally convergent, by a line search on slopes.

Along a direction p the slope of phi grows, from -a at step 0. With bend = p' M p >= sup of phi'' along p, the
minimum along p lies at least a^2 / (2 bend) below the start, and a step s with slope(s) <= 0 is before it; a
step beyond loses at most s slope(s) of that. So

    slope(s) >= -a/2   and   s slope(s) <= a^2 / (4 bend)

proves a fall of at least a^2 / (8 bend) without a single function value, and bisection finds such a step.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from ...core.types import Array
from .gradient_evaluator import GradientEvaluator
from .preconditioner import LARGEST_MATRIX, positive_inverse

_TRIALS = 100  # steps along one direction
_PATIENCE = 3  # Newton steps without a smaller gradient, after which floats are at their end,
_NOISE = 10.0  # where it is below this many times the doubt about it


def newton(passes: GradientEvaluator, start: Array, target: float, *, steps: int = 200) -> Array:
    """f with ||gradient|| <= target for a single repeat, or the best that floats give; `start` is (1, d)."""
    f = start
    best, least, idle = f, np.inf, 0
    for _ in range(steps):
        g = passes.gradient(f)[0]
        size = float(np.linalg.norm(g))
        if size < least:
            best, least, idle = f, size, 0
        elif size <= _NOISE * float(passes.doubt(f)[0]):
            idle += 1
        if least <= target or idle > _PATIENCE:
            break
        p = _direction(passes, f, g)
        f = f + _step(passes, f, p, g) * p
    return best


def newton_step(passes: GradientEvaluator, f: Array) -> Array:
    """-H^-1 gradient at f, (1, d): about how far the minimiser is, where phi is nearly quadratic."""
    return _direction(passes, f, passes.gradient(f)[0])


def _direction(passes: GradientEvaluator, f: Array, g: Array) -> Array:
    """-H^-1 g: by Cholesky where H is small, else by conjugate gradients with a diagonal preconditioner."""
    weights = passes.mean_weights(f)
    diagonal = passes.mean_diagonal(f)
    if f.shape[1] <= LARGEST_MATRIX:
        H = np.diag(diagonal)
        for block, w in zip(passes.blocks, weights, strict=True):
            H += block.gram(w)
        return _descent(-_solve_system(H, g)[None, :], g, diagonal)
    scale = diagonal.copy()
    for block, w in zip(passes.blocks, weights, strict=True):
        scale += block.squares(w)

    def curve(v: Array) -> Array:
        total = diagonal * v
        for block, w in zip(passes.blocks, weights, strict=True):
            total += block.ZT @ (w * (block.Z @ v))
        return np.asarray(total)

    d = len(g)
    operator = LinearOperator((d, d), matvec=curve, dtype=np.float64)
    scaling = LinearOperator((d, d), matvec=lambda v: v / scale, dtype=np.float64)
    p, _ = cg(operator, -g, rtol=1e-3, maxiter=2000, M=scaling)
    return _descent(p[None, :], g, diagonal)


def _solve_system(H: Array, g: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(H, g))
    except np.linalg.LinAlgError:
        return np.asarray(positive_inverse(H) @ g)


def _descent(p: Array, g: Array, diagonal: Array) -> Array:
    """p if it descends; rounding can spoil it where H is nearly singular."""
    return p if np.all(np.isfinite(p)) and float(p[0] @ g) < 0.0 else -(g / diagonal)[None, :]


def _step(passes: GradientEvaluator, f: Array, p: Array, g: Array) -> float:
    """A step along p that provably lowers phi, found by slopes."""
    a = -float(g @ p[0])
    z = [block.margins(f.T)[:, 0] for block in passes.blocks]
    u = [np.asarray(block.Z @ p[0]) for block in passes.blocks]
    objective = passes.objective
    c1 = objective.loss.curvature_bound
    bend = sum(b.weight * c1 * float(v @ v) for b, v in zip(passes.blocks, u, strict=True))
    bend += (objective.rho * objective.regularizer.curvature_bound + passes.curvature) * float(p[0] @ p[0])

    def slope(s: float) -> float:
        moved = f + s * p
        smooth = passes.with_smooth_terms(moved, np.zeros_like(moved))[0] @ p[0]
        for block, at, v in zip(passes.blocks, z, u, strict=True):
            smooth += block.weight * float(objective.loss.slope(at + s * v) @ v)
        return float(smooth)

    low, high, s = 0.0, np.inf, 1.0
    for _ in range(_TRIALS):
        rise = slope(s)
        if rise < -0.5 * a:
            low = s
        elif s * rise > a * a / (4.0 * bend):
            high = s
        else:
            return s
        s = 2.0 * s if high == np.inf else 0.5 * (low + high)
    return low if low > 0.0 else s
