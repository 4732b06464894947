"""What a site brings to a masked job before it has met the others: all but its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....masked import accounts
from ....masked.masks import PairKeys
from ....masked.method import MaskedTables
from ....masked.node import MaskedNode
from ....masked.shares import Share, share_of
from ....objective.local import LocalObjective
from ....objective.softmax import Softmax, SoftmaxObjective
from ....privacy.facts import Charge, RunFacts, SiteFacts
from ....rng import SecureStreams, SeededStreams, Streams
from ....types import Array
from ...files.site import Site


@dataclass(frozen=True)
class MaskedPart:
    """The share of one site in every sum, and the numbers of the run, fixed before it."""

    site: int
    share: Share
    tables: MaskedTables
    streams: Streams

    def charge_of(self, t: int) -> Charge:
        """What the release of round t costs."""
        return Charge(self.site, t, scale=self.tables.sums[t - 1].std)

    def node(self, keys: PairKeys) -> MaskedNode:
        """The site with its keys of the run."""
        return MaskedNode(self.site, self.share, self.tables, keys, self.streams)


def masked_part(site: Site, X: Array, y: Array, weighted: dict[str, Any]) -> MaskedPart:
    """What this site adds to each sum, from its rows; `weighted`: their weights, where they are persons'."""
    job, facts = site.job, site.job.public_facts
    objective: LocalObjective | SoftmaxObjective
    if isinstance(facts.loss, Softmax):
        objective = SoftmaxObjective(X, y, loss=facts.loss, name=site.name, **weighted)
    else:
        objective = LocalObjective(
            X,
            y,
            loss=job.loss,
            C=job.C,
            regularization=job.regularization,
            sites=facts.sites,
            name=site.name,
            **weighted,
        )
    streams = SecureStreams() if job.seed is None else SeededStreams(job.seed)
    share = share_of(objective, job.sums.descent, facts.total)
    return MaskedPart(site.number, share, job.sums, streams)


def masked_facts(site: Site) -> tuple[RunFacts, SiteFacts]:
    """What the accountant must know of the run, and of this site."""
    job = site.job
    run = accounts.run_facts(
        job.sums,
        job.public_facts,
        C=job.C,
        regularization=job.regularization,
        simulated=job.simulated,
        where=job.where,
        persons=job.persons,
    )
    facts = SiteFacts(site=site.number, samples=site.samples, degree=len(site.neighbours), name=site.name)
    return run, facts
