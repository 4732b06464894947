"""The interface between a method and the engines, sites and planners that use it.

A method says what the sites of a network compute and send to each other in every round. A `Method` is a
frozen dataclass with the user's settings. Its function `prepare` gets the public facts of the network and
returns a `PreparedMethod`, which contains all numbers of the run. They are checked before any privacy budget
is spent. A node is an object that computes the messages of one or more sites. The first two axes of its
arrays are sites and repeats (independent repetitions of a simulation). To charge a message is to record its
privacy cost. `loop.py` fixes the order in which a node computes, charges, sends and receives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from ..graph import Graph
from ..objective.persons import Persons
from ..objective.regularizers import L2
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import Charge, RoundCharges, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger

Audience = Literal["neighbours", "everybody"]
"""What a site receives in a round: the sum of its neighbours' messages, or the sum of all sites' messages."""


class AnyProblem(Protocol):
    """The rows and the objective of all sites, such as a `Problem` or `SourcedProblem`.

    Only what `site` returns is private: the rows and the objective of one site.
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
    """The public facts about a network before a run: the objective, and facts about some or all of its sites.

    total : N, the number of sites in the network.
    sites : the numbers of the sites that this object describes: all sites of the network, or only some.
    samples, degrees, names : for each site in `sites`, its number B_i of rows (or of persons, if `persons`
        is set), its number of neighbours V_i, and its name. `samples` is empty until the rows are read.
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
        """The facts about sites 0, 1, ... of which only the numbers of rows and neighbours are known.

        Plans and audits use this function, because they have no rows.
        """
        usual = {"loss": None, "C": 1.0, "regularization": 0.0, "regularizer": L2()}
        numbers = tuple(map(int, samples)), tuple(map(int, degrees))
        return cls(total, tuple(range(len(numbers[0]))), *numbers, (), dimension, **{**usual, **public})

    def facts(self) -> dict[str, Any]:
        """The facts about the network that the privacy accountant needs, as fields of `RunFacts`."""
        shared = {"sites": self.total, "dimension": self.dimension, "C": self.C}
        shared["regularization"] = self.regularization
        if (persons := self.persons) is None:
            return {**shared, "unit": "record"}
        most = {"rows_per_person": persons.most_rows, "sites_per_person": persons.most_sites}
        return {**shared, "unit": "person", "persons": persons.total, **most}

    @property
    def units(self) -> int:
        """n, the public number of records or persons; valid only if `sites` lists all sites."""
        return sum(self.samples) if self.persons is None else self.persons.total

    def part(self, own: range) -> Network:
        """The same network, but with facts only about the sites at the positions `own`."""
        each = ("sites", "samples", "degrees", "names")
        return replace(self, **{name: getattr(self, name)[own.start : own.stop] for name in each})


@dataclass(frozen=True)
class RunOptions:
    """The options of a run that are not settings of its method. All but `real` are None if not given.

    real : whether the noise is secret. In a simulation it is not, because it comes from a seed.
    tol, start, strict, idealised : see `tt.simulate` and `tt.train`. A method refuses an option that would
        have no effect on it.
    """

    real: bool = False
    tol: float | None = None
    start: str | None = None
    strict: bool | None = None
    idealised: bool | None = None

    def __post_init__(self) -> None:
        for name in ("strict", "idealised"):
            if getattr(self, name) is not None:
                checks.flag(name, getattr(self, name))

    def refuse(self, *names: str, of: str) -> None:
        """Raise if one of these options is given, because it has no effect. `of` names the method."""
        for name in names:
            if getattr(self, name) is not None:
                raise ParameterError(f"`{name}` must be left out for {of}; got {getattr(self, name)}.")


class UnreadRowsError(LookupError):
    """Raised if the settings of a method depend on rows that are not read yet. The error names the method.

    `runtime/setup.py` catches this error, reads the rows and prepares the run again.
    """


UNSAID = RunOptions()
"""The options of a simulation with the default settings."""


@runtime_checkable
class Method(Protocol):
    """The interface of a method for `simulate`, `train`, the estimators and jobs."""

    def prepare(self, network: Network, rounds: int, options: RunOptions = UNSAID) -> PreparedMethod:
        """Return every number of the run, checked before any budget is spent."""
        ...


@runtime_checkable
class OwnRounds(Method, Protocol):
    """A method that sets the number of rounds if the caller gives none."""

    def prepare(self, network: Network, rounds: int = 0, options: RunOptions = UNSAID) -> PreparedMethod:
        """Return every number of the run. With `rounds=0` the method sets the number of rounds."""
        ...


class Stepping(Protocol):
    """What `loop` needs from a node: its next message, the charge for this message, and the next state."""

    @property
    def rounds(self) -> int: ...

    def message(self, state: Any) -> Any | None:
        """The next messages of the node's sites, with noise; None if the computation of a real run failed."""
        ...

    def charges(self, t: int) -> RoundCharges:
        """The cost of the messages of round t."""
        ...

    def after(self, state: Any, message: Any, heard: Any) -> Any:
        """The state after a round in which the node's sites sent `message` and received `heard`."""
        ...


