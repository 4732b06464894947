"""The format of a figure's TOML file: the settings that its numbers depend on, and how to draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from ...data.tables.schema import Schema
from ...jobfile.toml_fields import NoiseField, ScheduleField, SchedulesField
from ...schedules import Constant

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Word = Annotated[str, Field(min_length=1)]
Colour = Annotated[str, Field(pattern="^#[0-9A-Fa-f]{6}$")]
FileStem = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}$")]


def public_schema(columns: Mapping[str, Any]) -> Schema:
    """The schema that a figure's file gives in short form."""
    return Schema.of(**{name: bool if entry == "boolean" else entry for name, entry in columns.items()})


class FigureTable(BaseModel):
    """The base class of the tables in the file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class OwnLabel(FigureTable):
    """The column to predict, and the value that counts as +1; every other value is -1."""

    column: str
    positive: str


class FigureData(FigureTable):
    """The rows of a figure, and how they are distributed to sites.

    name : "adult", "breast-cancer", or "table" for your own CSV or Parquet file, with the next three keys.
    file : the path of your file, relative to the folder of the TOML file.
    columns : the public facts of each column, as for `Schema.of`: [low, high], a list of words, "boolean".
    label : the column to predict, and which of its words is +1.
    limit : the number of rows to use, drawn at random; without it, all rows are used.
    deal : "evenly"; "unevenly", `least` rows each and the rest in shares ~ Dirichlet(concentration).
    """

    name: Literal["adult", "breast-cancer", "table"]
    file: str | None = None
    columns: dict[str, Any] | None = None
    label: OwnLabel | None = None
    scaling: Literal["paper", "public"] = "paper"
    rows: Literal["clip", "scale"] = "clip"
    limit: Count | None = None
    sites: Annotated[int, Field(ge=2)]
    deal: Literal["evenly", "unevenly"]
    seed: Seed
    concentration: Positive = 1.0
    least: Count = 1

    @model_validator(mode="after")
    def _whole(self) -> FigureData:
        own = (self.file, self.columns, self.label)
        if (self.name == "table") != any(part is not None for part in own):
            raise ValueError('`file`, `columns` and `label` must be given for name = "table", and only there')
        if self.name == "table":
            if any(part is None for part in own):
                raise ValueError("`file`, `columns` and `label` must be given together")
            public_schema(self.columns or {})
        return self

    def identity(self) -> dict[str, Any]:
        """The facts that results depend on, in addition to the content of the files. The path of a file does
        not count."""
        own = self.name == "table"
        return self.model_dump(exclude={"file"} if own else {"file", "columns", "label"})


class FigureGraph(FigureTable):
    """The graph of the links; `degree` and `seed` belong to a random regular graph."""

    kind: Literal["ring", "complete", "star", "path", "random_regular"]
    degree: Count | None = None
    seed: Seed = 0

    @model_validator(mode="after")
    def _complete(self) -> FigureGraph:
        if (self.kind == "random_regular") != (self.degree is not None):
            raise ValueError("`degree` must be given for random_regular, and only there")
        return self


class FigureProblem(FigureTable):
    """C, rho and the loss of eq. 1."""

    loss: Literal["logistic"] = "logistic"
    C: Positive
    regularization: Positive


class FigureRun(FigureTable):
    """Rounds, repeats and start; `delta` is used for our (epsilon, delta) next to the paper's bound."""

    rounds: Count
    repeats: Count
    seed: Seed
    start: Literal["zeros", "random"]
    tol: Positive
    delta: Fraction


class BudgetNoise(FigureTable):
    """Norm noise whose first rate is the largest that the budget (epsilon, the run's delta) allows."""

    kind: Literal["budget"]
    epsilon: Positive
    ratio: Positive = 1.0


def _noise_form(entry: Any) -> str:
    budget = isinstance(entry, BudgetNoise) or (isinstance(entry, Mapping) and entry.get("kind") == "budget")
    return "budget" if budget else "noise"


Noise = Annotated[
    Annotated[BudgetNoise, Tag("budget")] | Annotated[NoiseField, Tag("noise")], Discriminator(_noise_form)
]


class FigurePanel(FigureTable):
    """A row of panels; a curve states the name of the row that it belongs to."""

    name: Word
    title: str


