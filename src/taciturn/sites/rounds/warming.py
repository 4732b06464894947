"""Before a site meets the others: load what its first round needs, where nobody waits for it.

Compiled code comes from the disk in a second or so at its first use; in round 1 all neighbours would wait for
that. So a round is rehearsed with made-up rows and keys. No row of the site is looked at, nothing is kept,
and what goes wrong here goes wrong again where it is told.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import sparse

from ...admm.node import Node, NodeState
from ...errors import TaciturnError
from ...masked.discrete import draw
from ...masked.masks import KEY_BYTES, PairKeys
from ...masked.sums import add_mask, to_integers
from ...objective.local import LocalObjective
from ...objective.solver.general import SolverState
from ...objective.solver.small.sites import small_form
from .masked.part import MaskedPart
from .prepare import Ready


def warm_up(ready: Ready) -> None:
    """Rehearse the first rounds of the job's method with nothing in them."""
    with suppress(TaciturnError, ArithmeticError, ValueError):
        if isinstance(ready.node, MaskedPart):
            _warm_masked(ready.node)
        else:
            _warm_penalty(ready, ready.node)


def _warm_penalty(ready: Ready, node: Node) -> None:
    """A solve of the same size, of made-up rows, and noise of the same kind."""
    form, job = small_form(node.objective), ready.site.job
    if form is None:
        return  # the general solver has nothing to load
    rows = sum(part.rows.samples for part in node.objective.parts)
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
    zeros = np.zeros((1, job.dimension))
    replace(node, objective=objective).primal(NodeState.start(zeros, zeros), 1, SolverState())


def _warm_masked(part: MaskedPart) -> None:
    """Noise and masks of the first two rounds, and the steps that their sums lead to, all of zeros."""
    tables, state = part.tables, part.tables.descent.start(1)
    partners = tables.pairs.partners(part.site)
    keys = PairKeys(part.site, {partner: bytes(KEY_BYTES) for partner in partners}, run=bytes(32))
    for facts in tables.sums[:2]:
        values = to_integers(np.zeros((1, facts.length)), facts.grid)
        noise = draw(part.streams, facts.std, (1, facts.length), site=part.site, t=facts.t)
        add_mask(values, noise, keys.mask(facts.t, facts.part, (1, facts.length)))
        keys.advance()
        state = tables.after(state, np.zeros((1, facts.length), dtype=np.uint64))
