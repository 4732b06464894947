"""Masked sums under audit: uneven sites, and a colluding site that sees all messages before it sends its own.

The last sites collude with the observer. They know the masks they share, wait for the honest messages of each
round, learn the honest sum, and answer so that the total is what they like: they hold the descent where the
record shows most. Every honest message comes from the real node: share, grid, noise, masks, charge.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from ..methods.base import Network
from ..methods.loop import Loop, Send, loop
from ..methods.programs.masked_descent import MaskedDescent, PublicFacts
from ..methods.sums.masks import Message, PairKeys
from ..methods.sums.node import SumsNode
from ..methods.sums.prepared import PreparedSums, process_keys
from ..methods.sums.program import PrivateHalf, SumTables
from ..methods.sums.sums import add_up
from ..objective.local import LocalObjective
from ..objective.losses import Logistic, Loss, SmoothHinge
from ..privacy.facts import RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger
from ..rng import Streams

_REGULARIZATION = 1e-3
_HINGE = SmoothHinge()


class SumsCase(Protocol):
    """What the audit of masked sums asks of a case, besides what its certificate is made of."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def samples(self) -> tuple[int, ...]: ...

    @property
    def honest(self) -> int: ...

    @property
    def old(self) -> float: ...

    @property
    def new(self) -> float: ...

    @property
    def rounds(self) -> int: ...

    @property
    def delta(self) -> float: ...

    @property
    def more(self) -> int: ...

    def tables(self) -> SumTables: ...

    def run_facts(self) -> RunFacts: ...

    def site_facts(self) -> SiteFacts: ...

    def share(self, site: int, record: float, tables: SumTables) -> PrivateHalf: ...

    def total(self, tables: SumTables, t: int, runs: int) -> Message: ...


