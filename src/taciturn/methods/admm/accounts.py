"""What the accountant needs to know: the facts about the loss and the sites, and the charges of all rounds.

Every schedule is fixed in advance, so the cost of all rounds is known before the first round.
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


def schedules(tables: Tables) -> dict[str, Any]:
    """The schedules of one site as fields of `SiteFacts`. `tables` contains only this site's numbers."""
    given = zip(SCHEDULES, (tables.theta, tables.eta, tables.scale, tables.output_scale), strict=True)
    return {name: () if table is None else tuple(table.tolist()) for name, table in given}


def charges(tables: Tables, t: int, sites: NDArray[np.int64]) -> RoundCharges:
    """The charges for what these sites release in round t; row k of the tables belongs to sites[k]."""
    eta = np.ascontiguousarray(tables.eta[:, t - 1])
    return RoundCharges(t, sites, eta, tables.column("scale", t), tables.column("output_scale", t))


def price_run(tables: Tables, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger of these sites after the last round, computed in advance.

    Row k of the tables belongs to sites[k].
    """
    ledger, numbers = MemoryLedger(run, sites), np.array([facts.site for facts in sites], dtype=np.int64)
    for entry in run.sums:  # the first rounds release moments of the rows
        none, std = np.zeros(len(numbers)), np.full(len(numbers), entry.std)
        ledger.charge_round(RoundCharges(entry.t, numbers, none, std, None))
    for t in range(1, tables.rounds + 1):
        ledger.charge_round(charges(tables, t, numbers)._replace(t=t + run.moments))
    return ledger
