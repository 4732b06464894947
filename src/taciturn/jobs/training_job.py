"""Jobs with all tables on one machine: a public job file, and a private owner.toml that names the tables."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, model_validator

from ..core.errors import ParameterError
from ..core.toml import read_toml
from ..graph import Graph
from ..jobfile.job_format import OLDER, TRAIN, Job, JobSite, Label, first_repeated
from ..jobfile.job_rows import TableFile
from ..jobfile.owner_file import OWNER, CsvFacts, RowsEntry, SharedBudget, read_owner
from ..jobfile.toml_fields import LISTED
from ..jobfile.toml_files import check_entries, line_of

_NETWORK = "is read by `taciturn site` only; leave it out"


class TrainingSite(JobSite, RowsEntry):
    """One site, with the path of its file (relative to the folder of the job) or with its database."""


class OwnedJob(Job):
    """A job with all tables on one machine: the keys of the job file and of owner.toml together."""

    epsilon: float = Field(gt=0)
    csv: CsvFacts = Field(default_factory=CsvFacts)
    budget: SharedBudget | None = None
    sites: Annotated[tuple[TrainingSite, ...], LISTED] = Field(min_length=1)

    elsewhere: ClassVar = dict.fromkeys(
        ("dimension", "dual_step", "clip", "grid", "tol", "whiten", "relay", "sites.endpoint"), _NETWORK
    )

    @model_validator(mode="after")
    def _check_owned(self) -> Self:
        if self.budget is not None and self.seed is not None:
            raise ValueError(
                "`seed` must be left out if there is a `budget`: noise from a seed protects no one"
            )
        return self

    def files(self, folder: Path) -> list[TableFile]:
        """Where the rows of each site are. Raises if two sites have the same file or query."""
        places = (site.database or (folder / str(site.data)).resolve() for site in self.sites)
        if (k := first_repeated(places)) is not None:
            raise ParameterError(
                f"`rows.{self.names[k]}` in {OWNER} must differ from the rows of all other sites: each "
                "record is at one site only."
            )
        return [
            TableFile(site, folder / str(site.data), (site.csv or self.csv).form())
            if site.database is None
            else TableFile(site, site.database.source(folder))
            for site in self.sites
        ]

    def spending(self, folder: Path) -> AbstractContextManager[Any]:
        """A context that charges the costs inside its block to the owner's budget, if there is one."""
        return nullcontext() if self.budget is None else self.budget.open(folder)


class AskedJob(OwnedJob):
    """A job that asks questions about tables on one machine."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind == TRAIN:
            raise ValueError("`kind` must name a question; use `taciturn train` for jobs of kind 'train'")
        return self


class TrainingJob(OwnedJob):
    """A job that trains a model on one machine; `taciturn.PrivateLogisticRegression` explains its keys."""

    max_rounds: int | None = Field(default=None, ge=1)
    noise: Literal["best", "gaussian", "norm"] = "best"
    effort: Literal["quick", "full"] | None = None
    label: Label
    table: dict[str, Any] = Field(alias="schema")

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if self.kind != TRAIN:
            raise ValueError(f"`kind` must be 'train'; use `taciturn ask` for jobs of kind {self.kind!r}")
        if self.rounds is not None and self.max_rounds is not None:
            raise ValueError("`max_rounds` must be left out if `rounds` is given")
        if self.loss.name not in ("logistic", "smooth-hinge", "log-cosh"):
            raise ValueError("`loss` must be 'log-cosh' for a regression with `taciturn train`")
        return self

    def network(self) -> str | Graph:
        """The links between sites. The sites are numbered by their sorted names, as in the estimators."""
        return self.family if self.links is None else self.linked(sorted(self.names))


def read_job(path: Path) -> TrainingJob:
    """Read a job file and the owner.toml beside it. If a file is invalid, the error says why in one line."""
    return _read(path, TrainingJob)


def read_asked(path: Path) -> AskedJob:
    """Like `read_job`, for a job that asks questions."""
    return _read(path, AskedJob)


def kind_in(path: Path) -> str:
    """The `kind` of the job in a file. No other key is checked."""
    return str(read_toml(path)[1].get("kind", TRAIN))


Owned = TypeVar("Owned", bound=OwnedJob)


def _read(path: Path, model: type[Owned]) -> Owned:
    text, entries = read_toml(path)
    if entries.get("format") not in OLDER:  # in older formats the job itself says where the rows are
        entries = _with_owner(path, text, entries)
    return check_entries(path, model, entries, text)


def _with_owner(path: Path, text: str, entries: dict[str, Any]) -> dict[str, Any]:
    """The keys of a job file and of owner.toml together. Raises if a key of the owner is in the job file."""
    found = entries.get("sites")
    sites = [site for site in found if isinstance(site, dict)] if isinstance(found, list) else []
    theirs: list[tuple[str | int, ...]] = [(key,) for key in ("csv", "budget") if key in entries]
    theirs += [
        ("sites", k, key)
        for k, site in enumerate(sites)
        for key in ("data", "csv", "database")
        if key in site
    ]
    if theirs:
        key = ".".join(map(str, theirs[0]))
        raise ParameterError(
            f"{path}, line {line_of(text, theirs[0])}: `{key}` belongs in {OWNER} in the same folder: the "
            "owner of the rows decides where the rows are and what may be spent on them."
        )
    owner = read_owner(path, [name for site in sites if isinstance(name := site.get("name"), str)])
    plain = owner.model_dump(exclude_unset=True)
    rows = plain.pop("rows")
    merged = [site | rows.get(site.get("name"), {}) for site in sites]
    return entries | plain | ({"sites": merged} if merged else {})