class FigureCurve(FigureTable):
    """One method with its parameters, and how its line is drawn.

    name : the name of the curve in tables and reports; `label` is its legend and may contain $mathematics$.
    panel : the name of the row of panels that the curve belongs to; not needed in a figure with one row.
    regularization : rho of this curve, if it differs from the figure's.
    fit : False if the loss axis should not extend to this curve; its last mean is then written as text.
    """

    name: Word
    label: Word
    method: Literal["admm", "madmm", "penalty", "dual", "primal"]
    panel: str = ""
    penalty: SchedulesField
    dual_step: SchedulesField | None = None
    noise: Noise | None = None
    regularization: Positive | None = None
    colour: Colour
    marker: Literal["o", "s", "^", "v", "D", "P", "X", "none"] = "none"
    line: Literal["solid", "dashed", "dotted", "dashdot"] = "solid"
    fit: bool = True

    @model_validator(mode="after")
    def _complete(self) -> FigureCurve:
        private = self.method in ("penalty", "dual", "primal")
        if private != (self.noise is not None):
            raise ValueError(f"`noise` must {'' if private else 'not '}be given for {self.method}")
        if self.method in ("madmm", "penalty") and self.dual_step is None:
            raise ValueError(f"`dual_step` must be given for {self.method}")
        if self.method in ("admm", "dual") and not isinstance(self.penalty, Constant):
            raise ValueError(f"`penalty` must be one number for {self.method}, which keeps it constant")
        if self.method in ("admm", "dual", "primal") and self.dual_step is not None:
            raise ValueError(f"`dual_step` must be left out for {self.method}: it equals the penalty")
        return self


class FigureFile(FigureTable):
    """The base of all figures: data, network, objective and run; {repeats} in `caption` becomes a number."""

    name: FileStem
    title: str
    caption: str = ""
    data: FigureData
    graph: FigureGraph
    problem: FigureProblem
    run: Any

    @model_validator(mode="before")
    @classmethod
    def _count_runs(cls, stated: Any) -> Any:
        caption, run = stated.get("caption"), stated.get("run")
        if not isinstance(caption, str) or not isinstance(run, Mapping):
            return stated
        return {**stated, "caption": caption.replace("{repeats}", str(run.get("repeats")))}


class Figure(FigureFile):
    """Curves of several methods.

    layout : "convergence" shows L(t) and the distance to the optimum; "tradeoff" shows L(t) with its range
        beside the paper's P(t) and our (epsilon, delta).
    """

    layout: Literal["convergence", "tradeoff"]
    run: FigureRun
    panels: list[FigurePanel] = []
    curves: Annotated[list[FigureCurve], Field(min_length=1)]

    @model_validator(mode="after")
    def _fitting(self) -> Figure:
        names = [(curve.panel, curve.name) for curve in self.curves]
        if len(set(names)) < len(names):
            raise ValueError("`name` must be different for every curve of a panel")
        rows = {panel.name for panel in self.panels} or {""}
        for k, curve in enumerate(self.curves):
            if curve.panel not in rows:
                raise ValueError(f"`curves.{k}.panel` must name one of `panels`; got {curve.panel!r}")
            for name, spec in (("penalty", curve.penalty), ("dual_step", curve.dual_step)):
                if isinstance(spec, list) and len(spec) != self.data.sites:
                    raise ValueError(
                        f"`curves.{k}.{name}` must have one entry for each of {self.data.sites} sites; "
                        f"got {len(spec)}"
                    )
        return self

    @property
    def rows(self) -> tuple[FigurePanel, ...]:
        """The rows of panels, in order; one without a title if none are named."""
        return tuple(self.panels) or (FigurePanel.model_construct(name="", title=""),)


class AttackRun(FigureTable):
    """The records under attack, the number of runs, and the method."""

    rounds: Count
    repeats: Count
    seed: Seed
    tol: Positive
    site: Seed
    records: Annotated[list[Seed], Field(min_length=1)]
    penalty: ScheduleField
    dual_step: Positive
    delta: Fraction


class NoiseLevel(FigureTable):
    """A noise level: norm noise of this rate, or no noise."""

    name: Word
    title: str
    rate: Positive | None = None


class Observer(FigureTable):
    """An attacker, and the style of its line."""

    name: Literal["known", "constant", "estimated", "geometric"]
    label: str
    colour: Colour
    marker: Literal["o", "s", "^", "v", "D", "P", "X"]


class AttackFigure(FigureFile):
    """The attack of appendix E, at several levels of noise."""

    layout: Literal["attack"]
    run: AttackRun
    noises: Annotated[list[NoiseLevel], Field(min_length=1)]
    observers: Annotated[list[Observer], Field(min_length=1)]


AnyFigure = Figure | AttackFigure
