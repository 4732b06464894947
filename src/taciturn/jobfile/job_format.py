"""The class `Job`: the content of a job file. A job is a task for several sites, with a privacy budget.

The keys in this module are common to `taciturn train` and `taciturn site`; each adds keys of its own. All
content of a job is public. The owner of the rows states in another file where the rows are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from ..core.errors import GraphError, ParameterError
from ..core.toml import Facts
from ..graph import Graph
from ..methods.job_methods import JOB_METHODS, misplaced_key, usual_method
from ..objective.losses import Logistic
from .toml_fields import LISTED, LossField

if TYPE_CHECKING:  # tables import scikit-learn, which a site with arrays does not need
    from ..data.tables.schema import Schema

FORMAT = 2
TRAIN, SEVERAL = "train", "several"
Kind = Literal["train", "describe", "evaluate", "survival", "correlations", "glm", "program", "several"]
KINDS: tuple[str, ...] = get_args(Kind)
"""The kinds of jobs. "train" learns a model. "several" asks all questions in `[[questions]]`; each other kind
asks one question."""
OLDER: dict[Any, dict[str, Any]] = {"taciturn-training/1": {}, "taciturn-job/1": {"intercept": False}}
"""Older formats that are still read, each with its own defaults for keys that a file leaves out."""

_OF_MODELS = "loss rounds max_rounds C regularization intercept missing encoding noise effort whiten".split()
"""The keys of a job that learns a model; a job of questions must not have them."""
_FIXED = {"rounds": 1, "C": 1.0, "regularization": 1.0, "intercept": False}
"""Placeholders for these keys in a job of questions. Its number of rounds follows from the questions."""

Text = Annotated[str, Field(min_length=1)]
if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(JOB_METHODS)]


class JobSite(Facts):
    """One site. `samples` is the site's number of rows, or of persons if the job has a `person` column."""

    name: Text
    samples: int | None = Field(default=None, ge=1)


class Label(Facts):
    """The column to learn.

    classes : the public list of the classes. If a label is not in the list, its row becomes zeros.
    positive : instead of `classes`, the label of the positive class. All others are the negative class.
    scale : only for a regression: the size of a typical value of the label. It must be a public number.
    """

    column: Text
    classes: Annotated[tuple[Text, ...], LISTED] | None = Field(default=None, min_length=2)
    positive: Text | None = None
    scale: float = Field(default=1.0, gt=0)

    @field_validator("classes", mode="before")
    @classmethod
    def _check_classes(cls, entry: Any) -> Any:
        if isinstance(entry, list) and not all(isinstance(label, str) for label in entry):
            words = json.dumps([str(label) for label in entry])
            raise ValueError(f"must be texts, spelt as in the table: write classes = {words}")
        return entry

    @property
    def told(self) -> tuple[str, ...] | None:
        """The names of the classes; None for a regression."""
        return self.classes if self.positive is None else (f"not {self.positive}", self.positive)


class MapFacts(Facts):
    """The table `[encoding]`: curves and surfaces of the numeric columns; see `taciturn.data.FeatureMap`.

    curves : the number of knots of each numeric column's curve.
    surfaces : the number of random cosines, which represent interactions of columns. For both keys, "auto"
        computes this number from the number of records or persons, and from the job's epsilon and delta.
    seed : the public seed of the cosines.
    """

    curves: int | Literal["auto"] = "auto"
    surfaces: int | Literal["auto"] = "auto"
    seed: int = Field(default=0, ge=0)


