"""The schedules and noise scales of a run for every site and round, and the charges that follow from them.

A charge is the privacy cost of what a site releases in a round. All numbers are fixed before the run starts,
so the cost of all rounds is known before the first round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ...objective.losses import SHIPPED, Loss
from ...privacy.facts import SCHEDULES, RoundCharges, RunFacts, SiteFacts
from ...privacy.ledger.memory import MemoryLedger
from ...privacy.loss_facts import LossFacts
from ...privacy.noise import GaussianNoise, NormNoise
from ...schedules import Schedule

Noise = NormNoise | GaussianNoise
MethodName = Literal["none", "penalty", "dual", "primal"]
Table = NDArray[np.float64]
_BY_SITE = ("eta", "theta", "scale", "output_scale")


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables:
    """The schedules and noise scales, in arrays (sites, rounds) for several sites, or (rounds,) for one site.

    eta, theta : penalty and dual step.
    scale, output_scale : the scales of the noise and of the output noise; None if there is no such noise.
    grid, clip : released values are clipped to [-clip, clip] and rounded to multiples of grid.
    penalties : for each site, the schedule that eta was computed from.
    """

    method: MethodName
    eta: Table
    theta: Table
    noise: Noise | None = None
    scale: Table | None = None
    output_noise: Noise | None = None
    output_scale: Table | None = None
    grid: float | None = None
    clip: float | None = None
    penalties: tuple[Schedule, ...] = ()

    @property
    def rounds(self) -> int:
        return int(self.eta.shape[-1])

    @property
    def sites(self) -> int:
        return int(self.eta.shape[0])

    @property
    def private(self) -> bool:
        return self.method != "none"

    @property
    def inside(self) -> bool:
        """Whether the noise is part of the problem that a site solves."""
        return self.method in ("penalty", "dual")

    @property
    def on_output(self) -> bool:
        """Whether noise is added to the solved vectors."""
        return self.output_noise is not None or self.method == "primal"

    @property
    def covered(self) -> bool:
        """Whether noise on a grid hides all floating-point errors; a real run then sends grid values."""
        return self.on_output and self.grid is not None and self.clip is not None

    def site(self, i: int) -> Tables:
        """The tables of the i-th site alone, as views, not copies."""
        return replace(self, penalties=self.penalties[i : i + 1], **self._rows(i))

    def alone(self) -> Tables:
        """The tables of one site, reshaped from (rounds,) to (1, rounds), as for a network of one site."""
        return replace(self, **self._rows(None))

    def part(self, own: range) -> Tables:
        """The rows of a range of sites, copied, so that a pickle of them does not include other rows."""
        rows = slice(own.start, own.stop)
        copied: dict[str, Any] = {
            name: None if row is None else row.copy() for name, row in self._rows(rows).items()
        }
        return replace(self, penalties=self.penalties[rows], **copied)

    def column(self, name: Literal["scale", "output_scale"], t: int) -> Table | None:
        """The noise scales of round t, (sites,), as a contiguous array; None if there is no such noise."""
        table: Table | None = getattr(self, name)
        return None if table is None else np.ascontiguousarray(table[:, t - 1])

    def schedules(self) -> dict[str, Any]:
        """The schedules as fields of `SiteFacts`. These tables must be those of one site."""
        given = zip(SCHEDULES, (self.theta, self.eta, self.scale, self.output_scale), strict=True)
        return {name: () if table is None else tuple(table.tolist()) for name, table in given}

    def charges(self, t: int, sites: NDArray[np.int64]) -> RoundCharges:
        """The charges for what these sites release in round t; row k of the tables belongs to sites[k]."""
        eta = np.ascontiguousarray(self.eta[:, t - 1])
        return RoundCharges(t, sites, eta, self.column("scale", t), self.column("output_scale", t))

    def _rows(self, index: int | slice | None) -> dict[str, Any]:
        tables = {name: getattr(self, name) for name in _BY_SITE}
        return {name: None if table is None else table[index] for name, table in tables.items()}


class HasTables(Protocol):
    """A method that can compute its numbers for every site and round."""

    def tables(self, sites: int, rounds: int) -> Tables:
        """Return every number of the run, checked."""
        ...


def loss_facts(loss: Loss) -> LossFacts:
    """The facts that the accountant needs about a loss; only taciturn's own losses get tighter bounds."""
    shipped = type(loss) in SHIPPED.values()
    parameters: dict[str, Any] = asdict(loss) if is_dataclass(loss) and not isinstance(loss, type) else {}
    return LossFacts(
        name=loss.name if shipped else f"custom {loss.name}",
        slope_bound=loss.slope_bound,
        curvature_bound=loss.curvature_bound,
        kind=loss.kind,
        parameters={name: value for name, value in parameters.items() if isinstance(value, float)},
    )


def price_run(tables: Tables, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger of these sites after the last round, computed in advance.

    Row k of the tables belongs to sites[k].
    """
    ledger, numbers = MemoryLedger(run, sites), np.array([facts.site for facts in sites], dtype=np.int64)
    for entry in run.sums:  # the first rounds release moments of the rows
        none, std = np.zeros(len(numbers)), np.full(len(numbers), entry.std)
        ledger.charge_round(RoundCharges(entry.t, numbers, none, std, None))
    for t in range(1, tables.rounds + 1):
        ledger.charge_round(tables.charges(t, numbers)._replace(t=t + run.moments))
    return ledger
