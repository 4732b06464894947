"""Cover: what a real run needs and its method does not say: output noise, a grid, a clip, a tolerance.

All of it follows from public settings, and is certain to be enough before the first round: see `admm.reach`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .. import checks
from ..admm.methods import Method, PrimalPerturbation, Release
from ..admm.reach import check_reach, least_tol, longest_noise
from ..admm.tables import Tables
from ..graph import Graph
from ..objective.problem import Problem
from ..privacy.noise import GaussianNoise, NormNoise

_WIDE = 1e4  # output noise in units of tol: what it covers then costs q / 5e7, or 2e-4 pure, a round
_GRID = 2.0**-34  # so fine that rounding before the noise costs next to nothing
_LARGEST = 16  # clip = 2^16, unless the noise needs more room
_STEPS = 2.0**-50  # of the clip: whole numbers of steps are exact in floats
_TOLS = tuple(10.0**-k for k in range(9, 2, -1))


def cover_method(
    problem: Problem, graph: Graph, method: Method, *, rounds: int, tol: float | None
) -> tuple[Method, float]:
    """The method with what it does not say itself, and `tol`, chosen where it is None.

    A little noise after the solve, of the method's own kind: a solver that stops within `tol` of the
    minimiser is not the minimiser, and no guarantee survives that without it. A grid for what is released:
    the low bits of a float tell more than the real number that it stands for. A clip, and a `tol` that floats
    certify for every message within it.
    """
    if tol is not None:
        checks.positive("tol", tol)
    if not isinstance(method, Release):
        return method, _TOLS[0] if tol is None else tol
    tables = method.tables(problem.n, rounds)
    clip, tol = _reach(problem, graph, tables, tol)
    needed: dict[str, Any] = {"clip": clip}
    if method.output_noise is None and not isinstance(method, PrimalPerturbation):
        gaussian = isinstance(tables.noise, GaussianNoise)
        needed["output_noise"] = GaussianNoise(_WIDE * tol) if gaussian else NormNoise(1 / (_WIDE * tol))
    if method.grid is None:
        needed["grid"] = max(_GRID, clip * _STEPS)
    return replace(method, **needed), tol


def _reach(problem: Problem, graph: Graph, tables: Tables, tol: float | None) -> tuple[float, float]:
    """(clip, tol): the method's own clip, or the largest that leaves `tol` within reach."""
    least = {} if tables.clip is None else {tables.clip: _least(problem, graph, tables, tables.clip)}
    if tables.clip is None:
        room = _room(tables, problem.dimension)
        least = {
            2.0**k: _least(problem, graph, tables, 2.0**k) for k in range(max(_LARGEST, room), room - 1, -1)
        }
    for wanted in _TOLS if tol is None else (tol,):
        for clip, needed in least.items():
            if needed <= wanted:
                return clip, wanted
    smallest = min(least)
    wanted = _TOLS[-1] if tol is None else tol
    check_reach(wanted, least[smallest], clip=smallest, where="some site")
    return smallest, wanted


def _least(problem: Problem, graph: Graph, tables: Tables, clip: float) -> float:
    """The smallest `tol` within reach at every site."""
    rho, R = problem.regularization / problem.n, problem.regularizer
    return max(
        least_tol(
            tables.site(i),
            problem.loss,
            C=problem.C,
            strong=rho * R.strong_convexity,
            smooth=rho * R.curvature_bound,
            samples=int(problem.samples[i]),
            degree=int(graph.degrees[i]),
            dimension=problem.dimension,
            clip=clip,
        )
        for i in range(problem.n)
    )


def _room(tables: Tables, d: int) -> int:
    """k, where 2^k leaves room for what noise does to one coordinate."""
    longest = max(float(np.max(longest_noise(tables.site(i), d))) for i in range(tables.sites))
    return max(6, math.ceil(math.log2(8 * longest / math.sqrt(d))))
