"""What the tables tell the accountant: the facts of the run and of its sites, every charge, its ledger.

Every schedule is fixed in advance, so all of it is known before the first round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...objective.losses import SHIPPED, Loss
from ...objective.persons import Persons
from ...privacy.certificate.certificate import Certificate
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


def run_facts(
    tables: Tables,
    loss: Loss,
    *,
    dimension: int,
    C: float,
    regularization: float,
    tol: float,
    simulated: bool,
    sites: int,
    where: str = "",
    outputs: int = 1,
    start: str = "zeros",
    marks: tuple[str, ...] = (),
    persons: Persons | None = None,
) -> RunFacts:
    """The facts that the accountant needs about the run; `sites` is N, whatever sites the tables are of."""
    return RunFacts(
        method=tables.method,
        noise="none" if tables.noise is None else tables.noise.kind,
        loss=loss_facts(loss),
        sites=sites,
        rounds=tables.rounds,
        dimension=dimension,
        C=C,
        regularization=regularization,
        output_noise=None if tables.output_noise is None else tables.output_noise.kind,
        tol=tol,
        grid=tables.grid,
        clip=tables.clip,
        integers=tables.covered and not simulated,
        simulated=simulated,
        where=where,
        outputs=outputs,
        start=start,
        marks=marks,
        **unit_facts(persons),
    )


def unit_facts(persons: Persons | None) -> dict[str, Any]:
    """What one promise covers, and the public numbers it rests on."""
    if persons is None:
        return {"unit": "record"}
    return {
        "unit": "person",
        "persons": persons.total,
        "rows_per_person": persons.most_rows,
        "sites_per_person": persons.most_sites,
    }


def site_facts(tables: Tables, samples: Iterable[int], degrees: Iterable[int]) -> list[SiteFacts]:
    """B_i, V_i and every schedule of every site."""
    return [
        SiteFacts(site=i, samples=int(B), degree=int(V), **schedules(tables.site(i)))
        for i, (B, V) in enumerate(zip(samples, degrees, strict=True))
    ]


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


def planned_certificate(
    tables: Tables, run: RunFacts, *, samples: Iterable[int], degrees: Iterable[int], delta: float
) -> Certificate:
    """What a run will have cost after its last round: every schedule is fixed, so every charge is known."""
    ledger = price_run(tables, run, site_facts(tables, samples, degrees))
    return Certificate.from_ledger(ledger, delta=delta)
