"""job.toml of a network: public settings, equal at all sites. Every message contains the job's hash."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, PrivateAttr, model_validator

from ...core import checks
from ...core.canonical import digest
from ...core.errors import SiteError
from ...graph import Graph
from ...jobfile.job_format import SEVERAL, TRAIN, Job
from ...jobfile.toml_fields import LISTED, ScheduleField
from ...jobfile.toml_files import about_files, read_file
from .parties import Name, NetworkSite, Relay

if TYPE_CHECKING:  # tables import scikit-learn, which a site with arrays does not need
    from ...data.tables.unit_ball import UnitBallScaling
    from ...methods.base import Network
    from ...methods.job_settings import JobSettings
    from ...methods.sums.program import SumTables
    from ...objective.persons import Persons
    from ...questions.asking import Asking
    from ...questions.question import Question

_LOOPBACK = re.compile(r"tls/(localhost|127\.[0-9.]+|\[::1\]):")
HASH_FORM = 3  # version of the hashed text; if two sites differ in it, the error says so
_WIDEST = 10**6  # features
_TRAIN = "is read by `taciturn train` only; leave it out"
_OWNER = "belongs in site.toml: the owner of the rows decides where they are and how they are read"


class NetworkJob(Job):
    """The entries of job.toml. With the method "masked", masks hide each site's message, and only sums of all
    messages are visible; with "penalty", the noise of each site protects its rows.

    epsilon : for "masked" only: the cost of the run at `delta`. With "penalty", the cost depends on the noise
        that each site chooses.
    dual_step, clip, grid, tol : for "penalty" only. `dual_step` is theta. Every released number is a multiple
        of `grid` within +-`clip`. `tol` is how far the solver's result may be from the exact minimiser.
    quorum : how many of the N sites must stay: more than (N + colluding) / 2. The run continues without sites
        that drop out, and admits sites that return. Without a quorum no site may drop out.
    dimension : d, the number of columns, for rows in arrays. For tables, give `schema` and `label` instead; d
        follows from these two.
    """

    name: Name
    epsilon: float | None = Field(default=None, gt=0, le=1e6)
    delta: float = Field(default=1e-5, gt=0, lt=1)
    rounds: int = Field(ge=1, le=10**5)
    C: float = Field(gt=0)
    regularization: float = Field(gt=0)
    dual_step: ScheduleField | None = None
    clip: float | None = Field(default=None, gt=0)
    grid: float | None = Field(default=None, gt=0)
    tol: float | None = Field(default=None, gt=0)
    width: int | None = Field(default=None, ge=1, le=_WIDEST, alias="dimension")
    sites: Annotated[tuple[NetworkSite, ...], LISTED] = Field(min_length=1, max_length=65535)
    relay: Relay | None = None
    quorum: int | None = Field(default=None, ge=2)
    _folder: Path = PrivateAttr(default=Path())

    elsewhere: ClassVar = dict.fromkeys(("max_rounds", "noise", "effort"), _TRAIN) | dict.fromkeys(
        ("csv", "budget", "sites.data", "sites.csv"), _OWNER
    )

    @model_validator(mode="before")
    @classmethod
    def _without_table(cls, entries: Any) -> Any:
        """By default, a job on arrays has no intercept, because an array can have a constant column."""
        if isinstance(entries, dict) and "dimension" in entries and entries.get("kind", TRAIN) == TRAIN:
            return {"intercept": False} | entries
        return entries

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        records = sum(site.samples for site in self.sites)
        checks.usual_delta(self.delta, records, insisted=self.large_delta)
        if self.relay is not None and self.relay.name in self.names:
            raise ValueError(f"`relay.name` must differ from the names of the sites; got {self.relay.name!r}")
        self._check_keys()
        for i, j in self.graph.edges if self.relay is None else ():
            if self.sites[i].endpoint is None and self.sites[j].endpoint is None:
                pair = f"neither {self.names[i]} nor {self.names[j]}"
                raise ValueError(
                    f"`links`: {pair} has an endpoint; give one of them an `endpoint`, or add a `relay`"
                )
        self._check_quorum()
        if self.kind != TRAIN:
            return self._check_questions()
        if (self.width is None) == (self.table is None):
            raise ValueError("give either `dimension`, if rows are arrays, or `schema`, if rows are tables")
        if self.label is not None and "scale" in self.label.model_fields_set:
            raise ValueError(f"`label.scale` {_TRAIN}: in a network the loss sets the scale of the targets")
        if self.several and not (_methods()[self.method].several and self.loss.name == "logistic"):
            raise ValueError("three or more `label.classes` need method 'masked' and the loss 'logistic'")
        if self.table is None and (self.intercept or "missing" in self.model_fields_set):
            key = "intercept" if self.intercept else "missing"
            raise ValueError(f"`{key}` needs a `schema`; with `dimension`, the arrays are used as they are")
        if self.dimension > _WIDEST:
            raise ValueError(f"`schema` must give at most {_WIDEST} features; it gives {self.dimension}")
        self._check_method()
        for site in self.sites:
            if self.C > site.samples:
                raise ValueError(
                    f"`C` must not exceed the samples of {site.name}, {site.samples}; got {self.C:g}"
                )
        return self

    def _check_keys(self) -> None:
        """Check that the job lists a different signing key for every party, or no signing keys."""
        found = [site.key for site in self.sites] + ([] if self.relay is None else [self.relay.key])
        given = [key for key in found if key is not None]
        if given and (len(given) < len(found) or len(set(given)) < len(given)):
            raise ValueError(
                "`sites.key` must be given for every site, and `relay.key` for the relay, all different; or "
                "leave out every `key`"
            )

    @cached_property
    def keys(self) -> dict[str, str]:
        """The fingerprint of each party's signing key, by name; empty if an authority certifies the keys."""
        found = {site.name: site.key for site in self.sites}
        found |= {} if self.relay is None else {self.relay.name: self.relay.key}
        return {name: key for name, key in found.items() if key is not None}

    def _check_questions(self) -> Self:
        """Check a job that asks questions and trains no model: its entries, and each question by itself."""
        alien = [key for method, kind in _methods().items() if method != self.method for key in kind.keys]
        for name in (*alien, *(() if self.table is None else ("width",))):
            if getattr(self, name) is not None:
                key = "dimension" if name == "width" else name
                raise ValueError(f"`{key}` must be left out of a job of kind {self.kind!r}")
        if self.epsilon is None:
            raise ValueError(f"`epsilon` must be given for a job of kind {self.kind!r}")
        self._read_questions()
        return self

    def _read_questions(self) -> tuple[Question, ...]:
        from ...questions.kinds import read_questions

        return read_questions(self.questions, several=self.kind == SEVERAL)

    @cached_property
    def asking(self) -> Asking:
        """The questions of a job that learns no model."""
        from ...questions.asking import Asking
        from ...questions.question import PublicTable, Spending

        if self.kind == TRAIN or self.epsilon is None:
            raise SiteError(
                f"the job {self.name} trains a model (`kind` 'train'); only jobs of other kinds give answers."
            )
        schema = None if self.table is None else self.schema_
        public = PublicTable(
            schema, self.label, self.names, self._folder, self.width, self.person is not None
        )
        return Asking(self._read_questions(), public, Spending(self.epsilon, self.delta, self.colluding))

    @cached_property
    def network(self) -> Network:
        """The public facts about all sites, known before the run."""
        from ...methods.base import Network
        from ...objective.regularizers import L2

        degrees = tuple(len(near) for near in self.near)
        return Network(
            total=len(self.names),
            sites=tuple(range(len(self.names))),
            samples=tuple(site.samples for site in self.sites),
            degrees=degrees,
            names=self.names,
            dimension=self.dimension,
            loss=self.loss,
            C=self.C,
            regularization=self.regularization,
            regularizer=L2(),
            persons=self.persons,
        )

    def _check_quorum(self) -> None:
        """Check `quorum`: any two groups of this size must have an honest site in common."""
        if self.quorum is None:
            return
        if not _methods()[self.method].quorum:
            raise ValueError(f"`quorum` needs method 'masked'; the job has {self.method!r}")
        sites = len(self.sites)
        least = (sites + (sites - 1 if self.colluding is None else self.colluding)) // 2 + 1
        if not least <= self.quorum <= sites:
            raise ValueError(f"`quorum` must be from {least} to {sites} (all sites); got {self.quorum}")

    def _check_method(self) -> None:
        """Check that the job has all entries of its own method, and no entries of other methods."""
        for method, kind in _methods().items():
            for name in kind.keys:
                if (getattr(self, name) is not None) != (method == self.method):
                    must = "must be given:" if method == self.method else f"belongs to method {method!r}, but"
                    raise ValueError(f"`{name}` {must} the method of this job is {self.method!r}")
        _ = self.settings  # raises if a setting is impossible

    @cached_property
    def settings(self) -> JobSettings:
        """The method of this job with its settings."""
        if self.kind == TRAIN:
            return _methods()[self.method].of(self)
        from ...methods.job_settings import MaskedSettings

        prepared: Any = self.asking.method().prepare(self.network)
        return MaskedSettings(prepared)

    @property
    def sums(self) -> SumTables:
        """The job's sums and their noise. They follow from public facts, so they are equal at every site."""
        if self.settings.sums is None:
            raise SiteError(f"the job {self.name} uses no masked sums: its method is {self.method!r}.")
        return self.settings.sums

    @cached_property
    def ball(self) -> UnitBallScaling | None:
        """How a row with the intercept's constant is scaled to norm at most 1; None if it is not scaled."""
        if not (_methods()[self.method].scaled and self.intercept):
            return None
        from ...data.tables.unit_ball import UnitBallScaling  # imports scikit-learn: a second or more

        return UnitBallScaling(1.0, intercept=True)

    @cached_property
    def persons(self) -> Persons | None:
        """The public facts about the persons behind the rows."""
        import numpy as np

        from ...objective.persons import Persons

        counts = [site.samples for site in self.sites]
        return None if self.person is None else Persons((), np.array(counts), sum(counts))

    @cached_property
    def training_loss(self) -> Any:
        """The loss of the model: softmax if there are more than two classes."""
        from ...objective.softmax import Softmax

        told = None if self.label is None else self.label.told
        return Softmax(len(told)) if told is not None and self.several else self.loss

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return self.label is not None and len(self.label.told or ()) > 2

    @property
    def where(self) -> str:
        """Where the sites run: "folders" if all run on this machine, else "network"; "" for a rehearsal."""
        addresses = [site.endpoint for site in self.sites if site.endpoint is not None]
        addresses += [] if self.relay is None else [self.relay.endpoint]
        local = all(_LOOPBACK.match(address) for address in addresses)
        return "" if self.simulated else "folders" if local else "network"

    @cached_property
    def dimension(self) -> int:
        """d, the number of features; for questions, the number of columns of an array, or 1 for a table."""
        return len(self.feature_names) if self.kind == TRAIN else self.width or 1

    @property
    def columns(self) -> int:
        """The number of columns that the questions read."""
        return self.dimension if self.table is None else len(self.asking.reads)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the model's coefficients."""
        if self.table is None:
            return tuple(f"x{k}" for k in range(int(self.width or 0)))
        if self.encoding is None and self.missing != "indicator":  # avoids the encoder, which loads slowly
            return (*self.schema_.feature_names, *["intercept"] * self.intercept)
        from ...jobfile.job_rows import make_encoder

        return tuple(make_encoder(self, intercept=self.intercept).get_feature_names_out().tolist())

    @cached_property
    def graph(self) -> Graph:
        return self.linked(self.names)

    @cached_property
    def _entries(self) -> dict[str, NetworkSite]:
        return {entry.name: entry for entry in self.sites}

    def site(self, name: str) -> NetworkSite:
        if name in self._entries:
            return self._entries[name]
        raise SiteError(
            f"the job {self.name} has no site called {name!r}; its sites are {', '.join(self.names)}."
        )

    def neighbours(self, name: str) -> tuple[str, ...]:
        """The names of a site's neighbours, in the order of the job's list of sites."""
        return tuple(self.names[j] for j in self.near[self.names.index(name)])

    @cached_property
    def near(self) -> tuple[tuple[int, ...], ...]:
        """For every site, in the order of the job's list, the numbers of its neighbours."""
        return tuple(self.graph.neighbors(i) for i in range(len(self.names)))

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The job as plain values, which must be equal at all sites.

        Default values are left out. So the hash of a job does not change if a later release adds an entry.
        The layout of a schema and the endpoints are left out too: moving a site does not change the job.
        """
        away: dict[str, Any] = {"sites": {"__all__": {"endpoint"}}, "relay": {"endpoint"}}
        facts = self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=away)
        if self.missing == "row" and self.encoding is None:
            facts.pop("missing", None)  # the default
        return facts if self.table is None else facts | {"schema": self.schema_.to_dict()}

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the job as canonical JSON, which does not depend on the layout of the file."""
        return bytes.fromhex(digest({"form": HASH_FORM, "job": self.facts}))


def _methods() -> dict[str, type[JobSettings]]:
    from ...methods.job_settings import SETTINGS  # imports numpy, which many commands do not need

    return SETTINGS


@about_files
def load_job(path: Path) -> NetworkJob:
    """Read a job and check it as a whole. Files that the job names are in the folder of the job."""
    job = read_file(path, NetworkJob)
    if job.kind != TRAIN:
        job._folder = path.parent
        _ = job.asking.reads  # raises if these tables cannot answer a question
        job.__dict__["rounds"] = job.sums.rounds
    return job
