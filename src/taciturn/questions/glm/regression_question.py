"""The kind of question "glm": a regression with valid standard errors on the rows of all sites.

    eta = intercept + sum_j coef_j x_j

The mean of the outcome is 1 / (1 + exp(-eta)) for the families binomial and hazard, eta for gaussian, and
exp(eta) for poisson. The outcome of a hazard regression is an event in a period, with one intercept for each
period; with the link cloglog, its mean is 1 - exp(-exp(eta)). The family, the columns, the periods and all
ranges are public. The sites release only noisy sums over all rows (docs/inference.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field as Key

from ...core import checks
from ...core.errors import ParameterError
from ...core.types import Array
from ...jobfile.job_format import Text
from ...jobfile.toml_fields import LISTED
from ...methods.programs.glm.regression import FAMILIES, LINKS, Regression
from ...methods.programs.glm.regression_fit import fit_regression
from ...methods.programs.own_program import OwnProgram, UnitRows
from ..question import PublicTable, Question, SiteTable, Spending, Totals
from .formulas import SITE, Formula, read_formula
from .regression_answer import Coefficients, PrivateRegression


@dataclass(frozen=True)
class Design:
    """The public facts of a regression: its family, its columns and their ranges, and the outcome.

    outcome : the range of the outcome; (0, 1) for a binomial regression.
    persons : True if the guarantee protects persons, who may have any number of rows; False for records.
    periods : for a hazard regression, the ends of its periods in increasing order. An event exactly at the
        end of a period belongs to that period.
    """

    family: str
    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    outcome: tuple[float, float] = (0.0, 1.0)
    periods: tuple[float, ...] = ()
    persons: bool = False
    link: str = ""

    def __post_init__(self) -> None:
        checks.choice("family", self.family, FAMILIES)
        if self.link:
            checks.choice("link", self.link, LINKS)
            if self.family != "hazard":
                raise ParameterError(
                    f"`link` must be left out for the family {self.family}; got {self.link!r}."
                )
        if self.persons and self.family == "hazard":
            raise ParameterError(
                "`person` must be left out for a hazard regression, which takes one row for each person and "
                "protects all periods of the person together."
            )
        if not self.bounds:
            raise ParameterError("`bounds` must contain the range of at least one column; got none.")
        if len(self.names) != len(self.bounds):
            raise ParameterError(
                f"`names` must contain one name for each of the {len(self.bounds)} columns; "
                f"got {len(self.names)}."
            )
        columns = [
            ("bounds", f" of {name}", *pair) for name, pair in zip(self.names, self.bounds, strict=True)
        ]
        for key, of, low, high in [*columns, ("outcome", "", *self.outcome)]:
            if not 0 < checks.real(key, high) - checks.real(key, low) <= checks.MOST:
                raise ParameterError(
                    f"`{key}`{of} must be (low, high) with low < high, at most {checks.MOST:g} apart; "
                    f"got ({low:g}, {high:g})."
                )
        if self.family == "poisson" and self.outcome[0] != 0:
            raise ParameterError(f"`outcome` must begin at 0 for the family poisson; got {self.outcome}.")
        if (self.family == "hazard") != bool(self.periods):
            raise ParameterError("`periods` must be given for the family 'hazard', and for no other family.")
        if any(b <= a for a, b in zip((0.0, *self.periods), self.periods, strict=False)):
            raise ParameterError(
                f"`periods` must contain the ends of the periods, increasing and above 0; got {self.periods}."
            )

    @property
    def dimension(self) -> int:
        """The number of coefficients and intercepts together."""
        return len(self.names) + max(1, len(self.periods))

    @property
    def program(self) -> Regression:
        top = self.outcome[1] if self.family == "poisson" else 1.0
        return Regression(
            self.family, self.dimension, len(self.names), top, persons=self.persons, link=self.link
        )

    @property
    def middles(self) -> tuple[Array, Array]:
        """(the middles of the ranges of all columns, half of the widths of these ranges)."""
        low, high = np.array(self.bounds, dtype=np.float64).T
        return (low + high) / 2, (high - low) / 2

    def scaled(self, X: Array, outcome: Array) -> Array:
        """The rows from which the sums are computed: the columns, then the constant, then the outcome.

        The columns and the constant are scaled so that together they have a norm of at most 1. For a hazard
        regression, the number of the last period at risk replaces the constant, and
        the event replaces the outcome.
        """
        middle, half = self.middles
        root = math.sqrt(len(self.names) + 1.0)
        Z = np.clip((X - middle) / half, -1.0, 1.0) / root
        if self.family == "hazard":
            time, event = outcome.T
            last = np.searchsorted(np.array(self.periods), time, side="left") + 1.0
            late = last > len(self.periods)
            last = np.where(np.isnan(time) | np.isnan(event), np.nan, np.minimum(last, len(self.periods)))
            return np.column_stack([Z, last, np.where(late, 0.0, np.clip(event, 0.0, 1.0))])
        low, high = self.outcome
        y = np.clip(outcome, low, high)
        if self.family == "gaussian":
            y = (y - (low + high) / 2) / ((high - low) / 2)
        return np.column_stack([Z, np.full(len(Z), 1.0 / root), y])

    def user_units(self) -> tuple[Array, Array]:
        """(A, shift): A f + shift are the coefficients, then the intercepts, in the user's units.

        f are the coefficients for scaled columns, which `fit_regression` computes.
        """
        middle, half = self.middles
        p, d, root = len(self.names), self.dimension, math.sqrt(len(self.names) + 1.0)
        scale, shift = 1.0, np.zeros(d)
        if self.family == "gaussian":
            scale = (self.outcome[1] - self.outcome[0]) / 2
            shift[p:] = (self.outcome[1] + self.outcome[0]) / 2
        A = np.zeros((d, d))
        A[:p, :p] = np.diag(1.0 / half)
        A[p:, :p] = -middle / half
        A[p:, p:] = np.eye(d - p)
        return A * (scale / root), shift


class RegressionQuestion(Question):
    """The base class of questions that a regression answers."""

    @abstractmethod
    def design(self, public: PublicTable) -> Design:
        """The public facts of the regression."""

    @abstractmethod
    def variables(self, public: PublicTable, table: SiteTable) -> tuple[Array, Array]:
        """The columns and the outcome of every row, in the units of the user. A missing value is NaN."""

    def method(self, public: PublicTable, spending: Spending) -> OwnProgram:
        design = self.design(public)
        return OwnProgram(design.program, *spending, columns=len(design.names) + 2)

    def rows(self, public: PublicTable, table: SiteTable) -> UnitRows:
        return table.unit_rows(self.design(public).scaled(*self.variables(public, table)))

    def answer(self, public: PublicTable, totals: Totals) -> PrivateRegression:
        design = self.design(public)
        state = totals.program.replay(totals.values)
        fit = fit_regression(design.program, state, totals.units)
        A, shift = design.user_units()
        found = Coefficients(A @ fit.f + shift, A @ fit.sampling @ A.T, A @ fit.privacy @ A.T)
        known = np.abs(A @ fit.weakest)[: len(design.names)] * design.middles[1]
        weakest = design.names[int(np.argmax(known))]
        return PrivateRegression(
            family=design.family,
            names=design.names,
            periods=design.periods,
            estimates=found,
            units=totals.units,
            counted=fit.counted,
            reason=fit.reason,
            shortfall=fit.shortfall,
            weakest=weakest,
            of="persons" if design.persons else "records",
            link=design.link,
        )


class GivenRegression(RegressionQuestion):
    """A regression whose rows are an array in this process: the columns, followed by the outcome."""

    given: Any

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        return ()

    def design(self, public: PublicTable) -> Design:
        found: Design = self.given
        return found

    def variables(self, public: PublicTable, table: SiteTable) -> tuple[Array, Array]:
        array, p = np.asarray(table.array), len(self.given.names)
        return array[:, :p], array[:, p:] if self.given.family == "hazard" else array[:, p]


class Glm(RegressionQuestion):
    """The keys of a question of kind "glm" in a job file.

    formula : "death ~ age + C(sex) + age:bmi": an outcome, columns of the schema, products of columns
        (written with `:`), and `site`. A hazard regression has two columns on the left: "time + event ~ age".
    family : "binomial", "gaussian", "poisson" or "hazard".
    indicators : columns of the table that may have missing cells. For each of them, the regression gets an
        additional column, which is 1 where the cell is missing. A row with a missing cell in any other column
        is left out; the number of rows that remain is released with noise.
    periods : for a hazard regression, the ends of its periods.
    link : for a hazard regression, "logit" for odds ratios or "cloglog" for hazard ratios.
    """

    kind: ClassVar[str] = "glm"
    formula: str = Key(max_length=10_000)
    family: Literal["binomial", "gaussian", "poisson", "hazard"] = "binomial"
    indicators: Annotated[tuple[Text, ...], LISTED] = ()
    periods: Annotated[tuple[float, ...], LISTED] = ()
    link: Literal["", "logit", "cloglog"] = ""

    def read(self, public: PublicTable) -> Formula:
        """The parsed formula, with its columns found in the schema."""
        if public.schema is None:
            raise ParameterError("`schema` must be given: a formula is about the columns of a table.")
        return read_formula(self.formula, public.schema, self.family, public.sites, self.indicators)

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        return self.read(public).reads

    def design(self, public: PublicTable) -> Design:
        found = self.read(public)
        about = found.names, found.bounds, found.outcome
        return Design(self.family, *about, self.periods, public.by_person, self.link)

    def variables(self, public: PublicTable, table: SiteTable) -> tuple[Array, Array]:
        found = self.read(public)
        return found.variables(table.parsed(found.fields), table.site, table.rows)

    def columns_of(self, public: PublicTable, person: Mapping[str, Any]) -> Array:
        """The columns of the regression for one person. `person` maps column names (and `site`) to cells."""
        found = self.read(public)
        wanted = {part.source for column in found.columns for part in column}
        if set(person) != wanted:
            raise ParameterError(
                f"`x` must contain exactly the names {sorted(wanted)}; got {sorted(person)}."
            )
        place = 0
        if SITE in wanted and SITE not in found.reads:
            place = public.sites.index(checks.choice(SITE, str(person[SITE]), public.sites))
        cells = {name: [person.get(name, "")] for name in found.reads}
        row = self.variables(public, SiteTable(cells, 1, None, place))[0][0]
        if not np.isfinite(row).all():
            raise ParameterError(
                "For every column, `x` must contain a value that the schema allows; one value cannot be read."
            )
        return np.asarray(row, dtype=np.float64)
