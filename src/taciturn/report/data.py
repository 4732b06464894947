"""The content of a report as plain data classes, independent of the code of runs, ledgers and HTML.

A report compares one or more runs, each with a name. A run has the same colour in every chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import checks
from ..core.errors import ParameterError
from ..core.notebook import EffectPanel

FORMATS = ("plain", "percent", "bound")


def _check_length(name: str, values: Sequence[Any], what: str, length: int) -> None:
    if len(values) != length:
        raise ParameterError(f"`{name}` must have one {what}, so {length} in total; got {len(values)}.")


@dataclass(frozen=True)
class Curve:
    """One line of a chart: a value for each round, and optionally a range around each value."""

    name: str
    rounds: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        for part in ("mean", "low", "high"):
            values = getattr(self, part)
            if part == "mean" or len(values):
                _check_length(part, values, "value per round", len(self.rounds))
        if bool(len(self.low)) != bool(len(self.high)):
            raise ParameterError("`low` and `high` must be given together or not at all.")


@dataclass(frozen=True)
class Chart:
    """A quantity by round, one curve per run.

    label : the label of the axis, with its unit.
    format : "plain", "percent" (1 is 100%) or "bound" (an upper bound, always rounded up).
    log : whether the axis is logarithmic when the page opens; the reader can switch it.
    private : False if the numbers were computed from the data and no guarantee covers them.
    """

    key: str
    title: str
    label: str
    curves: Sequence[Curve]
    format: str = "plain"
    log: bool = False
    private: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        checks.choice("format", self.format, FORMATS)


@dataclass(frozen=True)
class SiteCosts:
    """The total cost of each site of a run, and optionally the cost up to each round, (sites, rounds)."""

    name: str
    totals: Sequence[float]
    by_round: Sequence[Sequence[float]] = ()

    def __post_init__(self) -> None:
        if len(self.by_round):
            _check_length("by_round", self.by_round, "row per site", len(self.totals))


@dataclass(frozen=True)
class Accounting:
    """The privacy cost, computed in one way: the largest cost by round, and the total of every site.

    short : the short name of this way to compute the cost, for a column and a button.
    meaning : the explanation of the number, in a sentence or two.
    chart : one curve for each run with a finite cost, with the range from the smallest to the largest cost of
        a site.
    unbounded : the names of the runs without a finite bound.
    """

    key: str
    short: str
    meaning: str
    chart: Chart
    sites: Sequence[SiteCosts] = ()
    unbounded: Sequence[str] = ()


@dataclass(frozen=True)
class NetworkMap:
    """The network: names of sites, links, positions in the unit square, and public numbers of records."""

    names: Sequence[str]
    edges: Sequence[tuple[int, int]]
    places: Sequence[tuple[float, float]]
    kind: str = "custom"
    samples: Sequence[int] = ()

    def __post_init__(self) -> None:
        _check_length("places", self.places, "point per site", len(self.names))
        if wrong := [edge for edge in self.edges if not 0 <= min(edge) <= max(edge) < len(self.names)]:
            raise ParameterError(f"`edges` must name sites 0 to {len(self.names) - 1}; got {wrong[0]}.")


@dataclass(frozen=True)
class Statement:
    """The claim about one run: its text, its conditions, the theorems it is based on, and its numbers."""

    name: str
    text: str
    conditions: Sequence[str] = ()
    basis: Sequence[str] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mark:
    """A label at the top of the page, and its meaning. `warn` marks labels that weaken the claim."""

    label: str
    meaning: str
    warn: bool = True


@dataclass(frozen=True)
class KeyNumber:
    """One number of one run for the top of the page. `low` and `high` are its range over repeated runs."""

    label: str
    value: float
    format: str = "plain"
    low: float | None = None
    high: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        checks.choice("format", self.format, FORMATS)


@dataclass(frozen=True)
class Illustration:
    """A picture that the caller made, as PNG, and its description for readers who cannot see the picture."""

    description: str
    png: bytes


@dataclass(frozen=True)
class ReportData:
    """The content of a report page.

    headline : the result in a few sentences; an empty line separates paragraphs.
    scale : the epsilon to show on a scale of usual values; None if there are several runs, or no bound.
    illustration : a picture above the charts.
    brief : the questions of a data-protection officer with their answers, shown before any chart.
    key_numbers : for each run, the numbers at the top of the page.
    effects, effects_label, outputs : for an additive model: the amount that each column adds to the score,
        the label of that amount, and the classes if there are more than two.
    files : names of files with results, for links. The keys say what the files contain. The files must be in
        the folder of the page.
    settings, provenance : nested mappings of plain values.
    """

    title: str
    headline: str
    subtitle: str = ""
    scale: float | None = None
    illustration: Illustration | None = None
    marks: Sequence[Mark] = ()
    brief: Mapping[str, str] = field(default_factory=dict)
    key_numbers: Mapping[str, Sequence[KeyNumber]] = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    accountings: Sequence[Accounting] = ()
    network: NetworkMap | None = None
    statements: Sequence[Statement] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    effects: Sequence[EffectPanel] = ()
    effects_label: str = ""
    outputs: Sequence[str] = ()
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runs, in the order of their colours."""
        seen: dict[str, None] = dict.fromkeys(self.key_numbers)
        for chart in [*self.charts, *(accounting.chart for accounting in self.accountings)]:
            seen.update(dict.fromkeys(curve.name for curve in chart.curves))
        seen.update(dict.fromkeys(statement.name for statement in self.statements))
        return tuple(seen)
