"""job.toml of `taciturn train`: what to learn, from which files, within which budget; errors name lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from ..data.tables.files import CsvForm
from ..data.tables.schema import Schema
from ..errors import GraphError, ParameterError
from ..graph import Graph
from ..privacy.ledger.budget import Budget
from ..toml import Facts, complaint, read_toml
from .lines import line_of


class CsvFacts(Facts):
    """How the CSV files are written: `csv = {separator = ";", decimal = ",", encoding = "latin-1"}`."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        self.form()
        return self

    def form(self) -> CsvForm:
        """The same for the reader of tables."""
        return CsvForm(self.separator, self.decimal, self.encoding)


class TrainingSite(Facts):
    """One site: its name, and the file that holds its rows, from the folder of the job on."""

    name: str = Field(min_length=1)
    data: str = Field(min_length=1)
    csv: CsvFacts | None = None


class TrainingLabel(Facts):
    """The column to learn: the public list of its classes, or the public size of a usual value."""

    column: str = Field(min_length=1)
    classes: list[str] | None = Field(default=None, min_length=2)
    scale: float = Field(default=1.0, gt=0)

    @field_validator("classes", mode="before")
    @classmethod
    def _check_classes(cls, entry: Any) -> Any:
        if isinstance(entry, list) and not all(isinstance(label, str) for label in entry):
            words = json.dumps([str(label) for label in entry])
            raise ValueError(f"must be texts, written as in the files: classes = {words}")
        return entry


class SharedBudget(Facts):
    """`[budget]`: the file of a budget over several runs; `epsilon` and `delta` begin one."""

    ledger: str = Field(min_length=1)
    epsilon: float | None = Field(default=None, gt=0)
    delta: float | None = Field(default=None, ge=0, lt=1)

    def open(self, folder: Path) -> Budget:
        """The budget in the file, from the folder of the job on."""
        return Budget(folder / self.ledger, self.epsilon, self.delta)


