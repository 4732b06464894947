"""What masked sums tell the accountant: the facts of the run, of its sites, and every charge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..objective.persons import Persons
from ..privacy.facts import Charge, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger
from .method import MaskedTables, PublicFacts
from .public.losses import loss_facts


def run_facts(
    tables: MaskedTables,
    facts: PublicFacts,
    *,
    C: float,
    regularization: float,
    simulated: bool,
    where: str = "",
    marks: tuple[str, ...] = (),
    persons: Persons | None = None,
) -> RunFacts:
    """What the accountant must know of the run; C and regularization as the problem states them."""
    complete = tables.pairs.connectivity == tables.pairs.sites - 1
    return RunFacts(
        method="masked",
        noise="discrete",
        loss=loss_facts(tables.descent.loss),
        sites=facts.sites,
        rounds=tables.rounds,
        dimension=facts.dimension * facts.outputs,
        C=C,
        regularization=regularization,
        data_norm=facts.data_norm,
        simulated=simulated,
        where=where,
        marks=marks,
        sums=tables.sums,
        records=facts.total if persons is None else None,
        largest=facts.largest,
        colluding=tables.colluding,
        connectivity=None if complete else tables.pairs.connectivity,
        unit="record" if persons is None else "person",
        persons=None if persons is None else persons.total,
        rows_per_person=None if persons is None else persons.most_rows,
        sites_per_person=1 if persons is None else persons.most_sites,
    )


def site_facts(samples: Iterable[int], degrees: Iterable[int], names: Sequence[str] = ()) -> list[SiteFacts]:
    """B_i, V_i and the name of every site; the links carry messages, and have no say in the maths."""
    pairs = zip(samples, degrees, strict=True)
    return [
        SiteFacts(site=i, samples=int(B), degree=int(V), name=names[i] if names else "")
        for i, (B, V) in enumerate(pairs)
    ]


def planned_ledger(tables: MaskedTables, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger that these sites will hold after the last round."""
    ledger = MemoryLedger(run, sites)
    for entry in tables.sums:
        ledger.charge_all([Charge(facts.site, entry.t, scale=entry.std) for facts in sites])
    return ledger
