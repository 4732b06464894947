"""The format of a figure's TOML file, and its reader: the settings of the runs, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from ...core.errors import ParameterError
from ...core.toml import complaint, read_toml
from ...data.tables.schema import Schema
from ...jobfile.toml_fields import NoiseField, ScheduleField, SchedulesField
from ...methods.admm.perturbations import METHODS
from ...schedules import Constant

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Word = Annotated[str, Field(min_length=1)]
Colour = Annotated[str, Field(pattern="^#[0-9A-Fa-f]{6}$")]
FileStem = Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}$")]
if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(METHODS)]


def public_schema(columns: Mapping[str, Any]) -> Schema:
    """The schema of the `columns` in a figure's file; see `FigureData`."""
    return Schema.of(**{name: bool if entry == "boolean" else entry for name, entry in columns.items()})


class FigureTable(BaseModel):
    """The base class of the tables in a figure's file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class OwnLabel(FigureTable):
    """The column to predict, and the value that becomes +1; every other value becomes -1."""

    column: str
    positive: str


class FigureData(FigureTable):
    """The rows of a figure, and how they are distributed to sites.

    name : "adult", "breast-cancer", or "table" for your own CSV or Parquet file. "table" needs the next three
        keys.
    file : the path of your file, relative to the folder of the TOML file.
    columns : the public facts about each column, as in `Schema.of`: [low, high], or a list of words, or
        "boolean".
    label : the column to predict, and its value that becomes +1.
    scaling, rows : how the columns of Adult are scaled, and how long rows are shortened; see `load_adult`.
    limit : the number of rows to use, drawn at random. Without `limit`, all rows are used.
    deal : how the rows are distributed: "evenly"; or "unevenly": every site gets `least` rows, and a random
        share of the remaining rows, drawn from Dirichlet(concentration).
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
            raise ValueError('`file`, `columns` and `label` must be given for name = "table" and only for it')
        if self.name == "table":
            if any(part is None for part in own):
                raise ValueError("`file`, `columns` and `label` must be given together")
            public_schema(self.columns or {})
        return self

    def identity(self) -> dict[str, Any]:
        """The facts on which results depend, besides the content of the files. Paths are not among them."""
        own = self.name == "table"
        return self.model_dump(exclude={"file"} if own else {"file", "columns", "label"})


class FigureGraph(FigureTable):
    """The graph of the network; `degree` and `seed` are for a random regular graph."""

    kind: Literal["ring", "complete", "star", "path", "random_regular"]
    degree: Count | None = None
    seed: Seed = 0

    @model_validator(mode="after")
    def _complete(self) -> FigureGraph:
        if (self.kind == "random_regular") != (self.degree is not None):
            raise ValueError(f"`degree` must be given for random_regular, and only for it; got {self.kind}")
        return self


class FigureProblem(FigureTable):
    """C, rho and the loss of the paper's eq. 1."""

    loss: Literal["logistic"] = "logistic"
    C: Positive
    regularization: Positive


class FigureRun(FigureTable):
    """The settings that all runs of a figure share. Our epsilon is computed at `delta`."""

    rounds: Count
    repeats: Count
    seed: Seed
    start: Literal["zeros", "random"]
    tol: Positive
    delta: Fraction


class BudgetNoise(FigureTable):
    """Norm noise whose rate grows by `ratio` per round. The first rate is the largest within the budget."""

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
    """A row of panels; each curve states the name of its row."""

    name: Word
    title: str


class FigureCurve(FigureTable):
    """One method with its parameters, and how its line is drawn.

    name : the name of the curve in tables and reports.
    label : the text in the legend, which may contain $mathematics$.
    panel : the name of the row of panels; not needed in a figure with one row.
    regularization : rho of this curve, if it differs from the figure's rho.
    fit : False keeps the loss axis from being extended for this curve. If the curve ends above the axis, a
        text states its last mean loss.
    """

    name: Word
    label: Word
    method: MethodName
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
        settings = METHODS[self.method].settings()
        for name in ("noise", "dual_step"):
            if settings.get(name, False) != (getattr(self, name) is not None):
                must = "be given" if settings.get(name, False) else "be left out"
                raise ValueError(f"`{name}` must {must} for {self.method}")
        if METHODS[self.method].constant and not isinstance(self.penalty, Constant):
            raise ValueError(f"`penalty` must be one number for {self.method}, which uses a constant penalty")
        return self


