"""What a site computes over all attempts, and what its protocol knows before it starts."""

from __future__ import annotations

from typing import Any

import networkx as nx

from ...core.errors import ParameterError
from ...methods.admm.attempt import ADMMSite
from ...methods.sums.attempt import SumsSite
from ...methods.sums.prepared import PreparedSums
from ...rng import SecureStreams, SeededStreams, Streams
from ..files.site import Site
from ..protocol.core import SiteSetup
from ..protocol.frames import FrameRefused, SignedFrame
from ..wire.config import largest_payload
from ..wire.refusals import Refusals
from .prepare import PreparedSite

GATHER = 5.0  # seconds to wait for hellos once a site has said one


def site_method(ready: PreparedSite) -> SumsSite | ADMMSite:
    """What this site computes: the one place where a job becomes a method."""
    prepared, job, number = ready.prepared, ready.site.job, ready.site.number
    if not isinstance(prepared, PreparedSums):
        (node,) = prepared.nodes([ready.rows], [range(1)], seed=job.seed, repeats=1)
        return ADMMSite(number, node, _links(ready.site), job.penalty.clip, job.dimension)
    tables = prepared.tables
    streams: Streams = SecureStreams() if job.seed is None else SeededStreams(job.seed)
    samples = tuple(entry.samples for entry in job.sites)
    half = tables.program.private_half(ready.rows, tables.units)
    places = 1 if job.persons is None else job.persons.most_sites
    return SumsSite(number, tables, half, streams, samples, places)


def make_setup(ready: PreparedSite, refusals: Refusals, *, mark: int, paid: bool = False) -> SiteSetup:
    """What the protocol of this site knows; without a `quorum` in the job, no site may be left behind.

    mark, paid : the last round by the high-water mark; whether it shows that the state is not the newest.
    """
    site, job = ready.site, ready.site.job
    names, method = tuple(job.names), site_method(ready)

    def believe(frame: SignedFrame) -> None:
        try:
            ready.trust.check(frame, names[frame.sender])
        except FrameRefused as error:
            refusals.refuse(names[frame.sender], error.kind, str(error))
            raise

    known: dict[str, Any] = {"mark": mark} if isinstance(method, ADMMSite) else {}
    return SiteSetup(
        job=job.hash,
        names=names,
        own=site.number,
        links=_links(site),
        quorum=job.quorum or len(names),
        patience=site.file.patience,
        method=method,
        seal=ready.identity.seal,
        believe=believe,
        largest=largest_payload(job),
        gather=min(GATHER, site.file.patience / 4),
        paid=paid,
        **known,
    )


def check_absent(site: Site, absent: frozenset[str]) -> frozenset[int]:
    """Those who are left must be sites of the job that still reach each other; the numbers of the others."""
    names = site.job.names
    for name in sorted(absent):
        if name not in names or name == site.name:
            raise ParameterError(f"`--without` must name another site of the job; got {name!r}.")
    left = [i for i, name in enumerate(names) if name not in absent]
    if not nx.is_connected(site.job.graph.to_networkx().subgraph(left)):
        raise ParameterError(f"without {', '.join(sorted(absent))} the remaining sites are not connected.")
    return frozenset(names.index(name) for name in absent)


def _links(site: Site) -> tuple[tuple[int, ...], ...]:
    names = site.job.names
    return tuple(tuple(names.index(other) for other in near) for near in site.job.near)
