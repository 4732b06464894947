"""StatedCost: the privacy cost of one round of a user's own method, as the author of the method states it.

taciturn adds up the costs of the rounds, but it does not prove the stated cost of a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from .accounting.bounds import pure_renyi
from .accounting.rounding import up

OWN = "own"
"""The value of `method`, and also of `noise`, in the facts of a run with a user's own method."""


@dataclass(frozen=True)
class StatedCost:
    """The privacy cost of one round for any one record or person, as proved by the author of the method.

    Exactly one field must be given.

    pure : epsilon at delta = 0.
    mu : the round is mu-GDP (Gaussian differential privacy, see `accounting/gaussian.py`).
    renyi : bounds on the Renyi divergence at some orders above 1, as {order: cost}. The divergence never
        decreases with the order, so the cost at the next larger stated order is used for any other order.

    >>> StatedCost(renyi={2: 0.1, 8: 0.5}).renyi_at(np.array([1.5, 2.0, 3.0, 9.0])).round(3).tolist()
    [0.1, 0.1, 0.5, inf]
    """

    pure: float | None = None
    mu: float | None = None
    renyi: Mapping[float, float] | Iterable[tuple[float, float]] | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("pure", "mu", "renyi") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ParameterError(
                f"`cost` must state exactly one of pure, mu and renyi; got {given or 'none of them'}."
            )
        if self.renyi is None:
            name = given[0]
            object.__setattr__(self, name, checks.magnitude(name, getattr(self, name)))
            return
        pairs = self.renyi.items() if isinstance(self.renyi, Mapping) else self.renyi
        curve = tuple(sorted((checks.real("order", q), checks.magnitude("renyi", cost)) for q, cost in pairs))
        falls = any(a[1] > b[1] or a[0] == b[0] for a, b in pairwise(curve))
        if not curve or curve[0][0] <= 1 or falls:
            raise ParameterError(
                "`renyi` must contain orders above 1, each once, with costs that never decrease; "
                f"got {list(curve)}."
            )
        object.__setattr__(self, "renyi", curve)

    def renyi_at(self, orders: Array) -> Array:
        """A bound on the Renyi divergence at these orders; with `renyi`, infinite above its largest order."""
        if self.pure is not None:
            return pure_renyi(orders, self.pure)
        if self.mu is not None:
            return np.asarray(up(orders * self.mu**2 / 2))
        known, costs = np.array(self.renyi).T
        return np.append(costs, np.inf)[np.searchsorted(known, orders)]