@dataclass(frozen=True)
class MaskedCase:
    """Some sites' run on either of two neighbouring data sets, which differ in one record of site 0.

    samples : how many records each site has; all but the one are 0, as an invalid row is.
    old, new : that record, with label +1, in one dimension.
    colluders : so many of the last sites work with the observer, whatever `method.colluding` counts on.
    pull : the mean gradient that the colluding sites make all sites see; 0 keeps the descent at its start.
    delta : at which epsilon is compared.   loss : what is trained.
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
    loss: Loss = _HINGE
    more: int = 4  # so many times the runs of other cases

    @property
    def honest(self) -> int:
        return len(self.samples) - self.colluders

    def public(self) -> PublicFacts:
        """The public facts about the rows."""
        return PublicFacts(
            sites=len(self.samples),
            total=sum(self.samples),
            largest=max(self.samples),
            dimension=1,
            loss=self.loss,
            regularization=_REGULARIZATION,
        )

    def tables(self) -> SumTables:
        return self.method.tables(self.public(), self.rounds)

    def prepared(self) -> PreparedSums:
        """The run, without its rows."""
        sites = len(self.samples)
        public = {"loss": self.loss, "regularization": _REGULARIZATION}
        return PreparedSums(
            Network.without_rows(self.samples, [sites - 1] * sites, total=sites, dimension=1, **public),
            self.tables(),
        )

    def run_facts(self) -> RunFacts:
        """The facts that the accountant needs about the run."""
        return self.prepared().run_facts(simulated=True)

    def site_facts(self) -> SiteFacts:
        """The facts that the accountant needs about the site of the record."""
        return self.prepared().site_facts()[0]

    def share(self, site: int, record: float, tables: SumTables) -> PrivateHalf:
        """What a site adds to each sum when site 0 holds this record."""
        X = np.zeros((self.samples[site], 1))
        X[0] = record if site == 0 else 0.0
        rows = LocalObjective(
            X,
            np.ones(len(X)),
            loss=self.loss,
            C=1.0,
            regularization=_REGULARIZATION,
            sites=len(self.samples),
        )
        half: PrivateHalf = tables.program.private_half(rows, sum(self.samples))
        return half

    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        """What the colluders make of the total of round t, (runs, length)."""
        facts = tables.sums[t - 1]
        value = 0 if t == 1 else round(self.pull / facts.grid)
        return np.full((runs, facts.length), value, dtype=np.int64).view(np.uint64)


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


def whitened_case(epsilon: float = 2.0, delta: float = 0.2) -> MaskedCase:
    """The same with whitened descent: the colluders make all moments 0, so that rows are long and clipped."""
    return replace(
        masked_case(epsilon, delta),
        name="whitened descent, one colluder",
        about="opposite records, clipped slopes, three uneven sites, a colluder who speaks last",
        method=MaskedDescent(epsilon=epsilon, delta=delta, colluding=1, whiten=True, share=0.01),
        rounds=4,
        loss=Logistic(),
    )


def masked_scores(
    case: SumsCase, runs: int, streams: tuple[Streams, Streams], ledger: MemoryLedger
) -> dict[str, tuple[Array, Array]]:
    """Score -> (runs on the old data, runs on the new); every charge of site 0 goes to the ledger once."""
    tables = case.tables()
    path = _path(case, tables)
    old = _seen(case, case.old, runs, streams[0], path, ledger)
    new = _seen(case, case.new, runs, streams[1], path, None)
    moved, middle = _clean(case, tables, path)
    sums = [_likelihood(case, tables, part.opened, moved, middle) for part in (old, new)]
    scores = {"honest sums": (sums[0], sums[1])}
    if len(moved[-2]) == len(moved[-1]):
        lean = np.sign(moved[-2] - moved[-1]).sum()
        bare = [lean * _difference(part.sent) for part in (old, new)]
        scores["one site's messages"] = bare[0], bare[1]
    return scores


def _path(case: SumsCase, tables: SumTables) -> list[Any]:
    """The point before each round, to which the colluding sites lead every run."""
    states = [tables.program.start(1)]
    for t in range(1, case.rounds):
        states.append(tables.after(states[-1], case.total(tables, t, 1)))
    return states


def _seen(
    case: SumsCase,
    record: float,
    runs: int,
    streams: Streams,
    path: list[Any],
    ledger: MemoryLedger | None,
) -> _Seen:
    """All rounds of many runs at once."""
    tables, root = case.tables(), os.urandom(32)
    keys = [process_keys(tables, root, site) for site in range(len(case.samples))]

    def after(state: Any, total: Message) -> Any:
        return path[state.t + 1] if state.t + 1 < len(path) else path[-1]

    def node(site: int) -> SumsNode:
        share = case.share(site, record, tables)
        return SumsNode(np.array([site]), [share], tables, [keys[site]], streams, runs, after)

    loops = [
        _messages(loop(node(site), path[0]), ledger if site == 0 else None) for site in range(case.honest)
    ]
    seen = _Seen([], [])
    messages = [next(one).message[0] for one in loops]
    for t in range(1, case.rounds + 1):
        masks = [_open(key, tables, t, runs) for key in keys[case.honest :]]
        seen.opened.append(add_up([*messages, *masks]).view(np.int64))
        seen.sent.append(messages[0])
        if t < case.rounds:
            total = case.total(tables, t, runs)  # the colluders add what the honest sum lacks
            messages = [one.send(total).message[0] for one in loops]
    return seen


def _open(keys: PairKeys, tables: SumTables, t: int, runs: int) -> Message:
    """A colluder's masks of this round: added to what the honest sent, they take its share of masks away."""
    facts = tables.sums[t - 1]
    mask = keys.mask(facts.t, facts.part, (runs, facts.length))
    keys.advance()
    return mask


def _clean(case: SumsCase, tables: SumTables, path: list[Any]) -> tuple[list[Array], list[Array]]:
    """By how much the records move the honest sum of each round, and its middle between them, (length,)."""
    moved, middle = [], []
    for facts, state in zip(tables.sums, path, strict=True):
        both = []
        for record in (case.old, case.new):
            shares = [case.share(site, record, tables) for site in range(case.honest)]
            query = tables.program.query(state)
            both.append(sum(one.integers(query, facts)[0].astype(np.float64) for one in shares))
        moved.append(np.asarray(both[0] - both[1]))
        middle.append(np.asarray(both[0] + both[1]) / 2)
    return moved, middle


def _likelihood(
    case: SumsCase,
    tables: SumTables,
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


def _messages(steps: Loop, ledger: MemoryLedger | None) -> Generator[Send, Message, None]:
    """The messages of a node; charged to the ledger where there is one."""
    answer = None
    while True:
        try:
            effect = steps.send(answer)
        except StopIteration:
            return
        if isinstance(effect, Send):
            answer = yield effect
        else:
            answer = None
            if ledger is not None:
                ledger.charge_round(effect.charges)
