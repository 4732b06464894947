"""MaskedPlan: masked descent ready to run, what it will cost, and what it costs if more sites collude.

There is nothing to search: the rule is blind, and adapts itself to the public transcript while it runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import checks
from ..errors import ParameterError
from ..graph import Graph
from ..masked import accounts
from ..masked.method import MANY_ROWS, MaskedDescent, MaskedTables, PublicFacts
from ..masked.public import rule
from ..masked.public.losses import TrainingLoss
from ..notebook import facts_table
from ..objective.losses import Logistic
from ..objective.persons import Persons
from ..objective.softmax import Softmax
from ..privacy.accounting.shown import rounded_up, shown_delta
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import PLANNED, SiteFacts

REGULARIZATION = 1e-6  # rho / (C N): the rule stops in time, so that nothing else need hold the model back


@dataclass(frozen=True, eq=False)
class MaskedPlan:
    """A run of masked descent that stays within its budget against `method.colluding` other sites.

    method, rounds, C, regularization : what `simulate`, `train` and `Problem` take.
    certificate : what the run will have cost, computed from the settings.
    """

    method: MaskedDescent
    rounds: int
    facts: PublicFacts
    samples: tuple[int, ...]
    graph: Graph
    unit: str = "record"

    @property
    def C(self) -> float:  # noqa: N802 - the paper's letter, as everywhere
        return 1.0

    @property
    def regularization(self) -> float:
        return self.facts.regularization * self.facts.sites

    @property
    def delta(self) -> float:
        return self.method.delta

    @cached_property
    def tables(self) -> MaskedTables:
        """Every number of the run."""
        return self.method.tables(self.facts, self.rounds)

    @cached_property
    def certificate(self) -> Certificate:
        run = accounts.run_facts(
            self.tables,
            self.facts,
            C=self.C,
            regularization=self.regularization,
            simulated=False,
            marks=(PLANNED,),
            persons=Persons((), np.array(self.samples), self.facts.total) if self.unit == "person" else None,
        )
        sites: Sequence[SiteFacts] = accounts.site_facts(self.samples, self.graph.degrees.tolist())
        return Certificate.from_ledger(accounts.planned_ledger(self.tables, run, sites), self.delta)

    def sentence(self) -> str:
        """What the choice costs, in words."""
        sites, colluding = self.facts.sites, self.method.colluding or 0
        wide = math.sqrt(sites / (sites - colluding))
        return (
            f"Masked descent: the sums carry {wide:.3g} times the noise of a trusted centre, where noise of "
            f"each site's own would carry {math.sqrt(sites):.3g} times as much. The figure holds against any "
            f"{colluding} of the other {sites - 1} sites working together; if all of them do, epsilon is "
            f"{rounded_up(self.certificate.epsilon_against(None))}."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        certificate, sites = self.certificate, self.facts.sites
        return {
            "budget": {"epsilon": self.method.epsilon, "delta": self.delta},
            "epsilon": certificate.epsilon,
            "delta": self.delta,
            "unit": self.unit,
            "method": "masked",
            "colluding": self.method.colluding,
            "epsilon_against": [certificate.epsilon_against(c) for c in range(sites)],
            "rounds": self.rounds,
            "C": self.C,
            "regularization": self.regularization,
            "sentence": self.sentence(),
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __repr__(self) -> str:
        return (
            f"MaskedPlan(rounds={self.rounds}, colluding={self.method.colluding}, "
            f"epsilon={rounded_up(self.certificate.epsilon)}, delta={shown_delta(self.delta)})"
        )

    def _repr_html_(self) -> str:
        others = self.facts.sites - 1
        facts = {
            "epsilon": f"{rounded_up(self.certificate.epsilon)} at delta = {shown_delta(self.delta)}",
            "holds against": f"{self.method.colluding} of {others} other sites working together",
            "sites": f"{self.facts.sites}",
            "rounds": f"{self.rounds}",
            "noise": "discrete, masked",
        }
        return facts_table("Plan: nothing was run, nothing is spent", facts, self.sentence())


def plan_masked(
    *,
    epsilon: float,
    delta: float,
    samples: Sequence[int],
    graph: Graph,
    dimension: int,
    colluding: int,
    loss: TrainingLoss | None = None,
    outputs: int = 1,
    rounds: int | None = None,
    regularization: float | None = None,
    constant: float | None = None,
    unit: str = "record",
) -> MaskedPlan:
    """Masked descent for a budget; every number is public and fixed before the run.

    With unit "person" the samples are persons, each with any number of rows at one site.
    """
    if not 0 <= colluding < graph.n - 1:
        raise ParameterError(
            f"`colluding` must be from 0 to {graph.n - 2}, or None for all the others; got {colluding}. With "
            f"{graph.n} sites at least one must stay honest beside the one that is protected."
        )
    if delta == 0:
        raise ParameterError("`delta` must be above 0 with `colluding`; got 0: masked sums are never pure.")
    samples = [checks.whole("samples", count, least=1) for count in samples]
    kind = Softmax(outputs) if outputs > 1 else loss or Logistic()
    if outputs > 1 and loss is not None and not isinstance(loss, Logistic):
        raise ParameterError(
            f"`loss` must be logistic for several outputs with `colluding`; got {loss.name!r}: one release "
            "serves all classes of softmax, and of nothing else."
        )
    facts = PublicFacts(
        sites=graph.n,
        total=sum(samples),
        largest=MANY_ROWS if unit == "person" else max(samples),
        dimension=dimension,
        loss=kind,
        regularization=REGULARIZATION if regularization is None else regularization / graph.n,
    )
    method = MaskedDescent(epsilon=epsilon, delta=delta, colluding=colluding, constant=constant)
    usual = rule.ROUNDS if dimension <= rule.FULL else rule.ROUNDS_WIDE
    found = MaskedPlan(method, usual if rounds is None else rounds, facts, tuple(samples), graph, unit)
    _ = found.tables  # whatever is wrong is said now
    return found
