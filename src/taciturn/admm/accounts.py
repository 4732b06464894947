"""What the tables tell the accountant: the facts of the run and of its sites, every charge, its ledger.

Every schedule is fixed in advance, so all of it is known before the first round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from ..objective.losses import SHIPPED, Loss
from ..objective.persons import Persons
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import Charge, LossFacts, RoundCharges, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger
from .tables import Numbers, SiteTables, Tables


def loss_facts(loss: Loss) -> LossFacts:
    """What the accountant must know of a loss; only the shipped classes may claim a bound made for them."""
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
    tables: Numbers,
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
    """What the accountant must know of the run; `sites` is N, whosever the tables are."""
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
    """B_i, V_i and the dual steps of every site."""
    return [
        SiteFacts(site=i, samples=int(B), degree=int(V), dual_step=tuple(tables.theta[i].tolist()))
        for i, (B, V) in enumerate(zip(samples, degrees, strict=True))
    ]


def charge(tables: SiteTables, site: int, t: int) -> Charge:
    """What site number `site` releases in round t."""
    return Charge(
        site=site,
        t=t,
        eta=float(tables.eta[t - 1]),
        scale=0.0 if tables.scale is None else float(tables.scale[t - 1]),
        output_scale=None if tables.output_scale is None else float(tables.output_scale[t - 1]),
    )


def charges(tables: Tables, t: int, sites: Sequence[int]) -> RoundCharges:
    """What these sites release in round t, each with its row in the tables, by columns."""
    numbers = np.array(sites, dtype=np.int64)
    return RoundCharges(
        t,
        numbers,
        tables.eta[numbers, t - 1],
        None if tables.scale is None else tables.scale[numbers, t - 1],
        None if tables.output_scale is None else tables.output_scale[numbers, t - 1],
    )


def planned_ledger(tables: Tables, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger that these sites, whose tables these are, will hold after the last round."""
    ledger = MemoryLedger(run, sites)
    rows, numbers = range(tables.sites), np.array([facts.site for facts in sites])
    for t in range(1, tables.rounds + 1):
        ledger.charge_round(charges(tables, t, rows)._replace(sites=numbers))
    return ledger


def planned_certificate(
    tables: Tables, run: RunFacts, *, samples: Iterable[int], degrees: Iterable[int], delta: float
) -> Certificate:
    """What a run will have cost after its last round: every schedule is fixed, so every charge is known."""
    ledger = planned_ledger(tables, run, site_facts(tables, samples, degrees))
    return Certificate.from_ledger(ledger, delta=delta)
