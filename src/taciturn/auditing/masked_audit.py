"""An audit of masked sums with sites of different sizes; some sites collude and send their messages last.

In a masked sum, each site adds random masks to its share, which is what its rows contribute to the sum. The
masks hide the share and cancel in the total. The last sites in the list collude with the observer. They know
the masks that they share with honest sites, wait for the honest messages of each round and compute the sum of
the honest sites. Then they choose their own messages so that the total has a value of their choice: they keep
the descent where the replaced record has the largest effect. The code of real runs (`SumsNode`) makes every
honest message: it computes the share, rounds it to the grid, adds noise and masks, and charges the cost.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from ..graph import Graph
from ..methods.base import Network
from ..methods.loop import Store, loop, stored
from ..methods.programs.glm.regression import HESSIAN, MEAT, MOMENTS, OUTCOME, Regression
from ..methods.programs.masked_descent import MaskedDescent, PublicFacts
from ..methods.programs.own_program import OwnProgram, ProgramTable, UnitRows
from ..methods.sums.masks import Message
from ..methods.sums.node import SumsNode
from ..methods.sums.prepared import PreparedSums, process_keys
from ..methods.sums.program import PrivateHalf, SumTables
from ..methods.sums.sums import add_up
from ..objective.local import LocalObjective
from ..objective.losses import Logistic, Loss, SmoothHinge
from ..privacy.facts import RunFacts, SiteFacts
from ..privacy.ledger.memory import Ledger
from ..rng import Streams

_REGULARIZATION = 1e-3
_Y = 0.999  # the outcome of the record of a regression: its residual is just below the clipping bound


@dataclass(frozen=True, kw_only=True)
class SumsCase(ABC):
    """A run of several sites on either of two neighbouring data sets, which differ in one record of site 0.

    samples : the number of records of each site.
    old, new : the value of the differing record in each data set.
    colluders : the number of sites that collude with the observer (the last sites); the method may assume a
        different number.
    delta : the delta at which epsilon is compared.
    more : the factor on the number of runs.
    """

    name: str
    about: str
    samples: tuple[int, ...]
    rounds: int
    old: float = 1.0
    new: float = -1.0
    colluders: int = 1
    delta: float = 0.05
    more: int = 1

    @property
    def honest(self) -> int:
        return len(self.samples) - self.colluders

    @abstractmethod
    def prepared(self) -> PreparedSums:
        """The run, without its rows."""

    def tables(self) -> SumTables:
        """All sums of the run, with their bounds and noise."""
        return self.prepared().tables

    @abstractmethod
    def rows(self, site: int, record: float) -> Any:
        """The rows of a site if site 0 has this record."""

    @abstractmethod
    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        """The total that the colluders choose for round t, (runs, length)."""

    def share(self, site: int, record: float, tables: SumTables) -> PrivateHalf:
        """The object that computes the shares of a site from its rows, if site 0 has this record."""
        half: PrivateHalf = tables.program.private_half(self.rows(site, record), sum(self.samples))
        return half

    def observe(
        self, runs: int, streams: tuple[Streams, Streams], ledger: Ledger | None = None
    ) -> tuple[dict[str, tuple[Array, Array]], None]:
        """(each score in the runs on the old and on the new data, None).

        None stands for ln(p_old / p_new), which cannot be computed exactly here. `ledger` records each charge
        of site 0 once.
        """
        tables = self.tables()
        path = _path(self, tables)
        old = _seen(self, self.old, runs, streams[0], path, ledger)
        new = _seen(self, self.new, runs, streams[1], path, None)
        moved, middle = _clean(self, tables, path)

        def log_ratio(opened: list[NDArray[np.int64]]) -> Array:
            """ln p_old / p_new of the honest sums, (runs,)."""
            rounds = zip(tables.sums, opened, moved, middle, strict=True)
            each = [(seen - mid) @ move / (self.honest * facts.std**2) for facts, seen, move, mid in rounds]
            return np.asarray(np.sum(each, axis=0))

        scores = {"honest sums": (log_ratio(old.opened), log_ratio(new.opened))}
        if len(moved[-2]) == len(moved[-1]):  # if a mask were used twice, it would cancel in this difference
            lean = np.sign(moved[-2] - moved[-1]).sum()
            last = [(part.sent[-2] - part.sent[-1]).view(np.int64).sum(axis=1) for part in (old, new)]
            scores["one site's messages"] = lean * last[0].astype(float), lean * last[1].astype(float)
        return scores, None

    def run_facts(self) -> RunFacts:
        """The facts that the accountant needs about the run."""
        return self.prepared().run_facts(simulated=True)

    def site_facts(self) -> SiteFacts:
        """The facts that the accountant needs about the site of the record."""
        return self.prepared().site_facts()[0]


@dataclass(frozen=True, kw_only=True)
class MaskedCase(SumsCase):
    """Masked descent in one dimension. All records except the replaced record are 0, like an invalid row.

    pull : the mean gradient that the colluding sites make all sites see; 0 keeps the descent at its start.
    """

    method: MaskedDescent
    rounds: int = 3
    pull: float = 0.0
    loss: Loss = field(default_factory=SmoothHinge)
    more: int = 4

    def prepared(self) -> PreparedSums:
        sites, total = len(self.samples), sum(self.samples)
        model: Any = {"dimension": 1, "loss": self.loss, "regularization": _REGULARIZATION}
        public = PublicFacts(sites=sites, total=total, largest=max(self.samples), **model)
        network = Network.without_rows(self.samples, [sites - 1] * sites, total=sites, **model)
        return PreparedSums(network, self.method.tables(public, self.rounds))

    def rows(self, site: int, record: float) -> LocalObjective:
        X = np.zeros((self.samples[site], 1))
        X[0] = record if site == 0 else 0.0
        options: Any = {"loss": self.loss, "C": 1.0, "regularization": _REGULARIZATION}
        return LocalObjective(X, np.ones(len(X)), **options, sites=len(self.samples))

    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        facts = tables.sums[t - 1]
        value = 0 if t == 1 else round(self.pull / facts.grid)  # the first sum is not a gradient
        return np.full((runs, facts.length), value, dtype=np.int64).view(np.uint64)


@dataclass(frozen=True, kw_only=True)
class RegressionCase(SumsCase):
    """All sixteen sums of a linear regression on one column, at three sites of different sizes.

    A colluding site chooses every total so that one record has the largest effect on the real program. The
    totals determine the coordinates and the bound at which residuals are clipped; the model stays at 0. The
    old and the new record then have norm b, the largest norm of a row. Their residuals are +1 and -1, at the
    clipping bound. The cosine between the two records is c. Replacing one record by the other moves the sums:

        score      moves by b sqrt(2 + 2c), most at c = 1; the certified bound is 2 b sqrt(1.12)
        matrices   move by sqrt(2 - 2c^2), most at c = 0; the certified bound is sqrt 2

    No pair of records is the worst for score and matrices alike. The largest mu for any c is 0.85 times the
    certified mu.

    cosine : c, in the coordinates that the colluding site chooses.
    """

    samples: tuple[int, ...] = (200, 900, 400)
    rounds: int = 16
    cosine: float = 0.37
    epsilon: float = 2.0
    delta: float = 0.2
    colluding: int = 1

    def prepared(self) -> PreparedSums:
        rows = [UnitRows(np.zeros((1, 3))) for _ in self.samples]
        network = Network.of(ProgramTable(rows, np.array(self.samples), 3), Graph.complete(len(self.samples)))
        method = OwnProgram(Regression("gaussian", 2, 1), self.epsilon, self.delta, self.colluding, columns=3)
        return method.prepare(network)

    def rows(self, site: int, record: float) -> UnitRows:
        """The rows of a site. All cells are missing, except for the record of site 0."""
        X = np.full((1, 3), np.nan)
        if site == 0:
            X[0] = record / math.sqrt(2.0), 1.0 / math.sqrt(2.0), record * _Y
        return UnitRows(X)

    def total(self, tables: SumTables, t: int, runs: int) -> Message:
        step, facts = tables.program.plan[t - 1], tables.sums[t - 1]
        values = self._wanted(step.name.split()[0], t, facts.length) / step.bound
        whole = np.rint(values / facts.grid).astype(np.int64)
        return np.tile(whole, (runs, 1)).view(np.uint64)

    def _wanted(self, kind: str, t: int, length: int) -> Array:
        """The chosen total: moments give the cosine, residuals are at the clipping bound, the score is 0."""
        values = np.zeros(length)
        if kind == OUTCOME:
            values[[12, 27]] = 0.5  # a spread of 0.375: residuals are clipped at 1
        elif kind == MOMENTS:
            first = [1.0 / (3.125 * (1.0 - self.cosine)), 0.0, 1.0 / (3.125 * (1.0 + self.cosine))]
            values[:] = first if t == 1 else [0.32, 0.0, 0.3201]  # later totals change nothing
        elif kind not in (HESSIAN, MEAT):
            values[-3:] = 0.2
        return values


class _Seen(NamedTuple):
    """What the colluders learn in every round: the honest sum and the message of site 0, (runs, length)."""

    opened: list[NDArray[np.int64]]
    sent: list[Message]


def masked_case(epsilon: float = 2.0, delta: float = 0.2) -> MaskedCase:
    """Three sites of different sizes, one of which colludes. The bound is nearly tight."""
    return MaskedCase(
        name="masked sums, one colluder",
        about="opposite records, smooth hinge, three uneven sites, a colluder who speaks last",
        samples=(2, 9, 4),
        method=MaskedDescent(epsilon=epsilon, delta=delta, colluding=1, share=1e-6),
        delta=delta,
    )


def whitened_case(epsilon: float = 2.0, delta: float = 0.2) -> MaskedCase:
    """`masked_case` with whitened descent.

    The colluders make all moments 0, so that whitened rows are long and are clipped.
    """
    return replace(
        masked_case(epsilon, delta),
        name="whitened descent, one colluder",
        about="opposite records, clipped slopes, three uneven sites, a colluder who speaks last",
        method=MaskedDescent(epsilon=epsilon, delta=delta, colluding=1, whiten=True, share=0.01),
        rounds=4,
        loss=Logistic(),
    )


def regression_case() -> RegressionCase:
    """The case with all sums of one regression and the pair of records that gives the largest mu."""
    return RegressionCase(
        name="regression, one colluder",
        about="opposite residuals, all sixteen sums, three uneven sites, a colluder who chooses every total",
    )


def _path(case: SumsCase, tables: SumTables) -> list[Any]:
    """The state before each round. It is equal in all runs, because the colluding sites choose the totals."""
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
    ledger: Ledger | None,
) -> _Seen:
    """What the colluders see in all rounds of many runs at once."""
    tables, root = case.tables(), os.urandom(32)
    keys = [process_keys(tables, root, site) for site in range(len(case.samples))]

    def after(state: Any, total: Message) -> Any:
        return path[state.t + 1] if state.t + 1 < len(path) else path[-1]

    def node(site: int) -> SumsNode:
        share = case.share(site, record, tables)
        return SumsNode(np.array([site]), [share], tables, [keys[site]], streams, runs, after)

    def charge(effect: Store) -> None:
        if ledger is not None and effect.charges.sites[0] == 0:
            ledger.charge_round(effect.charges)

    loops = [stored(loop(node(site), path[0]), charge) for site in range(case.honest)]
    seen = _Seen([], [])
    messages = [next(one).message[0] for one in loops]
    for t in range(1, case.rounds + 1):
        facts = tables.sums[t - 1]  # the colluders' masks cancel the masks that honest sites share with them
        masks = [key.mask(facts.t, facts.part, (runs, facts.length)) for key in keys[case.honest :]]
        for key in keys[case.honest :]:
            key.advance()
        seen.opened.append(add_up([*messages, *masks]).view(np.int64))
        seen.sent.append(messages[0])
        if t < case.rounds:
            total = case.total(tables, t, runs)  # the colluders' messages make up the rest
            messages = [one.send(total).message[0] for one in loops]
    return seen


def _clean(case: SumsCase, tables: SumTables, path: list[Any]) -> tuple[list[Array], list[Array]]:
    """(differences, means) of two sums of the honest sites in each round.

    One sum is computed with the old record, the other with the new record. The sums have no noise. Each entry
    has the shape (length,).
    """
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
