"""Before a site meets the others: load what its first round needs, where nobody waits for it.

Compiled code comes from the disk in a second or so at its first use; in round 1 all neighbours would wait for
that. So a round is rehearsed with made-up rows and keys. No row of the site is looked at, nothing is kept,
and what goes wrong here goes wrong again where it is told.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy import sparse

from ...core.errors import TaciturnError
from ...methods.base import PreparedMethod
from ...methods.sums.masks import KEY_BYTES, PairKeys
from ...methods.sums.prepared import PreparedSums
from ...methods.sums.sum_noise import draw
from ...methods.sums.sums import add_mask, to_integers
from ...objective.local import LocalObjective
from ...objective.solver.small.sites import small_form
from ...rng import SecureStreams, SeededStreams
from .prepare import PreparedSite


def warm_up(ready: PreparedSite) -> None:
    """Rehearse the first rounds of the job's method with nothing in them."""
    with suppress(TaciturnError, ArithmeticError, ValueError):
        if isinstance(ready.prepared, PreparedSums):
            _warm_masked(ready, ready.prepared)
        elif isinstance(ready.rows, LocalObjective):
            _warm_penalty(ready, ready.prepared, ready.rows)


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
    state, streams = tables.program.start(1), SecureStreams() if seed is None else SeededStreams(seed)
    made = {other: bytes(KEY_BYTES) for other in tables.pairs.partners(site)}
    keys = PairKeys(site, made, run=bytes(32), alone=not made)
    for facts in tables.sums[:2]:
        values = to_integers(np.zeros((1, facts.length)), facts.grid)
        noise = draw(streams, facts.std, (1, facts.length), site=site, t=facts.t)
        add_mask(values + noise, keys.mask(facts.t, facts.part, (1, facts.length)))
        keys.advance()
        state = tables.after(state, np.zeros((1, facts.length), dtype=np.uint64))
