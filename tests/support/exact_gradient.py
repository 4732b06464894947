"""The gradient of the primal update to 60 digits, from the very floats that the solver is given."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from scipy import sparse

from contracts.test_losses import exact_slope
from taciturn.objective import Objective


def gradient_error(objective: Objective, curvature: float, linear, F, computed) -> np.ndarray:
    """||computed - exact||_2 for every row of F."""
    return np.array(
        [
            _distance(_exact(objective, curvature, linear[r], F[r]), computed[r])
            for r in range(len(F))  # one model at a time
        ]
    )


def _exact(objective: Objective, curvature: float, linear, f) -> list[Decimal]:
    with localcontext() as context:
        context.prec = 60
        f = [Decimal(float(value)) for value in f]
        scale = Decimal(objective.rho) + Decimal(curvature)  # L2
        total = [scale * value - Decimal(float(b)) for value, b in zip(f, linear, strict=True)]
        for part in objective.parts:
            Z = part.rows.Z.toarray() if sparse.issparse(part.rows.Z) else part.rows.Z
            for n, row in enumerate(Z):
                entries = [(j, Decimal(float(row[j]))) for j in np.flatnonzero(row)]
                offset = 0.0 if part.rows.offset is None else float(part.rows.offset[n])
                z = sum((x * f[j] for j, x in entries), Decimal(offset))
                pull = Decimal(part.weight) * exact_slope(objective.loss, z)
                for j, x in entries:
                    total[j] += pull * x
        return total


def _distance(exact: list[Decimal], computed) -> float:
    with localcontext() as context:
        context.prec = 60
        squares = sum((e - Decimal(float(c))) ** 2 for e, c in zip(exact, computed, strict=True))
        return float(squares.sqrt())
