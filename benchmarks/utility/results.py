"""Look up results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .anchors import ALONE_FREE, BOOSTING, EBM, WHITE_CENTRE
from .contest import CENTRE, CURVES, MAPPED, MASKED, PLAIN, Result
from .rivals import NO_PRIVACY, POOLED

_COLLUDING = (MASKED, MAPPED, CURVES, PLAIN)


class Found:
    """All results, by key."""

    sizes: ClassVar = (5, 20, 100)
    budgets: ClassVar = (0.1, 0.3, 1.0, 3.0, 10.0)

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = results
        self._at = {result.key: result for result in results}

    def get(
        self,
        data: str,
        sites: int,
        epsilon: float,
        name: str,
        *,
        split: str = "even",
        colluding: int | None = None,
        topology: str = "complete",
    ) -> Result | None:
        """One result, if it was measured."""
        return self._at.get((data, sites, epsilon, name, split, colluding, topology))

    def at(self, data: str, name: str, epsilon: float, sites: int = 20) -> Result | None:
        """The result of a contender. A trusted centre ignores `sites`; a model without privacy, `epsilon`."""
        if name in (NO_PRIVACY, BOOSTING):
            return self.get(data, 1, 1.0, name)
        if name in (POOLED, WHITE_CENTRE, EBM):
            return self.get(data, 1, epsilon, name)
        if name == CENTRE:
            return self.get(data, 2, epsilon, name, colluding=0)
        if name == ALONE_FREE:
            return self.get(data, sites, 1.0, name)
        return self.get(data, sites, epsilon, name, colluding=1 if name in _COLLUDING else None)

    def base(self, data: str) -> Result:
        """The pooled model without privacy."""
        result = self.at(data, NO_PRIVACY, 1.0)
        if result is None:
            raise LookupError(f"{data} was not measured without privacy")
        return result

    def price(self, data: str, epsilon: float) -> float:
        """The excess loss of pooled objective perturbation."""
        pooled = self.at(data, POOLED, epsilon)
        if pooled is None:
            raise LookupError(f"{data} was not measured with a trusted centre at {epsilon:g}")
        return pooled.loss - self.base(data).loss

    def ratio(self, result: Result) -> float:
        """The excess loss of a result divided by the excess loss of the trusted centre."""
        return (result.loss - self.base(result.data).loss) / self.price(result.data, result.epsilon)

    def excess(self, tables: Sequence[str], name: str, epsilon: float, sites: int = 20) -> float | None:
        """The sum of the excess losses over these tables; None if the contender lacks one of them."""
        found = [self.at(data, name, epsilon, sites) for data in tables]
        known = [result for result in found if result is not None]
        return sum(r.loss - self.base(r.data).loss for r in known) if len(known) == len(tables) else None

    def common(self, tables: Sequence[str], names: Sequence[str], epsilon: float) -> list[str]:
        """The tables on which all these contenders were measured."""
        return [data for data in tables if all(self.at(data, name, epsilon) for name in names)]

    def contenders(self, data: str) -> list[str]:
        """All decentralised contenders, best first for twenty sites."""
        field = [
            r
            for r in self.results
            if (r.data, r.epsilon, r.split, r.topology) == (data, 1.0, "even", "complete")
            and r.sites in self.sizes
            and r.decentralised
            and r.contender not in (MAPPED, CURVES)
            and (r.contender not in _COLLUDING or r.colluding == 1)
        ]
        losses = {r.contender: r.loss for r in sorted(field, key=lambda r: r.sites == 20)}
        return sorted(losses, key=lambda name: losses[name])

    def pooled(self, data: str, epsilon: float) -> list[Result]:
        """All contenders that have all rows in one place."""
        at = [r for r in self.results if (r.data, r.epsilon) == (data, epsilon) and r.sites in (1, 2)]
        return sorted(at, key=lambda r: -r.loss)
