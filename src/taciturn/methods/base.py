"""The interface of a method to engines, sites and planners.

A `Method` is what a user writes: a frozen dataclass. `prepare` turns it into a `PreparedMethod` once the
public facts of the network are known: every number of the run, checked, before anything is spent. A node is
some sites side by side, each array with a leading axis of sites; one real site is a node of length 1.
`loop.py` says in which order a node computes, charges, sends and hears.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..core.types import Array
from ..graph import Graph
from ..objective.persons import Persons
from ..objective.regularizers import L2
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import RoundCharges, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger

Audience = Literal["neighbours", "everybody"]
"""What a site receives in a round: the sum of its neighbours' messages, or of all sites' messages."""


class AnyProblem(Protocol):
    """The rows and the aim of all sites: a `Problem`, a `SoftmaxProblem`, a `SourcedProblem` or a table.

    Everything but `site` is public.
    """

    @property
    def n(self) -> int: ...
    @property
    def samples(self) -> NDArray[np.int64]: ...
    @property
    def dimension(self) -> int: ...
    @property
    def loss(self) -> Any: ...
    @property
    def C(self) -> float: ...  # noqa: N802
    @property
    def regularization(self) -> float: ...
    @property
    def regularizer(self) -> Any: ...
    @property
    def persons(self) -> Persons | None: ...
    def site(self, i: int) -> Any: ...
    def require_unit_rows(self) -> None: ...


_AIM = ("loss", "C", "regularization", "regularizer", "persons")


@dataclass(frozen=True, eq=False)
class Network:
    """The public facts about a run's sites before it starts: the problem and the links, without rows.

    total : N, the number of sites.
    sites : the numbers of those that are described here; all of them, or the one that this process runs.
    samples, degrees, names : B_i, V_i and the name of each of these; samples are empty while rows are unread.
    """

    total: int
    sites: tuple[int, ...]
    samples: tuple[int, ...]
    degrees: tuple[int, ...]
    names: tuple[str, ...]
    dimension: int
    loss: Any
    C: float
    regularization: float
    regularizer: Any
    persons: Persons | None = None

    @classmethod
    def of(cls, problem: AnyProblem, graph: Graph, names: Sequence[str] = ()) -> Network:
        """The public facts of a problem over a graph."""
        unread = bool(getattr(problem, "unread", False))
        return cls(
            total=graph.n,
            sites=tuple(range(graph.n)),
            samples=() if unread else tuple(problem.samples.tolist()),
            degrees=tuple(graph.degrees.tolist()),
            names=tuple(names),
            dimension=0 if unread else problem.dimension,
            **{name: getattr(problem, name) for name in _AIM},
        )

    @classmethod
    def without_rows(
        cls, samples: Iterable[int], degrees: Iterable[int], *, total: int, dimension: int, **public: Any
    ) -> Network:
        """Sites 0, 1, ... of which only numbers are known: those of a plan, or of an audit."""
        usual = {"loss": None, "C": 1.0, "regularization": 0.0, "regularizer": L2()}
        numbers = tuple(map(int, samples)), tuple(map(int, degrees))
        return cls(total, tuple(range(len(numbers[0]))), *numbers, (), dimension, **{**usual, **public})

    def facts(self) -> dict[str, Any]:
        """The accountant's facts about the network, as `RunFacts` names them."""
        shared = {"sites": self.total, "dimension": self.dimension, "C": self.C}
        shared["regularization"] = self.regularization
        if (persons := self.persons) is None:
            return {**shared, "unit": "record"}
        most = {"rows_per_person": persons.most_rows, "sites_per_person": persons.most_sites}
        return {**shared, "unit": "person", "persons": persons.total, **most}

    @property
    def units(self) -> int:
        """n, the public number of records, or of persons, where all sites are described."""
        return sum(self.samples) if self.persons is None else self.persons.total

    def part(self, own: range) -> Network:
        """The same network, described for some of its sites."""
        each = ("sites", "samples", "degrees", "names")
        return replace(self, **{name: getattr(self, name)[own.start : own.stop] for name in each})


@dataclass(frozen=True)
class RunOptions:
    """Options beside the method; None for those that were not given.

    real : whether the noise is secret. A real run needs settings under which no solve can fail.
    tol, start, strict, idealised : see `tt.simulate` and `tt.train`. A method refuses those without effect.
    """

    real: bool = False
    tol: float | None = None
    start: str | None = None
    strict: bool | None = None
    idealised: bool | None = None


class UnreadRowsError(LookupError):
    """The numbers of a method depend on how many rows there are, and the rows have not been read yet."""


