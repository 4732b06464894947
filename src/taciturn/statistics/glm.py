"""PrivateGLM: regressions for publication, with confidence intervals that include the privacy noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from os import PathLike
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core import checks
from ..core.errors import BudgetExceeded, DataError, ParameterError
from ..core.notebook import Picture
from ..core.types import Array
from ..data.tables.clipping import is_sparse
from ..data.tables.dealing import SiteAssignment, assign_sites
from ..data.tables.schema import Schema
from ..data.tables.table_inputs import take_columns
from ..estimators.charging import ChargedEstimator
from ..privacy.certificate.certificate import Certificate
from ..privacy.ledger.active import join_budget, origin_of
from ..questions.estimates import Estimate
from ..questions.glm.formulas import Formula
from ..questions.glm.regression_answer import PrivateRegression
from ..questions.glm.regression_question import Design, GivenRegression, Glm, RegressionQuestion
from ..questions.kinds import read_question
from ..questions.pictures import Line, draw_lines
from ..questions.question import PublicTable, SiteTable
from ..runtime.simulate import Engine
from .counting import AskOptions, CountWishes, ask_here
from .reference import fit_without_noise
from .regression_plan import (
    RegressionFacts,
    RegressionPlan,
    explain_refusal,
    plan_regression,
    require_possible,
    strength,
)


@dataclass(eq=False, repr=False)
class PrivateGLM(ChargedEstimator):
    """A private regression: estimates, standard errors, intervals and p-values in the user's units.

    Standard errors include the sampling error and the privacy noise; the summary also shows both separately.
    If the budget is too small for valid intervals, the fit raises an error that says what would be enough. If
    only the noisy sums show this, the budget has been spent by then. A fit moves values outside of their
    public range to the nearer end of the range. Before a fit, the owner of the rows can count such values
    with `taciturn.check(table, schema)`, which spends nothing.

    Parameters
    ----------
    family : "binomial" (logit link), "gaussian" (identity link), "poisson" (log link), or "hazard", which
        models an event in each period in which a person is at risk. For a hazard, y has two columns: the
        time, and the event (0 or 1).
    epsilon, delta : the privacy budget of the whole fit for any one record (or person, if `fit` gets
        `person`), if at most `colluding` of the other sites collude. epsilon = inf adds no noise, protects
        nothing, and gives the maximum-likelihood estimate.
    sites : the number of sites among which `fit` divides the rows, if `fit` gets no `site`.
    colluding : the number of other sites that may collude; None for all of them.
    bounds : the public range (low, high) of every column. An additional pair at the end, if you give one, is
        the range of the outcome.
    outcome : the public range of the outcome, for "gaussian" and "poisson".
    periods : for a hazard, the public end times of the periods.
    link : for a hazard, "logit" for odds ratios in a period, or "cloglog" for hazard ratios, as in Cox
        models.
    names : the names of the columns, for the summary.
    formula, schema, indicators : given instead of bounds, outcome and names; see `from_formula`.
    large_delta : allows a delta above 1 / (number of records).
    ledger : a file in which every charge is recorded.
    random_state : a seed makes the fit a reproducible simulation, which protects no one; None draws secret
        noise.
    engine : "local" runs in this process. With a seed, "ray" or a `taciturn.runtime.RayEngine` runs on a
        cluster, with equal results.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (20_000, 2))
    >>> y = rng.random(20_000) < 1 / (1 + np.exp(-(X[:, 0] - 2 * X[:, 1])))
    >>> model = tt.PrivateGLM(epsilon=2.0, bounds=[(0, 1), (0, 1)], random_state=0).fit(X, y)
    >>> low, high = model.interval(0.99).T
    >>> bool((low < [1, -2]).all() and (high > [1, -2]).all())
    True
    """

    family: str = "binomial"
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-5
    sites: int = 5
    colluding: int | None = 1
    bounds: Sequence[tuple[float, float]] | None = None
    outcome: tuple[float, float] | None = None
    periods: Sequence[float] = ()
    link: str = ""
    names: Sequence[str] | None = None
    formula: str | None = None
    schema: Schema | None = None
    indicators: Sequence[str] = ()
    large_delta: bool = False
    ledger: str | PathLike[str] | None = None
    random_state: int | None = None
    engine: str | Engine = "local"

    @classmethod
    def from_formula(cls, formula: str, schema: Schema, **settings: Any) -> PrivateGLM:
        """A model that is fitted with `fit(table)`. Ranges and categories come from the schema only.

        formula : for example "death ~ age + C(sex) + age:bmi"; the term `site` adds fixed effects of the
            sites. A hazard has two columns on the left: "time + event ~ age".
        settings : the other parameters of the class. Rows with a missing value are left out, and the summary
            estimates how many rows remain. A column in `indicators` does not exclude a row: its missing
            values are marked by an additional column instead.
        """
        model = cls(formula=formula, schema=schema, **settings)
        model._asked(("first", "second"))
        return model

    def fit(self, X: Any, y: Any = None, *, site: Any = None, person: Any = None) -> Self:
        """Fit on the rows of all sites. With a formula, X is the table, and y is not given.

        site : the name or number of every row's site; None divides the rows among the sites at random.
        person : the id of every row's person. All rows of a person must be at one site. The fit protects
            them together, and its standard errors allow them to depend on each other.
        """
        with join_budget(origin_of(self)) as budget:
            if budget is not None and self.epsilon == math.inf:
                raise BudgetExceeded(
                    "PrivateGLM with `epsilon` = inf adds no noise, so no budget can pay for it; nothing was "
                    "computed. Fit it outside the Budget, on rows that are not private."
                )
            return self._fit(X, y, site, person)

    def plan(
        self,
        records: int,
        *,
        spreads: Sequence[float] | None = None,
        rate: float = 0.5,
        residual: float | None = None,
        exposure: float = 1.0,
    ) -> RegressionPlan:
        """The expected standard errors, computed from public numbers, for example for a study protocol.

        records : the number of records of all sites together.
        spreads : the expected standard deviation of each column. The default is a quarter of the
            column's range; for an interaction term, it is computed from the columns that are multiplied.
        rate : the expected mean of a binomial or Poisson outcome, or the expected hazard of a period.
        residual : the expected standard deviation of a gaussian outcome around its mean. The default is a
            quarter of the outcome's range.
        exposure : for a hazard, the expected mean number of periods in which a person is at risk.
        """
        units = checks.whole("records", records, least=1)
        design, formula = self._planned()
        given = None if spreads is None else [checks.positive("spreads", spread) for spread in spreads]
        if given is not None and len(given) != len(design.names):
            raise ParameterError(f"`spreads` must contain {len(design.names)} numbers; got {len(given)}.")
        found, correlation = np.array(given or design.middles[1] / 2), np.eye(len(design.names))
        if formula is not None:
            found, correlation = formula.expected(given)
        factors = tuple(np.sqrt(np.diag(np.linalg.inv(correlation))).tolist())
        usual = (design.outcome[1] - design.outcome[0]) / 4
        stated = {"gaussian": residual is not None, "hazard": exposure != 1.0}
        for name, family in (("residual", "gaussian"), ("exposure", "hazard")):
            if stated[family] and self.family != family:
                raise ParameterError(f"`{name}` needs the family {family}; the model has {self.family}.")
        mean = checks.positive("rate", rate) if self.family == "poisson" else checks.probability("rate", rate)
        size = usual if residual is None else checks.positive("residual", residual)
        facts = RegressionFacts(
            design.names, tuple(found.tolist()), factors, mean, size, checks.positive("exposure", exposure)
        )
        require_possible(design.program, units, self.epsilon, self.delta, self.sites, self.colluding)
        power = strength(self.epsilon, self.delta, self.sites, self.colluding)
        return plan_regression(design.program, facts, units, self.epsilon, self.delta, power)

    def _planned(self) -> tuple[Design, Formula | None]:
        """(design, formula) for a plan. The sites are named 1, 2, ...; `formula` may be None."""
        if self.formula is None:
            return self._design(len(self.bounds or ())), None
        question, public = self._asked(tuple(f"{k + 1}" for k in range(self.sites)))
        return question.design(public), question.read(public)

    def _fit(self, X: Any, y: Any, site: Any, person: Any) -> Self:
        question, public, columns, rows = self._question(X, y, site, person is not None)
        design, free = question.design(public), self.epsilon == math.inf
        places = assign_sites(rows, site, 1 if free else self.sites, "complete", 0, person, least=1)
        if free:
            return self._fit_without_noise(question, public, columns, places)
        own = {name: value for name, value in vars(self).items() if name in AskOptions.__annotations__}
        wishes = CountWishes(self.epsilon, site=site, person=person, **own)
        units = sum(places.samples)
        require_possible(design.program, units, self.epsilon, self.delta, places.graph.n, self.colluding)
        (found,) = ask_here([question], public, columns, rows, wishes, "PrivateGLM")
        self.result_ = cast(PrivateRegression, found)
        if self.formula is None:
            self.result_ = replace(self.result_, counted=None)
        self.certificate_: Certificate | None = self.result_.certificate
        if self.result_.reason:
            raise ParameterError(explain_refusal(self.result_, units, self.epsilon, self.delta))
        return self

    def _question(
        self, X: Any, y: Any, site: Any, persons: bool
    ) -> tuple[RegressionQuestion, PublicTable, Any, int]:
        if self.formula is not None:
            if y is not None:
                raise ParameterError("`y` must not be given with a formula: the table contains the outcome.")
            names = () if site is None else _levels(site)
            self.site_names_ = names or tuple(f"{k + 1}" for k in range(self.sites))
            question, public = self._asked(names, persons)
            columns = take_columns(question.reads(public), X)
            return question, public, columns, len(next(iter(columns.values())))
        wrong = "schema" if self.schema is not None else "indicators" if len(self.indicators) else ""
        if wrong:
            raise ParameterError(f"`{wrong}` needs a `formula`: give a formula, or leave out `{wrong}`.")
        rows = _matrix(X, y, self.family)
        design = replace(self._design(np.shape(X)[1], getattr(X, "columns", None)), persons=persons)
        return GivenRegression(given=design), PublicTable(width=rows.shape[1]), rows, len(rows)

    def _asked(self, sites: tuple[str, ...], persons: bool = False) -> tuple[Glm, PublicTable]:
        """The formula as a question to the sites, and the public facts about their tables.

        Raises if the formula does not fit the schema.
        """
        wrong = [name for name in ("bounds", "outcome", "names") if getattr(self, name) is not None]
        if wrong:
            raise ParameterError(f"`{wrong[0]}` must not be given with a formula: the schema states it.")
        entry = {"kind": "glm", "formula": self.formula, "family": self.family, "link": self.link}
        lists = {"indicators": list(self.indicators), "periods": [float(end) for end in self.periods]}
        found = cast(Glm, read_question(entry | lists))
        public = PublicTable(self.schema, sites=sites, by_person=persons)
        found.design(public)
        return found, public

    def _design(self, columns: int, named: Any = None) -> Design:
        """The public facts of the regression if `X` and `y` are arrays."""
        if self.bounds is None:
            raise ParameterError("`bounds` must contain the public range of every column: [(0, 1), ...].")
        try:
            bounds = [(float(low), float(high)) for low, high in self.bounds]
            ranges = [] if self.outcome is None else [self.outcome]
            outcome = next(((float(low), float(high)) for low, high in ranges), None)
        except (TypeError, ValueError):
            raise ParameterError(
                "`bounds` must contain two numbers (low, high) for every column, and `outcome` two numbers."
            ) from None
        if len(bounds) == columns + 1 and outcome is None:
            outcome = bounds.pop()
        if len(bounds) != columns:
            raise ParameterError(
                f"`bounds` must contain {columns} ranges, one for each column; got {len(bounds)}."
            )
        if self.family in ("gaussian", "poisson") and outcome is None:
            raise ParameterError(
                f"`outcome` must be the public range of y for the family {self.family}; got None."
            )
        if self.family in ("binomial", "hazard") and outcome not in (None, (0, 1)):
            raise ParameterError(f"`outcome` must not be given for the family {self.family}: y is 0 or 1.")
        given = self.names if self.names is not None else named
        names = tuple(f"x{k + 1}" for k in range(columns)) if given is None else tuple(map(str, given))
        periods = tuple(float(end) for end in self.periods)
        return Design(self.family, names, tuple(bounds), outcome or (0.0, 1.0), periods, link=self.link)

    def _fit_without_noise(
        self, question: RegressionQuestion, public: PublicTable, columns: Any, places: SiteAssignment
    ) -> Self:
        array = columns if isinstance(columns, np.ndarray) else None
        table = SiteTable({} if array is not None else columns, len(places.site), None, places.site, array)
        variables = question.variables(public, table)
        self.result_ = fit_without_noise(question.design(public), *variables, places.person)
        self.certificate_ = None
        return self

    @property
    def coef_(self) -> Array:
        """One coefficient for each column, in the user's units."""
        return self._fitted().estimates.values[: len(self._fitted().names)]

    @property
    def intercept_(self) -> Any:
        """The intercept; for a hazard, one intercept for each period."""
        found = self._fitted().estimates.values[len(self._fitted().names) :]
        return found if self._fitted().periods else float(found[0])

    @property
    def se_(self) -> Array:
        """Standard errors of the coefficients, which include sampling error and privacy noise."""
        return self._fitted().estimates.se()[: len(self._fitted().names)]

    @property
    def p_values_(self) -> Array:
        """Two-sided p-values of the coefficients."""
        return self._fitted().p_values[: len(self._fitted().names)]

    def interval(self, level: float = 0.95) -> Array:
        """(columns, 2): the ends of the confidence interval of every coefficient except the intercept."""
        return self._fitted().interval(level)

    def intercept_interval(self, level: float = 0.95) -> Array:
        """Both ends of the confidence interval of the intercept; for a hazard, (periods, 2)."""
        return self._fitted().intercept_interval(level)

    def summary(self, level: float = 0.95) -> PrivateRegression:
        """The table of results, to print or to convert with `.html()`, `.latex()`, `.csv()` or `.plot()`."""
        return replace(self._fitted(), level=checks.probability("level", level))

    def plot(self, level: float = 0.95) -> Picture | None:
        """A forest plot of the coefficients with their confidence intervals."""
        return self.summary(level).plot()

    def survival(self, x: Any, level: float = 0.95) -> Array:
        """(periods, 3): the survival probability after each period, and the ends of its confidence band.

        x : one number for each column; with a formula, a mapping such as {"age": 70, "sex": "male"}.
        """
        if isinstance(x, Mapping):
            if self.formula is None:
                raise ParameterError(
                    "`x` must be a list with one number for each column: this model has no formula, and only "
                    "a model with a formula accepts a mapping from names to values."
                )
            question, public = self._asked(self.site_names_)
            x = question.columns_of(public, x)
        return self._fitted().survival(x, level)

    def plot_survival(self, persons: Mapping[str, Any], level: float = 0.95) -> Picture:
        """Plot survival curves with confidence bands. `persons` is for example {"a woman of 70": x, ...}."""
        periods, lines = self._fitted().periods, []
        for name, x in persons.items():
            shares = [Estimate(1.0, 1.0, 1.0), *(Estimate(*row) for row in self.survival(x, level).tolist())]
            shown = 1.04 * periods[-1]  # otherwise the last step would have width 0
            lines.append(Line(str(name), [0.0, *periods, shown], [*shares, shares[-1]]))
        title = f"Share without an event, {level:.0%} bands"
        return draw_lines(lines, "time", "share without an event", title, steps=True)

    def _fitted(self) -> PrivateRegression:
        check_is_fitted(self, "result_")
        self.result_.require_valid()
        return self.result_


