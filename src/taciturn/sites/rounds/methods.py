"""The method of a site over all attempts, the setup of its protocol, and a warm-up."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import networkx as nx

from ...core.errors import ParameterError, TaciturnError
from ..files.site import Site
from ..protocol.core import SiteSetup
from ..protocol.frames import FrameRefused, SignedFrame
from ..wire.config import largest_payload
from ..wire.refusals import Refusals
from .prepare import PreparedSite

GATHER = 5.0  # seconds to wait for hellos after the first one


def site_method(ready: PreparedSite) -> Any:
    """The method of this site, over all attempts."""
    job = ready.site.job
    return ready.prepared.at_site(ready.rows, job.network.samples, _links(ready.site), job.seed)


def make_setup(ready: PreparedSite, refusals: Refusals, *, mark: int, paid: bool = False) -> SiteSetup:
    """The setup of this site's protocol; without a `quorum` in the job, no site may drop out.

    mark : the last round according to the high-water mark.
    paid : whether the mark or the account shows that the state is too old.
    """
    site, job = ready.site, ready.site.job
    names, method = tuple(job.names), site_method(ready)

    def believe(frame: SignedFrame) -> None:
        try:
            ready.trust.check(frame, names[frame.sender])
        except FrameRefused as error:
            refusals.refuse(names[frame.sender], error.kind, str(error))
            raise

    known: dict[str, Any] = {} if method.common else {"mark": mark}
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
    """The numbers of the absent sites; the remaining sites must be connected to each other."""
    names = site.job.names
    for name in sorted(absent):
        if name not in names or name == site.name:
            raise ParameterError(f"`--without` must name another site of the job; got {name!r}.")
    left = [i for i, name in enumerate(names) if name not in absent]
    if not nx.is_connected(site.job.graph.to_networkx().subgraph(left)):
        raise ParameterError(
            f"`--without` {', '.join(sorted(absent))}: the remaining sites are not connected."
        )
    return frozenset(names.index(name) for name in absent)


def _links(site: Site) -> tuple[tuple[int, ...], ...]:
    names = site.job.names
    return tuple(tuple(names.index(other) for other in near) for near in site.job.near)


def warm_up(ready: PreparedSite) -> None:
    """Load what the first round needs before the site connects, so that no other site waits for it.

    Compiled code is loaded from disk at its first use, which takes about a second; in round 1 all neighbours
    would wait for it. So a round is rehearsed with made-up rows and keys. No row of the site is read, and
    nothing is kept. A failure is ignored: it occurs again in the real round, where it is reported.
    """
    with suppress(TaciturnError, ArithmeticError, ValueError):
        ready.prepared.warm_up(ready.rows, ready.site.job.seed)
