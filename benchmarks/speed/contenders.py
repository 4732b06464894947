"""The alternatives to a round: (a) SciPy's L-BFGS-B, (b) a simple Newton method, (c) bare matrix products.

Each solves the tasks of recorded rounds from the same warm start. None of them draws noise, updates duals or
computes losses, so the comparison favours them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from taciturn.objective.blocks import row_blocks

from .workload import TOL, Task

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]


def by_scipy(task: Task, *, to_the_end: bool = False) -> float:
    """(a) The loop that a researcher would write: L-BFGS-B for every repeat.

    Its line search compares values of phi, which are too inexact to reach `TOL`, so it stops early. With
    `to_the_end` it continues with phi(f) - phi(f where it stopped), computed row by row. Returns the largest
    ||gradient|| / m.
    """
    m = task.strong
    options = {"ftol": 0.0, "gtol": m * TOL / np.sqrt(task.X.shape[1]), "maxiter": 10_000, "maxfun": 10_000}
    worst = 0.0
    for linear, f in zip(task.linear, task.start, strict=True):
        found = minimize(_phi(task, linear), f, jac=True, method="L-BFGS-B", options=options)
        f, left = found.x, float(np.linalg.norm(found.jac))
        while to_the_end and left > m * TOL:
            change = _phi_from(task, linear, f)
            found = minimize(change, np.zeros_like(f), jac=True, method="L-BFGS-B", options=options)
            f, before, left = f + found.x, left, float(np.linalg.norm(found.jac))
            if left > 0.5 * before:
                break
        worst = max(worst, left / m)
    return worst


def _phi(task: Task, linear: Array) -> Function:
    X, y, weight, m = task.X, task.y, task.weight, task.strong

    def value_and_gradient(f: Array) -> tuple[float, Array]:
        z = y * (X @ f)
        value = weight * np.logaddexp(0.0, -z).sum() + 0.5 * m * (f @ f) - linear @ f
        return value, m * f - linear - weight * (X.T @ (y * expit(-z)))

    return value_and_gradient


def _phi_from(task: Task, linear: Array, start: Array) -> Function:
    """phi(start + s) - phi(start); the change of each row is computed by log1p and expm1."""
    X, y, weight, m = task.X, task.y, task.weight, task.strong
    z = y * (X @ start)
    p = expit(-z)

    def value_and_gradient(s: Array) -> tuple[float, Array]:
        u = y * (X @ s)
        value = weight * np.log1p(np.expm1(-u) * p).sum() + 0.5 * m * (s @ s) + (m * start - linear) @ s
        return value, m * (start + s) - linear - weight * (X.T @ (y * expit(-z - u)))

    return value_and_gradient


def by_newton(task: Task) -> float:
    """(b) Newton's method for every repeat: a step forms the Hessian by one symmetric product and solves."""
    Z, weight, m = task.Z, task.weight, task.strong
    scratch, eye, worst = np.empty_like(Z), np.eye(Z.shape[1]), 0.0
    for linear, f in zip(task.linear, task.start, strict=True):
        least, step = np.inf, np.zeros_like(f)
        for _ in range(60):
            slope = 1.0 / (1.0 + np.exp(Z @ f))
            g = m * f - linear - weight * (slope @ Z)
            size = float(np.linalg.norm(g))
            if size <= m * TOL:
                break
            if size > 2.0 * least:  # too far: halve the step
                step = 0.5 * step
                f = f - step
                continue
            least = size
            np.multiply(Z, np.sqrt(weight * slope * (1.0 - slope))[:, None], out=scratch)
            step = np.linalg.solve(scratch.T @ scratch + m * eye, -g)
            f = f + step
        worst = max(worst, size / m)
    return worst


def by_bare_products(task: Task) -> float:
    """(c) Only the matrix products that our solver did for this task."""
    blocks = row_blocks(task.objective.parts, len(task.linear))
    Ft = np.ascontiguousarray(task.start.T)
    for _ in range(task.solution.passes):
        for block in blocks:
            block.ZT @ (block.Z @ Ft)
    for _ in range(task.solution.rebuilds):
        for block in blocks:
            block.gram(np.ones(block.Z.shape[0]))
    return 0.0