def _levels(site: Any) -> tuple[str, ...]:
    """The names of the sites, sorted."""
    try:
        return tuple(str(one) for one in np.unique(np.asarray(site)))
    except TypeError:
        raise DataError(
            "`site` must contain values of one type; got several types, or missing values."
        ) from None


def _matrix(X: Any, y: Any, family: str) -> Array:
    """X with the outcome as its last column (or columns), checked to be finite numbers."""
    try:
        rows = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
        target = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("`X` and `y` must contain numbers.") from None
    shape = (len(rows), 2) if family == "hazard" else (len(rows),)
    if rows.ndim != 2 or rows.size == 0 or target.shape != shape:
        raise DataError(
            f"`y` must have shape {shape}, and `X` must have rows and columns; got the shapes {target.shape} "
            f"of `y` and {rows.shape} of `X`."
        )
    if not np.isfinite(rows).all() or not np.isfinite(target).all():
        raise DataError("`X` and `y` must be finite; for missing values use `PrivateGLM.from_formula`.")
    if family == "binomial" and not np.isin(target, (0.0, 1.0)).all():
        raise DataError("`y` must contain only 0 and 1 for the family binomial.")
    if family == "hazard" and not np.isin(target[:, 1], (0.0, 1.0)).all():
        raise DataError("`y` must contain only 0 and 1 in its second column, the event, for a hazard.")
    return np.column_stack([rows, target])