UNSAID = RunOptions()
"""A simulation with the usual settings."""


@runtime_checkable
class Method(Protocol):
    """The interface of a method for `simulate`, `train`, the estimators and jobs."""

    def prepare(self, network: Network, rounds: int, options: RunOptions = UNSAID) -> PreparedMethod:
        """Return every number of the run, checked, before anything is spent."""
        ...


@runtime_checkable
class OwnRounds(Method, Protocol):
    """A method that sets the number of rounds itself if the caller does not."""

    def prepare(self, network: Network, rounds: int = 0, options: RunOptions = UNSAID) -> PreparedMethod:
        """The same; 0 stands for as many rounds as there are."""
        ...


class Stepping(Protocol):
    """The interface of a node for the loop: a message, its charge, and the state after an answer."""

    @property
    def rounds(self) -> int: ...

    def message(self, state: Any) -> Any | None:
        """The next messages of these sites, with noise; None if a real run's computation failed."""
        ...

    def charges(self, t: int) -> RoundCharges:
        """The cost of the messages of round t."""
        ...

    def after(self, state: Any, message: Any, heard: Any) -> Any:
        """The state after a round in which these sites sent `message` and heard `heard`."""
        ...


class PreparedMethod(ABC):
    """A method whose every number is fixed. Schedules, noise and audience follow from public facts alone."""

    network: Network
    private: bool = True
    resumable: bool = False
    """Whether a simulation may be stopped and go on from a checkpoint."""
    solves: bool = False
    """Whether a site solves a problem in each round, which takes many passes over its rows."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rounds the run has."""

    @property
    def model_size(self) -> int:
        """How many numbers a site's model has."""
        return self.network.dimension

    @abstractmethod
    def method_facts(self, *, simulated: bool) -> dict[str, Any]:
        """What `RunFacts` holds about the method, and whatever differs from the network's own numbers."""

    def run_facts(
        self, *, simulated: bool, where: str = "", outputs: int = 1, marks: tuple[str, ...] = ()
    ) -> RunFacts:
        """The facts that the accountant needs about the run as a whole."""
        given = {"simulated": simulated, "where": where, "outputs": outputs, "marks": marks}
        facts = {**self.network.facts(), **given, "rounds": self.rounds}
        return RunFacts(**{**facts, **self.method_facts(simulated=simulated)})

    @abstractmethod
    def charges(self, t: int) -> RoundCharges:
        """What the sites of `network.sites` release in round t."""

    @abstractmethod
    def hears(self, t: int) -> Audience:
        """The receivers of the messages of round t: neighbours or all sites."""

    @abstractmethod
    def first(self, sites: Sequence[int], repeats: int, seed: int | None) -> Array | None:
        """The public start values of these sites, (sites, repeats, d)."""

    @abstractmethod
    def nodes(
        self, objectives: Sequence[Any], cuts: Sequence[range], *, seed: int | None, repeats: int
    ) -> list[Any]:
        """One node for each range of `network.sites`, which hold these rows."""

    @abstractmethod
    def part(self, own: range) -> PreparedMethod:
        """The same run as some neighbouring sites must know it: sent elsewhere, it drags no others along."""

    def describe(self) -> dict[str, Any]:
        """Settings of the run beside the method itself, as plain JSON."""
        return {}

    def fingerprint(self) -> Mapping[str, Any]:
        """The numbers that decide the bits of a run, beside its facts: a checkpoint belongs to them."""
        return {}

    def coordinates(self, node: Any, state: Any) -> Array | None:
        """V of every repeat, (repeats, d, d), where a row x counts as V'x, shrunk to norm 1; else None."""
        return None

    def site_facts(self) -> list[SiteFacts]:
        """B_i, V_i and the name of each site."""
        network = self.network
        names = network.names or ("",) * len(network.sites)
        rows = zip(network.sites, network.samples, network.degrees, names, strict=True)
        return [SiteFacts(site=i, samples=B, degree=V, name=name) for i, B, V, name in rows]

    def price(self, run: RunFacts) -> MemoryLedger:
        """The ledger that these sites will hold after the last round: every charge is known beforehand."""
        ledger = MemoryLedger(run, self.site_facts())
        for t in range(1, self.rounds + 1):
            ledger.charge_round(self.charges(t))
        return ledger

    def forecast(self, run: RunFacts, delta: float) -> Certificate:
        """The cost of the whole run."""
        return Certificate.from_ledger(self.price(run), delta)


def site_numbers(network: Network) -> NDArray[np.int64]:
    """The numbers of the sites that are described, as an array."""
    return np.array(network.sites, dtype=np.int64)
