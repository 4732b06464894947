"""Looking things up among the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .contest import CENTRE, MASKED, Result
from .rivals import NO_PRIVACY, POOLED


class Found:
    """Everything that was measured, by what it is."""

    sizes: ClassVar = (5, 20, 100)
    columns: ClassVar = {
        "adult": "education",
        "credit": "EDUCATION",
        "support": "dzgroup",
        "fair": "occupation",
        "insurance": "education",
    }

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

    def centre(self, data: str, epsilon: float, name: str) -> Result | None:
        """What a centre with all rows comes to; without privacy the budget does not matter."""
        if name == CENTRE:
            return self.get(data, 2, epsilon, name, colluding=0)
        return self.get(data, 1, 1.0 if name == NO_PRIVACY else epsilon, name)

    def base(self, data: str) -> Result:
        """No privacy."""
        result = self.centre(data, 1.0, NO_PRIVACY)
        if result is None:
            raise LookupError(f"{data} was not measured without privacy")
        return result

    def price(self, data: str, epsilon: float) -> float:
        """The excess loss of pooled objective perturbation."""
        pooled = self.centre(data, epsilon, POOLED)
        if pooled is None:
            raise LookupError(f"{data} was not measured with a trusted centre at {epsilon:g}")
        return pooled.loss - self.base(data).loss

    def ratio(self, result: Result) -> float:
        """The excess loss of a result over that of the trusted centre."""
        return (result.loss - self.base(result.data).loss) / self.price(result.data, result.epsilon)

    def contenders(self, data: str) -> list[str]:
        """Everybody who holds a part of the rows, best first where there are twenty sites."""
        field = [
            r
            for r in self.results
            if (r.data, r.epsilon, r.split, r.topology) == (data, 1.0, "even", "complete")
            and r.sites in self.sizes
            and r.decentralised
            and (r.contender != MASKED or r.colluding == 1)
        ]
        losses = {r.contender: r.loss for r in sorted(field, key=lambda r: r.sites == 20)}
        return sorted(losses, key=lambda name: losses[name])

    def pooled(self, data: str, epsilon: float) -> list[Result]:
        """Everybody who holds all the rows."""
        at = [r for r in self.results if (r.data, r.epsilon) == (data, epsilon) and r.sites in (1, 2)]
        return sorted(at, key=lambda r: -r.loss)

    def budgets(self, data: str, sites: int) -> list[float]:
        """All epsilons at which masked descent was measured."""
        return sorted(
            {r.epsilon for r in self.results if (r.data, r.sites, r.contender) == (data, sites, MASKED)}
        )

    def rivals_at(self, data: str, sites: int, budgets: Sequence[float]) -> list[str]:
        """Rivals that were measured at several budgets."""
        names = [name for name in self.contenders(data) if name != MASKED and not name.startswith("taciturn")]
        return [name for name in names if sum(bool(self.get(data, sites, e, name)) for e in budgets) > 1]

    def at(self, name: str, epsilon: float) -> Result | None:
        """A contender on Adult: of twenty sites, or with all the rows."""
        own = self.get("adult", 20, epsilon, name, colluding=1 if name == MASKED else None)
        return own or self.centre("adult", epsilon, name)