class FigureFile(FigureTable):
    """The base class of figures. In `caption`, {repeats} stands for the number of repeats."""

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


def _check_names(key: str, tables: Sequence[FigurePanel | NoiseLevel | Observer]) -> None:
    if len({table.name for table in tables}) < len(tables):
        raise ValueError(f"`{key}` must not contain two entries with the same name")


class Figure(FigureFile):
    """Curves of several methods.

    layout : "convergence" shows the loss L(t) and the distance to the optimum. "tradeoff" shows L(t) with its
        range, the paper's bound P(t) on the privacy cost, and our epsilon.
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
        _check_names("panels", self.panels)
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
        if empty := rows - {curve.panel for curve in self.curves}:
            raise ValueError(f"`panels` must not contain {min(empty)!r}: no curve has this `panel`")
        return self

    @property
    def rows(self) -> tuple[FigurePanel, ...]:
        """The rows of panels, in order; one row without a title if the file has no `panels`."""
        return tuple(self.panels) or (FigurePanel.model_construct(name="", title=""),)


class AttackRun(FigureTable):
    """The attacked site and its attacked records, the number of runs, and the parameters of the method."""

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
    """A noise level: norm noise of this rate, or no noise if `rate` is left out."""

    name: Word
    title: str
    rate: Positive | None = None


class Observer(FigureTable):
    """What an attacker knows about the penalty, and how the attacker's line is drawn."""

    name: Literal["known", "constant", "estimated", "geometric"]
    label: str
    colour: Colour
    marker: Literal["o", "s", "^", "v", "D", "P", "X"]


class AttackFigure(FigureFile):
    """The attack of the paper's appendix E, at several noise levels."""

    layout: Literal["attack"]
    run: AttackRun
    noises: Annotated[list[NoiseLevel], Field(min_length=1)]
    observers: Annotated[list[Observer], Field(min_length=1)]

    @model_validator(mode="after")
    def _distinct(self) -> AttackFigure:
        _check_names("noises", self.noises)
        _check_names("observers", self.observers)
        return self


AnyFigure = Figure | AttackFigure


SHIPPED = ("fig1a", "fig1b", "fig2", "fig3", "fig4", "attack", "budget")


def load_figure(name_or_path: str, *, quick: bool = False, seed: int | None = None) -> AnyFigure:
    """A figure from its name, if it is a shipped figure, or from the path of its file.

    Parameters
    ----------
    quick : True replaces settings by those in the file's table [quick]: fewer rows, rounds and repeats.
    seed : a seed that replaces the file's `run.seed`.
    """
    path = Path(name_or_path)
    if name_or_path in SHIPPED:
        path = Path(__file__).with_name(f"{name_or_path}.toml")
    if not path.is_file():
        raise ParameterError(
            f"`figure` must be one of {', '.join(SHIPPED)}, or the path of a TOML file; got {name_or_path!r}."
        )
    _, stated = read_toml(path)
    overlay = stated.pop("quick", {})
    if not isinstance(overlay, Mapping):
        raise ParameterError(f"{path}: `quick` must be a table; got {type(overlay).__name__}.")
    if quick:
        stated = _laid_over(stated, overlay)
    if seed is not None:
        stated = _laid_over(stated, {"run": {"seed": seed}})
    place_own_table(stated, path.parent)
    kind: type[Figure] | type[AttackFigure] = AttackFigure if stated.get("layout") == "attack" else Figure
    try:
        return kind.model_validate(stated)
    except ValidationError as error:
        raise ParameterError(f"{path}: {complaint(error, quote=True)}") from None


def place_own_table(stated: Mapping[str, Any], folder: Path) -> None:
    """Resolve the path of a user's table. A relative path is relative to `folder`."""
    data = stated.get("data")
    if isinstance(data, dict) and isinstance(data.get("file"), str):
        data["file"] = str((folder / data["file"]).resolve())


def _laid_over(below: Any, above: Any) -> Any:
    """A copy of `below` in which the entries of `above` are added or replaced; nested tables are merged."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
