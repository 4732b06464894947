"""What a run will cost, before it is run: every schedule is fixed in advance, so every charge is known."""

from __future__ import annotations

from collections.abc import Callable

from ...core import checks
from ...core.errors import ParameterError
from ...core.formatting import format_cost, format_given
from ...graph import Graph
from ...methods.admm.perturbations import Method
from ...objective.problem import Problem
from ...privacy.certificate.certificate import Certificate
from ...runtime.setup import prepare

_STRIDE, _LEAST, _FINE = 4.0, 1e-6, 1e-3  # how a rate is looked for: first in strides, then by halves


def certify_run(
    problem: Problem, graph: Graph, method: Method, *, rounds: int, delta: float, tol: float = 1e-8
) -> Certificate:
    """The certificate that a run on these rows will have."""
    setup = prepare(
        problem,
        graph,
        method,
        rounds=rounds,
        repeats=1,
        seed=0,
        tol=tol,
        start="zeros",
        strict=True,
        history=False,
    )
    return setup.forecast(delta)


def rate_within(cost: Callable[[float], float], epsilon: float) -> float:
    """The largest noise rate, to 0.1 per cent, whose cost is within epsilon; the cost must grow with it."""
    epsilon = checks.positive("epsilon", epsilon)
    low = high = 1.0
    while cost(low) > epsilon:
        low, high = low / _STRIDE, low
        if low < _LEAST:
            raise ParameterError(
                f"`epsilon` must be at least {format_cost(cost(low))} for this run, however large the "
                f"noise; got {format_given(epsilon)}. Use fewer rounds, or a larger penalty."
            )
    while high == low or cost(high) <= epsilon:
        low, high = high, high * _STRIDE
    while high > low * (1 + _FINE):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if cost(middle) <= epsilon else (low, middle)
    return low
