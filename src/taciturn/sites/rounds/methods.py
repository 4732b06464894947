"""The method of a site over all attempts, the setup of its protocol, and a warm-up."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse

from ...core.errors import ParameterError, TaciturnError
from ...methods.admm.attempt import ADMMSite
from ...methods.base import PreparedMethod
from ...methods.sums.attempt import SumsSite
from ...methods.sums.masks import KEY_BYTES, PairKeys
from ...methods.sums.prepared import PreparedSums
from ...methods.sums.program import SumTables
from ...methods.sums.sum_noise import draw
from ...methods.sums.sums import add_mask, to_integers
from ...methods.whitened_penalty import PreparedWhitened
from ...methods.whitened_site import WhitenedSite
from ...objective.local import LocalObjective
from ...objective.solver.small.sites import small_form
from ...rng import SecureStreams, SeededStreams, Streams
from ..files.site import Site
from ..protocol.core import SiteSetup
from ..protocol.frames import FrameRefused, SignedFrame
from ..wire.config import largest_payload
from ..wire.refusals import Refusals
from .prepare import PreparedSite

GATHER = 5.0  # seconds to wait for hellos after the first one


def site_method(ready: PreparedSite) -> SumsSite | ADMMSite | WhitenedSite:
    """The method of this site: the one place where a job becomes a method."""
    prepared, job, links = ready.prepared, ready.site.job, _links(ready.site)
    if isinstance(prepared, PreparedSums):
        return _sums(ready, prepared.tables)
    if isinstance(prepared, PreparedWhitened):
        sums = _sums(ready, prepared.moments.tables)
        return WhitenedSite(prepared, ready.rows, sums, links, job.penalty.clip, job.seed)
    (node,) = prepared.nodes([ready.rows], [range(1)], seed=job.seed, repeats=1)
    return ADMMSite(ready.site.number, node, links, job.penalty.clip, job.dimension)


def _sums(ready: PreparedSite, tables: SumTables) -> SumsSite:
    job = ready.site.job
    samples = tuple(entry.samples for entry in job.sites)
    half = tables.program.private_half(ready.rows, tables.units)
    places = 1 if job.persons is None else job.persons.most_sites
    return SumsSite(ready.site.number, tables, half, _streams(job.seed), samples, places)


def make_setup(ready: PreparedSite, refusals: Refusals, *, mark: int, paid: bool = False) -> SiteSetup:
    """The setup of this site's protocol; without a `quorum` in the job, no site may drop out.

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
    """The numbers of the absent sites; the remaining ones must be connected."""
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


def _streams(seed: int | None) -> Streams:
    return SecureStreams() if seed is None else SeededStreams(seed)


def warm_up(ready: PreparedSite) -> None:
    """Load what the first round needs before the site connects, so that no other site waits for it.

    Compiled code comes from the disk in a second or so at its first use; in round 1 all neighbours would wait
    for that. So a round is rehearsed with made-up rows and keys. No row of the site is read, nothing is
    kept, and a failure here occurs again later, where it is reported.
    """
    with suppress(TaciturnError, ArithmeticError, ValueError):
        if isinstance(ready.prepared, PreparedSums):
            _warm_masked(ready, ready.prepared)
            return
        prepared = ready.prepared
        if isinstance(prepared, PreparedWhitened):
            _warm_masked(ready, prepared.moments)
            prepared = prepared.on_rows()
        if isinstance(ready.rows, LocalObjective):
            _warm_penalty(ready, prepared, ready.rows)


def _warm_penalty(ready: PreparedSite, prepared: PreparedMethod, own: LocalObjective) -> None:
    """A solve of the same size, of made-up rows, and noise of the same kind."""
    form, job = small_form(own), ready.site.job
    if form is None:
        return  # the general solver has nothing to load
    rows = sum(part.rows.samples for part in own.parts)
    X = np.zeros((rows, job.dimension))
    X[:, 0] = 0.5
    objective = LocalObjective(
        sparse.csr_array(X) if form == "sparse" else X,
        np.resize([1.0, -1.0], rows),
        loss=job.loss,
        C=1.0,
        regularization=job.regularization,
        sites=len(job.sites),
    )
    (node,) = prepared.nodes([objective], [range(1)], seed=job.seed, repeats=1)
    node.primal(node.start(None, None))


def _warm_masked(ready: PreparedSite, prepared: PreparedSums) -> None:
    """Noise and masks of the first two rounds, and the steps that their sums lead to, all of zeros."""
    tables, site, seed = prepared.tables, ready.site.number, ready.site.job.seed
    state, streams = tables.program.start(1), _streams(seed)
    made = {other: bytes(KEY_BYTES) for other in tables.pairs.partners(site)}
    keys = PairKeys(site, made, run=bytes(32), alone=not made)
    for facts in tables.sums[:2]:
        values = to_integers(np.zeros((1, facts.length)), facts.grid)
        noise = draw(streams, facts.std, (1, facts.length), site=site, t=facts.t)
        add_mask(values + noise, keys.mask(facts.t, facts.part, (1, facts.length)))
        keys.advance()
        state = tables.after(state, np.zeros((1, facts.length), dtype=np.uint64))