class TrainingJob(Facts):
    """A training run, as a person writes it down.

    epsilon, delta : the budget of any one record, or person, for the whole run.
    large_delta : insists on a delta above one over their number.
    person : the column that says whose row it is; then all rows of a person together are covered.
    loss : "logistic", "smooth-hinge" (a support vector classifier) or "log-cosh" (a regression).
    graph : a family, or `links`, pairs of site names.
    csv : how the CSV files are written; a site may have its own.
    colluding : how many of the other sites may work together; left out: all of them.
    missing : what a missing value makes zero: its whole "row", or its own "field".
    budget : a file that all runs on these rows are charged to, whole and beforehand; see `taciturn.Budget`.
    seed : noise that can be replayed, for rehearsals; the certificate then says `simulated`.
    rounds, max_rounds, noise, C, regularization, effort : as for `taciturn.PrivateLogisticRegression`.
    """

    format: Literal["taciturn-training/1"]
    name: str = Field(min_length=1)
    epsilon: float = Field(gt=0)
    delta: float = Field(default=1e-5, ge=0, lt=1)
    large_delta: bool = False
    loss: Literal["logistic", "smooth-hinge", "log-cosh"] = "logistic"
    graph: Literal["complete", "ring", "star", "path"] = "complete"
    links: list[list[str]] | None = None
    colluding: int | None = Field(default=None, ge=0)
    person: str | None = Field(default=None, min_length=1)
    intercept: bool = True
    missing: Literal["row", "field"] = "row"
    rounds: int | None = Field(default=None, ge=1)
    max_rounds: int | None = Field(default=None, ge=1)
    noise: Literal["best", "gaussian", "norm"] = "best"
    C: float | None = Field(default=None, gt=0)
    regularization: float | None = Field(default=None, gt=0)
    effort: Literal["quick", "full"] = "full"
    seed: int | None = Field(default=None, ge=0)
    csv: CsvFacts = CsvFacts()
    budget: SharedBudget | None = None
    label: TrainingLabel
    sites: list[TrainingSite] = Field(min_length=2)
    table: dict[str, Any] = Field(alias="schema")

    @field_validator("table")
    @classmethod
    def _check_table(cls, entry: dict[str, Any]) -> dict[str, Any]:
        Schema.from_dict(entry)
        return entry

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if (self.label.classes is None) != (self.loss == "log-cosh"):
            raise ValueError("`label.classes` must be given for a classifier, and only there")
        if self.label.classes is not None and len(set(self.label.classes)) < len(self.label.classes):
            raise ValueError("`label.classes` must differ")
        if (k := _first_repeated(self.names)) is not None:
            raise ValueError(f"`sites.{k}.name` must differ from the names of the other sites")
        if (k := _first_repeated([Path(site.data) for site in self.sites])) is not None:
            raise ValueError(f"`sites.{k}.data` must be a file of its own: each record is at one site only")
        if self.rounds is not None and self.max_rounds is not None:
            raise ValueError("`max_rounds` must be left out where `rounds` is given")
        if self.budget is not None and self.seed is not None:
            raise ValueError("`seed` must be left out with a `budget`: replayable noise protects nobody")
        if self.label.column in self.schema_.names:
            raise ValueError(
                "`label.column` must not be among the columns of the schema: it is what is learnt"
            )
        if self.person is not None and self.person in (self.label.column, *self.schema_.names):
            raise ValueError("`person` must be a column of its own: it says whose row it is")
        self._links()
        if self.links is not None and "graph" in self.model_fields_set:
            raise ValueError("`graph` must be left out where `links` says who talks to whom")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The sites' names; a site's number is its place in here."""
        return tuple(site.name for site in self.sites)

    @property
    def schema_(self) -> Schema:
        """The public facts about the tables."""
        return Schema.from_dict(self.table)

    def network(self) -> str | Graph:
        """Who talks to whom: sites in the order of their sorted names, as the estimators number them."""
        return self.graph if self.links is None else self._links()

    def _links(self) -> Graph:
        number = {name: i for i, name in enumerate(sorted(self.names))}
        if self.links is None:
            return Graph.complete(len(number))
        for link in self.links:
            if len(link) != 2 or link[0] == link[1] or any(name not in number for name in link):
                raise ParameterError(f"`links` must be pairs of two sites' names; got {link}")
        try:
            return Graph.from_edges([(number[a], number[b]) for a, b in self.links], n=len(number))
        except GraphError as error:
            alone = sorted(set(number) - {name for link in self.links for name in link})
            which = f"; nobody is linked to {alone[0]}" if alone else ""
            raise ParameterError(f"`links` must join all sites, each pair once{which}") from error


def read_job(path: Path) -> TrainingJob:
    """The job in a file, checked as a whole; one line names the file, the line and the key otherwise."""
    text, entries = read_toml(path)
    try:
        return TrainingJob.model_validate(_numbers(entries))
    except ValidationError as error:
        found = complaint(error)
        line = line_of(text, found.path + _inside(found.path, found.message, entries))
        where = path if line is None else f"{path}, line {line}"
        raise ParameterError(f"{where}: {found}{found.more}") from error


def _first_repeated(values: Sequence[Any]) -> int | None:
    """The place of the first value that stood there before."""
    return next((k for k, value in enumerate(values) if value in values[:k]), None)


def _numbers(entries: dict[str, Any]) -> dict[str, Any]:
    """`epsilon = 1` is a number too."""
    floats = ("epsilon", "delta", "C", "regularization")
    found = {k: float(v) if k in floats and type(v) is int else v for k, v in entries.items()}
    for part, names in (("label", ("scale",)), ("budget", ("epsilon", "delta"))):
        inner = found.get(part)
        if isinstance(inner, dict):
            found[part] = {k: float(v) if k in names and type(v) is int else v for k, v in inner.items()}
    return found


def _inside(path: tuple[str | int, ...], message: str, entries: dict[str, Any]) -> tuple[str | int, ...]:
    """The rest of a path, from the key that the message begins with; a field of the schema by its name."""
    if not message.startswith("`"):
        return ()
    key = message.split("`")[1]
    if path != ("schema",):
        return tuple(int(part) if part.isdigit() else part for part in key.split("."))
    numbered = re.fullmatch(r"fields\[(\d+)\]", key)
    if numbered:
        return "fields", int(numbered[1])
    fields = entries["schema"].get("fields")
    names = [field.get("name") for field in fields if isinstance(field, dict)] if fields else []
    name = key.rsplit(".", 1)[0]
    return ("fields", names.index(name)) if name in names else ("fields",)