class PreparedMethod(ABC):
    """A method with all its numbers fixed. The numbers follow from public facts alone."""

    network: Network
    private: bool = True
    resumable: bool = False
    """Whether a simulation may be stopped and continued from a checkpoint."""
    solves: bool = False
    """Whether a site solves an optimisation problem in each round, with many passes over its rows."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The number of rounds of the run."""

    @property
    def model_size(self) -> int:
        """The number of entries of a site's model."""
        return self.network.dimension

    @abstractmethod
    def method_facts(self, *, simulated: bool) -> dict[str, Any]:
        """The fields of `RunFacts` that describe the method. They override the facts of the network."""

    def run_facts(
        self, *, simulated: bool, where: str = "", outputs: int = 1, marks: tuple[str, ...] = ()
    ) -> RunFacts:
        """The facts that the accountant needs about the run as a whole."""
        given = {"simulated": simulated, "where": where, "outputs": outputs, "marks": marks}
        facts = {**self.network.facts(), **given, "rounds": self.rounds}
        return RunFacts(**{**facts, **self.method_facts(simulated=simulated)})

    @abstractmethod
    def charges(self, t: int) -> RoundCharges:
        """The charges for what the sites in `network.sites` release in round t."""

    @abstractmethod
    def hears(self, t: int) -> Audience:
        """From which sites a site receives messages in round t: from its neighbours, or from all sites."""

    @abstractmethod
    def first(self, sites: Sequence[int], repeats: int, seed: int | None) -> Array | None:
        """The public start vectors of these sites, (sites, repeats, d); None without start vectors."""

    @abstractmethod
    def nodes(
        self, objectives: Sequence[Any], cuts: Sequence[range], *, seed: int | None, repeats: int
    ) -> list[Any]:
        """One node for each range of positions in `cuts`. objectives[k] has the rows of network.sites[k]."""

    @abstractmethod
    def part(self, own: range) -> PreparedMethod:
        """The same run for a range of sites only, so that a worker receives nothing about other sites."""

    def describe(self) -> dict[str, Any]:
        """Settings of the run that are stored with its results, as plain JSON."""
        return {}

    def fingerprint(self) -> Mapping[str, Any]:
        """The numbers that must be the same in a checkpoint and in the run that resumes from it.

        The numbers in `RunFacts` must be the same too, and are not repeated here.
        """
        return {}

    def coordinates(self, node: Any, state: Any) -> Array | None:
        """The matrix V of each repeat, if the run replaces each row x by V'x; else None.

        Vectors V'x that are longer than 1 are scaled to norm 1.
        """
        return None

    def site_facts(self) -> list[SiteFacts]:
        """The number of rows B_i, the number of neighbours V_i, the name and the schedules of each site."""
        network = self.network
        names = network.names or ("",) * len(network.sites)
        rows = enumerate(zip(network.sites, network.samples, network.degrees, names, strict=True))
        return [
            SiteFacts(site=i, samples=B, degree=V, name=name, **self.schedules_of(row))
            for row, (i, B, V, name) in rows
        ]

    def schedules_of(self, row: int) -> dict[str, Any]:
        """The schedules of the site at position `row`, as fields of `SiteFacts`."""
        return {}

    def price(self, run: RunFacts) -> MemoryLedger:
        """A ledger with the charges of all rounds, which are known before the run."""
        ledger = MemoryLedger(run, self.site_facts())
        for t in range(1, self.rounds + 1):
            ledger.charge_round(self.charges(t))
        return ledger

    def forecast(self, run: RunFacts, delta: float) -> Certificate:
        """The certificate of the whole run, computed before the run."""
        return Certificate.from_ledger(self.price(run), delta)


Links = tuple[tuple[int, ...], ...]
"""The neighbours of every site of the network."""


class SitesMethod(PreparedMethod):
    """A prepared method that can also run with one process per site; `network` then describes one site."""

    padded: bool = False
    """Whether random masks hide the messages. The keys of the masks are kept in volatile memory only."""

    @abstractmethod
    def at_site(self, rows: Any, samples: Sequence[int], links: Links, seed: int | None) -> Any:
        """The site that this process runs. `samples` : the number of rows (or persons) of every site."""

    def released(self, run: RunFacts, rounds: Sequence[int]) -> tuple[RunFacts, list[Charge]]:
        """The facts and charges of a site that sent messages in these rounds.

        A round that is listed twice is charged twice.
        """
        return replace(run, rounds=len(rounds)), self._renumbered(rounds)

    def _renumbered(self, rounds: Sequence[int], after: int = 0) -> list[Charge]:
        """The charges of these rounds, renumbered after + 1, after + 2, ..."""
        return [next(self.charges(t).each())._replace(t=k) for k, t in enumerate(rounds, start=after + 1)]

    @abstractmethod
    def warm_up(self, rows: Any, seed: int | None) -> None:
        """Load the compiled code of the first rounds, by a computation on made-up rows or sums."""


def site_metrics(sites: Sequence[Any], models: Array) -> tuple[Array, Array]:
    """Two arrays (sites, repeats) for models on each site's rows: mean losses, and qualities.

    A quality is the accuracy of a classifier, or the mean absolute error of a regression.
    """
    found = [site.metrics(model) for site, model in zip(sites, models, strict=True)]
    losses, qualities = (np.stack(part) for part in zip(*found, strict=True))
    return losses, qualities


def site_numbers(network: Network) -> NDArray[np.int64]:
    """`network.sites` as an array."""
    return np.array(network.sites, dtype=np.int64)
