"""Masked sums under audit: uneven sites, and a colluder who hears everybody before it speaks.

The last sites collude with the observer. They know the masks they share, wait for the honest messages of each
round, learn the honest sum, and answer so that the total is what they like: they hold the descent where the
record shows most. Every honest message comes from the real node: share, grid, noise, masks, charge.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..masked import accounts
from ..masked.masks import Message, PairKeys, expand
from ..masked.method import MaskedDescent, MaskedTables, PublicFacts
from ..masked.node import MaskedNode, loop
from ..masked.public.descent import DescentState
from ..masked.shares import Share, share_of
from ..masked.sums import add_up, to_integers
from ..objective.local import LocalObjective
from ..objective.losses import SmoothHinge
from ..privacy.facts import Charge, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger
from ..privacy.release import Release
from ..rng import Streams
from ..types import Array

_REGULARIZATION = 1e-3


@dataclass(frozen=True)
class MaskedCase:
    """Some sites' run on either of two neighbouring data sets, which differ in one record of site 0.

    samples : how many records each site has; all but the one are 0, as an invalid row is.
    old, new : that record, with label +1, in one dimension.
    colluders : so many of the last sites work with the observer, whatever `method.colluding` counts on.
    pull : the mean gradient that the colluders make everybody see; 0 keeps the descent where it began.
    delta : at which epsilon is compared.
    """

    name: str
    about: str
    samples: tuple[int, ...]
    method: MaskedDescent
    rounds: int = 3
    old: float = 1.0
    new: float = -1.0
    colluders: int = 1
    pull: float = 0.0
    delta: float = 0.05

    @property
    def honest(self) -> int:
        return len(self.samples) - self.colluders

    def public(self) -> PublicFacts:
        """What everybody knows of the rows."""
        return PublicFacts(
            sites=len(self.samples),
            total=sum(self.samples),
            largest=max(self.samples),
            dimension=1,
            loss=SmoothHinge(),
            regularization=_REGULARIZATION,
        )

    def tables(self) -> MaskedTables:
        return self.method.tables(self.public(), self.rounds)

    def run_facts(self) -> RunFacts:
        """What the accountant must know of the run."""
        return accounts.run_facts(
            self.tables(), self.public(), C=1.0, regularization=_REGULARIZATION, simulated=True
        )

    def site_facts(self) -> SiteFacts:
        """What the accountant must know of the site whose record it is."""
        return accounts.site_facts(self.samples, [len(self.samples) - 1] * len(self.samples))[0]

    def share(self, site: int, record: float, tables: MaskedTables) -> Share:
        """What a site adds to each sum when site 0 holds this record."""
        X = np.zeros((self.samples[site], 1))
        X[0] = record if site == 0 else 0.0
        rows = LocalObjective(
            X,
            np.ones(len(X)),
            loss=SmoothHinge(),
            C=1.0,
            regularization=_REGULARIZATION,
            sites=len(self.samples),
        )
        return share_of(rows, tables.descent, sum(self.samples))


class _Seen(NamedTuple):
    """What the colluders learn in every round: the honest sum, and what site 0 sent, (runs, length)."""

    opened: list[NDArray[np.int64]]
    sent: list[Message]


def masked_case(epsilon: float = 2.0, delta: float = 0.2) -> MaskedCase:
    """Three uneven sites, of which one colludes, two rounds that tell: the bound is nearly reached."""
    return MaskedCase(
        name="masked sums, one colluder",
        about="opposite records, smooth hinge, three uneven sites, a colluder who speaks last",
        samples=(2, 9, 4),
        method=MaskedDescent(epsilon=epsilon, delta=delta, colluding=1, share=1e-6),
        delta=delta,
    )


def pulled_case(sites: int = 40, epsilon: float = 2.0, delta: float = 0.2) -> MaskedCase:
    """Many sites: one site's messages of two rounds are compared; its record shows in one of them only."""
    case = masked_case(epsilon, delta)
    return replace(
        case,
        method=replace(case.method, connectivity=2),
        name="masked sums, one site's messages",
        about=f"a record against none, {sites} sites, pulled to where the record is flat",
        samples=(2,) * sites,
        new=0.0,
        pull=-1e3,
    )


def masked_scores(
    case: MaskedCase, runs: int, streams: tuple[Streams, Streams], ledger: MemoryLedger
) -> dict[str, tuple[Array, Array]]:
    """Score -> (runs on the old data, runs on the new); every charge of site 0 goes to the ledger once."""
    tables = case.tables()
    path = _path(case, tables)
    old = _seen(case, case.old, runs, streams[0], path, ledger.charge)
    new = _seen(case, case.new, runs, streams[1], path, _free)
    moved, middle = _clean(case, tables, path)
    sums = [_likelihood(case, tables, part.opened, moved, middle) for part in (old, new)]
    lean = np.sign(moved[-2] - moved[-1]).sum()
    bare = [lean * _difference(part.sent) for part in (old, new)]
    return {"honest sums": (sums[0], sums[1]), "one site's messages": (bare[0], bare[1])}


