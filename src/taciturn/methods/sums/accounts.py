"""What masked sums tell the accountant: the facts of the run, of its sites, and every charge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...objective.persons import Persons
from ...privacy.facts import RunFacts, SiteFacts
from ...privacy.ledger.memory import MemoryLedger
from .node import sum_charges
from .program import SumTables


def run_facts(
    tables: SumTables,
    *,
    C: float,
    regularization: float,
    simulated: bool,
    where: str = "",
    marks: tuple[str, ...] = (),
    persons: Persons | None = None,
) -> RunFacts:
    """The facts that the accountant needs about the run; C and regularization as the problem states them."""
    pairs, program = tables.pairs, tables.program
    return RunFacts(
        method="masked",
        noise="discrete",
        loss=program.loss,
        sites=pairs.sites,
        rounds=tables.rounds,
        dimension=program.dimension,
        C=C,
        regularization=regularization,
        data_norm=tables.data_norm,
        simulated=simulated,
        where=where,
        marks=marks,
        sums=tables.sums,
        records=tables.units if persons is None else None,
        largest=tables.largest,
        colluding=tables.colluding,
        connectivity=None if pairs.connectivity == pairs.sites - 1 else pairs.connectivity,
        unit="record" if persons is None else "person",
        persons=None if persons is None else persons.total,
        rows_per_person=None if persons is None else persons.most_rows,
        sites_per_person=1 if persons is None else persons.most_sites,
    )


def site_facts(samples: Iterable[int], degrees: Iterable[int], names: Sequence[str] = ()) -> list[SiteFacts]:
    """B_i, V_i and the name of every site; the links carry messages, and do not enter the maths."""
    pairs = zip(samples, degrees, strict=True)
    return [
        SiteFacts(site=i, samples=int(B), degree=int(V), name=names[i] if names else "")
        for i, (B, V) in enumerate(pairs)
    ]


def price_run(tables: SumTables, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger that these sites will hold after the last round."""
    ledger, numbers = MemoryLedger(run, sites), np.array([facts.site for facts in sites], dtype=np.int64)
    for t in range(1, tables.rounds + 1):
        ledger.charge_round(sum_charges(tables, t, numbers))
    return ledger
