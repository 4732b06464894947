"""job.toml: what is public and the same at every site. Its hash is in every frame."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from ... import checks
from ...canonical import digest
from ...errors import ParameterError, SiteError
from ...graph import Graph
from ...toml import Facts
from .toml import about_files, read_file
from .toml_fields import LISTED, NAME, LossField, ScheduleField

if TYPE_CHECKING:  # tables bring scikit-learn with them, which a site that holds arrays need not load
    from ...data.tables.ball import Ball
    from ...data.tables.schema import Schema
    from ...masked.method import MaskedTables, PublicFacts
    from ...objective.persons import Persons

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
ENDPOINT = rf"tls/(\[[0-9a-fA-F:.]+\]|{_LABEL}(\.{_LABEL})*):[0-9]{{1,5}}"


def _endpoint(text: str) -> str:
    """A place that a call can go to: what no host or port can be, nobody tries to reach."""
    if not re.fullmatch(ENDPOINT, text) or not 0 < int(text.rpartition(":")[2]) < 2**16:
        raise ValueError("must be tls/HOST:PORT, as tls/alpha.example:7447 is, with a port of at most 65535")
    return text


Name = Annotated[str, Field(pattern=NAME)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
_LOOPBACK = re.compile(r"tls/(localhost|127\.[0-9.]+|\[::1\]):")
_MASKED = ("method", "epsilon", "colluding")
HASH_FORM = 2  # which text a job's hash is of; a release with another one says so, and not 'another job'
_WIDEST = 10**6  # features
_MASKED_ROUNDS = 10**4  # each has noise and a grid of its own, worked out before the first


class NetworkSite(Facts):
    """One party: its name, where it can be reached (nowhere, if it only connects outward), and B_i.

    samples : its rows; where the job has a `person` column its persons. How many rows these have is its own
        business, and nobody counts on it.
    """

    name: Name
    endpoint: Endpoint | None = None
    samples: int = Field(ge=1)


class NetworkLabel(Facts):
    """The column to learn; for classification also the value that counts as +1, every other being -1.

    classes : in place of `positive`, all values of which one is to be told, three or more.
    """

    column: str = Field(min_length=1)
    positive: str | None = None
    classes: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], LISTED] | None = Field(
        default=None, min_length=3
    )


class Relay(Facts):
    """A Zenoh router for sites that may only connect outward; it sees released values only."""

    name: Name
    endpoint: Endpoint


class PenaltySettings(NamedTuple):
    """What only the method "penalty" has."""

    dual_step: Any
    clip: float
    grid: float
    tol: float


class NetworkJob(Facts):
    """A run that several parties agreed on.

    method : "penalty", where each site protects its rows by itself, or "masked", where the sites add up sums
        of which nobody sees a part.
    rounds, C, regularization : T, C, rho.
    dual_step, clip, grid, tol : for "penalty": theta; every released number is a multiple of `grid` within
        +-`clip`; how far a solved vector may be from the exact minimiser, before its noise.
    epsilon, colluding : for "masked": what the run costs, with `delta`, while at most so many of the other
        sites work together.
    dimension : d; or `schema`, from which it follows, with `label`, for sites that hold tables. `intercept`
        adds a column of ones to tables, inside the bound on the rows.
    person : the column, or array, that says whose row it is; then all rows of a person together are covered.
        They must be at one site.
    large_delta : insists on a delta above one over the number of all records.
    seed : only for rehearsals: noise that can be replayed, so that everything made from it says `simulated`.
    """

    format: Literal["taciturn-job/1"]
    name: Name
    method: Literal["penalty", "masked"] = "penalty"
    rounds: int = Field(ge=1, le=10**5)
    loss: LossField
    C: float = Field(gt=0)
    regularization: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    large_delta: bool = False
    dual_step: ScheduleField | None = None
    clip: float | None = Field(default=None, gt=0)
    grid: float | None = Field(default=None, gt=0)
    tol: float | None = Field(default=None, gt=0)
    epsilon: float | None = Field(default=None, gt=0, le=1e6)
    colluding: int | None = Field(default=None, ge=0)
    width: int | None = Field(default=None, ge=1, le=_WIDEST, alias="dimension")
    table: dict[str, Any] | None = Field(default=None, alias="schema")
    label: NetworkLabel | None = None
    intercept: bool = False
    person: str | None = Field(default=None, min_length=1)
    seed: int | None = Field(default=None, ge=0)
    sites: Annotated[tuple[NetworkSite, ...], LISTED] = Field(min_length=2, max_length=65535)
    links: Annotated[tuple[Annotated[tuple[Name, Name], LISTED], ...], LISTED]
    relay: Relay | None = None

    @field_validator("table")
    @classmethod
    def _check_table(cls, entry: dict[str, Any] | None) -> dict[str, Any] | None:
        if entry is not None:
            try:
                _schema(entry)
            except ParameterError as error:
                raise ValueError(str(error)) from error
        return entry

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        names = [site.name for site in self.sites]
        if len(set(names)) < len(names):
            raise ValueError("`sites` must have different names")
        records = sum(site.samples for site in self.sites)
        try:
            checks.usual_delta(self.delta, records, insisted=self.large_delta)
        except ParameterError as error:
            raise ValueError(str(error).removesuffix(".")) from error
        if self.relay is not None and self.relay.name in names:
            raise ValueError("`relay.name` must differ from the names of the sites")
        known = set(names)
        for link in self.links:
            unknown = [name for name in link if name not in known]
            if unknown:
                raise ValueError(f"`links` must join sites of the job; got {unknown[0]!r}")
            if self.relay is None and all(self.site(name).endpoint is None for name in link):
                raise ValueError(
                    f"`links`: neither {link[0]} nor {link[1]} has an endpoint, and there is no relay"
                )
        if (self.width is None) == (self.table is None):
            raise ValueError("give either `dimension` or `schema`")
        if (self.table is None) != (self.label is None):
            raise ValueError("`schema` and `label`, the column to learn, go together")
        if self.label is not None:
            self._check_label(self.label)
        if self.intercept and self.table is None:
            raise ValueError("`intercept` needs a `schema`; with `dimension`, put the column into the data")
        if self.dimension > _WIDEST:
            raise ValueError(f"`schema` must make at most {_WIDEST} features; it makes {self.dimension}")
        self._check_persons()
        self._check_method()
        for site in self.sites:
            if self.C > site.samples:
                raise ValueError(
                    f"`C` must not exceed the samples of {site.name}, {site.samples}; got {self.C:g}"
                )
        return self

    def _check_label(self, label: NetworkLabel) -> None:
        """What is to be told apart, for classification and only there."""
        told = (label.positive is not None) + (label.classes is not None)
        if told != (self.loss.kind != "regression"):
            raise ValueError(
                "`label.positive`, or `label.classes`, must be given for classification, and only there"
            )
        if label.classes is None:
            return
        if len(set(label.classes)) < len(label.classes):
            raise ValueError("`label.classes` must differ")
        if not self.masked or self.loss.name != "logistic":
            raise ValueError("`label.classes` needs method 'masked' and the loss 'logistic'")

    def _check_persons(self) -> None:
        """Whose row it is, is no part of the row."""
        if self.person is not None and self.table is not None:
            used = {self.label.column if self.label else "", *_schema(self.table).names}
            if self.person in used:
                raise ValueError("`person` must be a column of its own: it says whose row it is")

    def _check_method(self) -> None:
        """What the method needs is there, and nothing that belongs to the other."""
        theirs = {"penalty": PenaltySettings._fields, "masked": _MASKED[1:]}
        for method, names in theirs.items():
            for name in names:
                if (getattr(self, name) is not None) != (method == self.method):
                    must = "must be given for" if method == self.method else "belongs to"
                    raise ValueError(f"`{name}` {must} method {method!r}; the job's is {self.method!r}")
        if self.masked and self.rounds > _MASKED_ROUNDS:
            raise ValueError(
                f"`rounds` must be at most {_MASKED_ROUNDS} with method 'masked'; got {self.rounds}"
            )
        if self.masked:
            _ = self.sums  # raises where a number cannot be
        elif not (self.penalty.clip / self.penalty.grid).is_integer():
            clip, grid = self.penalty.clip, self.penalty.grid
            raise ValueError(f"`clip` must be a whole multiple of `grid`; got {clip:g} and {grid:g}")

    @property
    def masked(self) -> bool:
        """Whether the sites send shares of sums, hidden by masks that cancel."""
        return self.method == "masked"

    @property
    def penalty(self) -> PenaltySettings:
        """What only the method "penalty" has."""
        if self.masked or self.clip is None or self.grid is None or self.tol is None:
            raise SiteError(f"the job {self.name} has no settings of method 'penalty'.")
        return PenaltySettings(self.dual_step, self.clip, self.grid, self.tol)

    @cached_property
    def sums(self) -> MaskedTables:
        """Every number of a masked run, from public facts alone: the same at every site."""
        from ...masked.method import MaskedDescent

        if self.epsilon is None or self.colluding is None:
            raise SiteError(f"the job {self.name} has no settings of method 'masked'.")
        constant = None if self.ball is None else self.ball.constant
        method = MaskedDescent(
            epsilon=self.epsilon, delta=self.delta, colluding=self.colluding, constant=constant
        )
        return method.tables(self.public_facts, self.rounds)

    @cached_property
    def ball(self) -> Ball | None:
        """Of a masked job with an intercept: how rows and their constant share the ball."""
        if not (self.masked and self.intercept):
            return None
        from ...data.tables.ball import Ball  # with pandas and scikit-learn: a second and more

        return Ball(1.0, intercept=True)

    @cached_property
    def persons(self) -> Persons | None:
        """What is public of the persons behind the rows."""
        import numpy as np

        from ...objective.persons import Persons

        counts = [site.samples for site in self.sites]
        return None if self.person is None else Persons((), np.array(counts), sum(counts))

    @cached_property
    def training_loss(self) -> Any:
        """The loss of the model: softmax where there are several classes."""
        from ...objective.softmax import Softmax

        classes = None if self.label is None else self.label.classes
        return self.loss if classes is None else Softmax(len(classes))

    @cached_property
    def public_facts(self) -> PublicFacts:
        """What everybody knows of the rows: the job says it all."""
        from ...masked.method import MANY_ROWS, PublicFacts

        samples = [site.samples for site in self.sites]
        return PublicFacts(
            sites=len(samples),
            total=sum(samples),
            largest=max(samples) if self.person is None else MANY_ROWS,
            dimension=self.dimension,
            loss=self.training_loss,
            regularization=self.regularization / (self.C * len(samples)),
        )

    @property
    def simulated(self) -> bool:
        """Whether the noise can be replayed."""
        return self.seed is not None

    @property
    def where(self) -> str:
        """Where the sites' rows are, as far as addresses tell; nothing for a rehearsal."""
        addresses = [site.endpoint for site in self.sites if site.endpoint is not None]
        addresses += [] if self.relay is None else [self.relay.endpoint]
        local = all(_LOOPBACK.match(address) for address in addresses)
        return "" if self.simulated else "folders" if local else "network"

    @cached_property
    def public_schema(self) -> Schema | None:
        """The public facts about the tables."""
        return None if self.table is None else _schema(self.table)

    @cached_property
    def dimension(self) -> int:
        """d"""
        return len(self.feature_names)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the model's numbers."""
        schema = self.public_schema
        if schema is None:
            return tuple(f"x{k}" for k in range(int(self.width or 0)))
        return (*schema.feature_names, *["intercept"] * self.intercept)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sites' names; a site's number is its place in here."""
        return tuple(site.name for site in self.sites)

    @cached_property
    def graph(self) -> Graph:
        """Who talks to whom."""
        number = {name: i for i, name in enumerate(self.names)}
        return Graph.from_edges([(number[a], number[b]) for a, b in self.links], n=len(self.sites))

    @cached_property
    def _entries(self) -> dict[str, NetworkSite]:
        return {entry.name: entry for entry in self.sites}

    def site(self, name: str) -> NetworkSite:
        """The entry of a site."""
        if name in self._entries:
            return self._entries[name]
        raise SiteError(f"the job {self.name} has no site called {name!r}; it has {', '.join(self.names)}.")

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Whom a site talks to, in the job's order."""
        return self.near[self.names.index(name)]

    @cached_property
    def near(self) -> tuple[tuple[str, ...], ...]:
        """The neighbours of every site, by its number."""
        each = range(len(self.names))
        return tuple(tuple(self.names[j] for j in self.graph.neighbors(i)) for i in each)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The job as plain facts. What has its usual value is left out, so that a key which a later release
        adds changes nothing for those who do not use it; so is how a schema was typed."""
        facts = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        schema = self.public_schema
        return facts if schema is None else facts | {"schema": schema.to_dict()}

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the job as canonical JSON: the layout of the file does not count, all else does."""
        return bytes.fromhex(digest({"form": HASH_FORM, "job": self.facts}))


def _schema(entry: dict[str, Any]) -> Schema:
    from ...data.tables.schema import Schema

    return Schema.from_dict(entry)


@about_files
def load_job(path: Path) -> NetworkJob:
    """The job in a file, checked as a whole."""
    job = read_file(path, NetworkJob)
    try:
        _ = job.graph
    except ParameterError as error:
        raise SiteError(f"{path}: `links`: {error}") from error
    return job
