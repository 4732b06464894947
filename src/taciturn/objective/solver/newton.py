"""A globally convergent damped Newton method, which minimises phi (see gradient_evaluator.py) in one repeat.

The line search uses slopes of phi, not values.

Along a descent direction p, the slope of phi is -a < 0 at step 0, and it increases with the step. Let bend be
an upper bound on phi'' along p: bend = p' M p, where M is an upper bound on the Hessian. Then the minimum of
phi along p is at least a^2 / (2 bend) below phi at step 0. A step s with slope(s) <= 0 does not go past the
minimum. A step past the minimum loses at most s slope(s) of the decrease. So a step s with

    slope(s) >= -a/2   and   s slope(s) <= a^2 / (4 bend)

decreases phi by at least a^2 / (8 bend). Bisection finds a step with both properties.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from ...core.types import Array
from .gradient_evaluator import GradientEvaluator
from .preconditioner import LARGEST_MATRIX, positive_inverse

_TRIALS = 100  # the most trial steps along one direction
_PATIENCE = 3  # stop after more than this many idle steps, which do not lower the gradient's norm
_NOISE = 10.0  # a step counts as idle only if the norm is at most this many times its error bound


def newton(phi: GradientEvaluator, start: Array, target: float, *, steps: int = 200) -> Array:
    """A model f, (1, d), with ||gradient|| <= target, unless `steps` or rounding errors prevent this."""
    f = start
    best, least, idle = f, np.inf, 0
    for _ in range(steps):
        g = phi.gradient(f)[0]
        size = float(np.linalg.norm(g))
        if size < least:
            best, least, idle = f, size, 0
        elif size <= _NOISE * float(phi.doubt(f)[0]):
            idle += 1
        if least <= target or idle > _PATIENCE:
            break
        p = _direction(phi, f, g)
        f = f + _step(phi, f, p, g) * p
    return best


def newton_step(phi: GradientEvaluator, f: Array) -> Array:
    """The Newton step -H^-1 gradient, (1, d). Near the minimiser, it leads almost to the minimiser."""
    return _direction(phi, f, phi.gradient(f)[0])


def _direction(phi: GradientEvaluator, f: Array, g: Array) -> Array:
    """-H^-1 g: a direct solve if H is small, else conjugate gradients with a diagonal preconditioner."""
    weights = phi.mean_weights(f)
    diagonal = phi.mean_diagonal(f)
    if f.shape[1] <= LARGEST_MATRIX:
        H = np.diag(diagonal)
        for block, w in zip(phi.blocks, weights, strict=True):
            H += block.gram(w)
        return _descent(-_solve_system(H, g)[None, :], g, diagonal)
    scale = diagonal.copy()
    for block, w in zip(phi.blocks, weights, strict=True):
        scale += block.squares(w)

    def curve(v: Array) -> Array:
        total = diagonal * v
        for block, w in zip(phi.blocks, weights, strict=True):
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
    """p if it is a descent direction, else -g / diagonal. If H is nearly singular, rounding can spoil p."""
    return p if np.all(np.isfinite(p)) and float(p[0] @ g) < 0.0 else -(g / diagonal)[None, :]


def _step(phi: GradientEvaluator, f: Array, p: Array, g: Array) -> float:
    """The length of a step along p that provably decreases phi (see the top of this file)."""
    a = -float(g @ p[0])
    z = [block.margins(f.T)[:, 0] for block in phi.blocks]
    u = [np.asarray(block.Z @ p[0]) for block in phi.blocks]
    objective = phi.objective
    c1 = objective.loss.curvature_bound
    bend = sum(b.weight * c1 * float(v @ v) for b, v in zip(phi.blocks, u, strict=True))
    bend += (objective.rho * objective.regularizer.curvature_bound + phi.curvature) * float(p[0] @ p[0])

    def slope(s: float) -> float:
        moved = f + s * p
        smooth = phi.with_smooth_terms(moved, np.zeros_like(moved))[0] @ p[0]
        for block, at, v in zip(phi.blocks, z, u, strict=True):
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