class Job(Facts):
    """A task for several sites, and its privacy budget.

    kind : "train" learns a model. "several" asks a list of `[[questions]]`, which share one budget; each
        question has its own `kind`. Every other kind asks one question. The keys of this question are in a
        table with the name of the kind, such as `[describe]`.
    epsilon, delta : the largest privacy cost of the whole run for any one record or person (see `unit`).
    large_delta : allows a delta above 1 / (number of records or persons).
    colluding : how many of the other sites may work together with an attacker; by default all of them.
    unit : what the guarantee protects: one "record", or one "person".
    person : for unit = "person": the column with the person's id. All rows of a person must be at one site.
    method : "penalty": each site protects its rows by its own noise. "masked": random masks hide the sums
        that a site sends, and only the totals over all sites are visible. Jobs that ask questions, and jobs
        with `colluding`, are always masked.
    whiten : for "penalty" in a network: the first rounds release noisy second moments of the rows, at a cost
        of mu = `whiten` (Gaussian differential privacy). The later rounds use coordinates in which the rows
        vary equally in all directions. A masked job chooses the cost of these moments itself.
    schema, label : the public facts about the tables, and the column to learn.
    intercept : whether the model has a constant term; the bound on the norm of a row includes this term.
    missing : what becomes zero if a value is missing: with "row" the whole row, with "field" only the numbers
        from this value. "indicator" is like "field", and adds a number that is 1 if the value is missing. The
        default is "indicator" if there is an `encoding`, else "row".
    encoding : curves and surfaces of the numeric columns. Without this key, each column has a linear effect.
    graph, links : which sites are linked. Give one of them: `graph`, the name of a family of graphs, or
        `links`, a list of pairs of site names.
    seed : makes the noise reproducible, for trials; all results are then marked `simulated`.
    """

    format: Literal[2]
    kind: Kind
    questions: Annotated[tuple[dict[str, Any], ...], LISTED] = Field(default=(), max_length=200)
    name: Text
    epsilon: float | None = Field(default=None, gt=0)
    delta: float = Field(default=1e-5, ge=0, lt=1)
    large_delta: bool = False
    colluding: int | None = Field(default=None, ge=0)
    unit: Literal["record", "person"] = "record"
    person: Text | None = None
    method: MethodName = "penalty"
    whiten: float | None = Field(default=None, gt=0, le=1e3)
    loss: LossField = Logistic()
    rounds: int | None = Field(default=None, ge=1)
    C: float | None = Field(default=None, gt=0)
    regularization: float | None = Field(default=None, gt=0)
    table: dict[str, Any] | None = Field(default=None, alias="schema")
    label: Label | None = None
    intercept: bool = True
    missing: Literal["row", "field", "indicator"] | None = None
    encoding: MapFacts | None = None
    family: Literal["complete", "ring", "star", "path"] = Field(default="complete", alias="graph")
    links: Annotated[tuple[Annotated[tuple[str, ...], LISTED], ...], LISTED] | None = None
    seed: int | None = Field(default=None, ge=0)
    sites: Annotated[tuple[JobSite, ...], LISTED] = Field(min_length=1, max_length=65535)

    elsewhere: ClassVar[Mapping[str, str]] = {}
    """The keys that jobs of this class must not have. The value of a key is the end of its error message."""

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, entries: Any) -> Any:
        """Convert earlier formats, refuse the keys in `elsewhere`, and add keys that follow from others."""
        if not isinstance(entries, Mapping):
            return entries
        found = dict(entries)
        if isinstance(found.get("format"), str) and found["format"] in OLDER:
            found = OLDER[found["format"]] | {"kind": "train"} | found | {"format": FORMAT}
        for key, site in _keys(found):
            if key in cls.elsewhere:
                raise ValueError(f"`{key.replace('.', f'.{site}.')}` {cls.elsewhere[key]}")
        found.setdefault("unit", "record" if found.get("person") is None else "person")
        asked = found.get("kind") in KINDS and found["kind"] != TRAIN
        found = _with_questions(found) if asked else found
        given = [key for key, value in found.items() if value is not None]
        found.setdefault("method", usual_method(given, asked=asked))
        return found

    @field_validator("table")
    @classmethod
    def _check_table(cls, entry: dict[str, Any] | None) -> dict[str, Any] | None:
        if entry is not None:
            read_schema(entry)
        return entry

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        """Check the keys of a job against each other, for every reader of the job."""
        if (k := first_repeated(self.names)) is not None:
            raise ValueError(f"`sites.{k}.name` must differ from the names of the other sites")
        if (self.unit == "person") != (self.person is not None):
            raise ValueError(
                "`person` (the column with persons' ids) must be given if `unit` is 'person', and only then"
            )
        if self.links is not None and "family" in self.model_fields_set:
            raise ValueError("`graph` must be left out if `links` lists the links")
        if self.label is not None:
            self._check_label(self.label)
        if self.kind == TRAIN:
            self._check_training()
        elif not JOB_METHODS[self.method].answers:
            able = " or ".join(repr(name) for name, method in JOB_METHODS.items() if method.answers)
            raise ValueError(
                f"`method` must be {able} for kind {self.kind!r}: the answers are computed from sums"
            )
        elif not self.questions:
            raise ValueError("`questions` must contain at least one question for kind 'several'")
        self.linked(self.names)
        return self

    def _check_training(self) -> None:
        """Check a job that learns a model: refuse keys of other methods, and keys that need a missing key."""
        if self.questions:
            raise ValueError("`questions` must be left out of a job of kind 'train'")
        given = [key for key in self.model_fields_set if getattr(self, key) is not None]
        if (wrong := misplaced_key(self.method, given)) is not None:
            raise ValueError(wrong)
        if (self.table is None) != (self.label is None):
            raise ValueError("`schema` and `label` (the column to learn) must be given together")
        if self.encoding is not None and self.table is None:
            raise ValueError(
                "`encoding` needs a `schema`: an encoding turns numeric columns of the schema into curves"
            )

    def _check_label(self, label: Label) -> None:
        """Check that only a classifier has classes, and that no other key names the label's column."""
        told = (label.classes is not None) + (label.positive is not None)
        if told > 1 or (self.kind == TRAIN and told != (self.loss.kind != "regression")):
            raise ValueError(
                "`label` must have one of `classes` and `positive` for a classifier, "
                "and neither for a regression"
            )
        if told and "scale" in label.model_fields_set:
            raise ValueError("`label.scale` belongs to a regression; leave it out of a classifier's job")
        if label.classes is not None and len(set(label.classes)) < len(label.classes):
            raise ValueError("`label.classes` must not list a class twice")
        columns = () if self.table is None else self.schema_.names
        if label.column in columns:
            raise ValueError(
                "`label.column` must not be among the columns of the schema: it is the column to learn"
            )
        if self.kind == TRAIN and self.person is not None and self.person in (label.column, *columns):
            raise ValueError("`person` must name a column that is neither the label nor in the schema")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The sites' names; a site's number is its position in this tuple."""
        return tuple(site.name for site in self.sites)

    @cached_property
    def schema_(self) -> Schema:
        """The public facts about the tables."""
        if self.table is None:
            raise ParameterError(f"the job {self.name} has no `schema`: its rows are arrays, not tables.")
        return read_schema(self.table)

    @property
    def simulated(self) -> bool:
        """Whether the job has a seed; anyone can then reproduce its noise."""
        return self.seed is not None

    def linked(self, names: Sequence[str]) -> Graph:
        """The graph of the links, with the sites numbered as in `names`."""
        number = {name: i for i, name in enumerate(names)}
        if self.links is None:
            return Graph.of(self.family, len(number))
        for link in self.links:
            if len(link) != 2 or link[0] == link[1] or any(name not in number for name in link):
                raise ParameterError(
                    f"`links` must be pairs of two different sites of the job; got {list(link)}"
                )
        try:
            return Graph.from_edges([(number[a], number[b]) for a, b in self.links], n=len(number))
        except GraphError as error:
            alone = sorted(set(number) - {name for link in self.links for name in link})
            which = f"; {alone[0]} has no link" if alone else ""
            raise ParameterError(f"`links` must connect all sites{which}") from error


def _with_questions(entries: dict[str, Any]) -> dict[str, Any]:
    """The keys of a job that asks questions, with the questions as a list. Raises for keys of a model."""
    kind = entries["kind"]
    for key in _OF_MODELS:
        if key in entries:
            raise ValueError(f"`{key}` belongs to kind 'train'; leave it out of a job of kind {kind!r}")
    if kind == SEVERAL:
        return entries | _FIXED
    own = entries.pop(kind, {})
    if "questions" in entries or not isinstance(own, Mapping):
        raise ValueError(
            f"`{kind}` must be a table with the keys of that kind; only kind 'several' has `questions`"
        )
    return entries | _FIXED | {"questions": [dict(own) | {"kind": kind}]}


def _keys(entries: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Pairs: (key, 0) for each key of a job, and (`sites.KEY`, k) for each key of its site k = 0, 1, ..."""
    yield from ((key, 0) for key in entries)
    sites = entries.get("sites")
    for k, site in enumerate(sites if isinstance(sites, list) else []):
        yield from ((f"sites.{key}", k) for key in (site if isinstance(site, Mapping) else ()))


def read_schema(entry: dict[str, Any]) -> Schema:
    """Read the schema in a job."""
    from ..data.tables.schema import Schema

    return Schema.from_dict(entry)


def first_repeated(values: Iterable[Any]) -> int | None:
    """The index of the first value that repeats an earlier one; None if all differ."""
    seen: set[Any] = set()
    for k, value in enumerate(values):
        if value in seen:
            return k
        seen.add(value)
    return None
