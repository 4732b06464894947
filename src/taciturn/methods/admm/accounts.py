"""The accountant's view of the tables: the facts of the loss and the sites, every charge, its ledger.

Every schedule is fixed in advance, so all of it is known before the first round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...objective.losses import SHIPPED, Loss
from ...privacy.facts import SCHEDULES, RoundCharges, RunFacts, SiteFacts
from ...privacy.ledger.memory import MemoryLedger
from ...privacy.loss_facts import LossFacts
from .tables import Tables


def loss_facts(loss: Loss) -> LossFacts:
    """The facts that the accountant needs about a loss; only shipped losses may claim a special bound."""
    shipped = type(loss) in SHIPPED.values()
    parameters: dict[str, Any] = asdict(loss) if is_dataclass(loss) and not isinstance(loss, type) else {}
    return LossFacts(
        name=loss.name if shipped else f"custom {loss.name}",
        slope_bound=loss.slope_bound,
        curvature_bound=loss.curvature_bound,
        kind=loss.kind,
        parameters={name: value for name, value in parameters.items() if isinstance(value, float)},
    )


def schedules(tables: Tables) -> dict[str, Any]:
    """What a site has planned for every round, as `SiteFacts` holds it; the tables are of one site alone."""
    given = zip(SCHEDULES, (tables.theta, tables.eta, tables.scale, tables.output_scale), strict=True)
    return {name: () if table is None else tuple(table.tolist()) for name, table in given}


def charges(tables: Tables, t: int, sites: NDArray[np.int64]) -> RoundCharges:
    """What these sites release in round t, each with its row in the tables, by columns."""
    eta = np.ascontiguousarray(tables.eta[:, t - 1])
    return RoundCharges(t, sites, eta, tables.column("scale", t), tables.column("output_scale", t))


def price_run(tables: Tables, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger that these sites, whose tables these are, will hold after the last round."""
    ledger, numbers = MemoryLedger(run, sites), np.array([facts.site for facts in sites], dtype=np.int64)
    for entry in run.sums:  # moments of the rows
        none, std = np.zeros(len(numbers)), np.full(len(numbers), entry.std)
        ledger.charge_round(RoundCharges(entry.t, numbers, none, std, None))
    for t in range(1, tables.rounds + 1):
        ledger.charge_round(charges(tables, t, numbers)._replace(t=t + run.moments))
    return ledger