def _path(case: MaskedCase, tables: MaskedTables) -> list[DescentState]:
    """Where the descent stands before each round: where the colluders lead it, in every run alike."""
    states = [tables.descent.start(1)]
    for t in range(1, case.rounds):
        states.append(tables.after(states[-1], _total(case, tables, t, 1)))
    return states


def _total(case: MaskedCase, tables: MaskedTables, t: int, runs: int) -> Message:
    """What the colluders make of the total of round t, (runs, length)."""
    facts = tables.sums[t - 1]
    value = 0 if t == 1 else round(case.pull / facts.grid)
    return np.full((runs, facts.length), value, dtype=np.int64).view(np.uint64)


def _seen(
    case: MaskedCase,
    record: float,
    runs: int,
    streams: Streams,
    path: list[DescentState],
    charge: Callable[[Charge], None],
) -> _Seen:
    """All rounds of many runs at once."""
    tables, root = case.tables(), os.urandom(32)
    keys = [_keys(tables, root, site) for site in range(len(case.samples))]

    def after(state: DescentState, total: Message) -> DescentState:
        return _wide(path[state.t + 1] if state.t + 1 < len(path) else path[-1], runs)

    loops = [
        loop(
            MaskedNode(site, case.share(site, record, tables), tables, keys[site], streams, runs, after),
            _wide(path[0], runs),
            commit=_charging(charge if site == 0 else _free),
        )
        for site in range(case.honest)
    ]
    seen = _Seen([], [])
    messages = [next(one).message for one in loops]
    for t in range(1, case.rounds + 1):
        masks = [_open(key, tables, t, runs) for key in keys[case.honest :]]
        seen.opened.append(add_up([*messages, *masks]).view(np.int64))
        seen.sent.append(messages[0])
        if t < case.rounds:
            total = _total(
                case, tables, t, runs
            )  # the honest sum is known: the colluders add what is missing
            messages = [one.send(total).message for one in loops]
    return seen


def _keys(tables: MaskedTables, root: bytes, site: int) -> PairKeys:
    partners = tables.pairs.partners(site)
    pairs = {other: expand(root, "pair", min(site, other), max(site, other)) for other in partners}
    return PairKeys(site, pairs, run=expand(root, "run"))


def _open(keys: PairKeys, tables: MaskedTables, t: int, runs: int) -> Message:
    """A colluder's masks of this round: added to what the honest sent, they take its share of masks away."""
    facts = tables.sums[t - 1]
    mask = keys.mask(facts.t, facts.part, (runs, facts.length))
    keys.advance()
    return mask


def _wide(state: DescentState, runs: int) -> DescentState:
    """The same state in every run."""
    return replace(state, y=np.broadcast_to(state.y, (runs, *state.y.shape[1:])))


def _clean(
    case: MaskedCase, tables: MaskedTables, path: list[DescentState]
) -> tuple[list[Array], list[Array]]:
    """By how much the records move the honest sum of each round, and its middle between them, (length,)."""
    moved, middle = [], []
    for facts, state in zip(tables.sums, path, strict=True):
        both = []
        for record in (case.old, case.new):
            shares = [case.share(site, record, tables) for site in range(case.honest)]
            values = [one.moments() if state.t == 0 else one.gradient(state.y)[0] for one in shares]
            both.append(sum(to_integers(value, facts.grid).astype(np.float64) for value in values))
        moved.append(np.asarray(both[0] - both[1]))
        middle.append(np.asarray(both[0] + both[1]) / 2)
    return moved, middle


def _likelihood(
    case: MaskedCase,
    tables: MaskedTables,
    opened: list[NDArray[np.int64]],
    moved: list[Array],
    middle: list[Array],
) -> Array:
    """ln p_old / p_new of the honest sums, (runs,)."""
    rounds = zip(tables.sums, opened, moved, middle, strict=True)
    each = [(seen - mid) @ move / (case.honest * facts.std**2) for facts, seen, move, mid in rounds]
    return np.asarray(np.sum(each, axis=0))


def _difference(sent: list[Message]) -> Array:
    """What site 0 sent in the last round but one, less what it sent in the last, (runs,)."""
    return np.asarray((sent[-2] - sent[-1]).view(np.int64).sum(axis=1), dtype=np.float64)


def _charging(charge: Callable[[Charge], None]) -> Callable[[Release[Message, DescentState]], None]:
    """All that committing a release comes to here."""
    return lambda release: charge(release.charge)


def _free(charge: Charge) -> None:
    """A run for the observer alone."""
