"""Forecast the standard errors of a private regression from public numbers, e.g. for a study protocol.

The privacy of a fit is measured by mu, the parameter of Gaussian differential privacy. A larger epsilon
allows a larger mu, and the standard deviation of the noise is proportional to 1 / mu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core import checks
from ..core.errors import ParameterError
from ..core.formatting import format_cost, format_given
from ..core.notebook import Picture, new_figure
from ..kernels.regression_rows import poisson_reach
from ..methods.programs.glm.regression import (
    GAUSSIAN_CUT,
    HESSIAN_SHARE,
    SCORE_BOUND,
    SCORE_SHARE,
    Regression,
)
from ..methods.sums.program import pair_graph
from ..privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from ..questions.glm.regression_answer import PrivateRegression

_HOPELESS = 1.0  # no fit is possible if `hessian_noise` is larger than this


def strength(epsilon: float, delta: float, sites: int, colluding: int | None) -> float:
    """mu sqrt(h / N), where h of the N sites are honest, and mu is the largest mu that the budget allows.

    The standard deviation of the noise in the sum over all sites is the sensitivity divided by this number.
    """
    pairs = pair_graph(sites, colluding)
    honest = pairs.honest(sites - 1 if colluding is None else colluding)
    return float(gaussian_mu(epsilon, delta)) * math.sqrt(honest / sites)


def hessian_noise(program: Regression, units: int, power: float) -> float:
    """(largest eigenvalue of the Hessian's noise) / (largest possible eigenvalue of the Hessian).

    power : the `strength` of the budget.
    """
    d = program.dimension
    std = math.sqrt(2.0) * program.clip**2 * d / (units * power * math.sqrt(HESSIAN_SHARE))
    return math.sqrt(2.0 * d) * std


def require_possible(
    program: Regression, units: int, epsilon: float, delta: float, sites: int, colluding: int | None
) -> None:
    """Raise, before anything is spent, if public numbers show that no valid interval is possible."""
    checks.positive("epsilon", epsilon)
    power = strength(epsilon, checks.probability("delta", delta), sites, colluding)
    short = hessian_noise(program, units, power) / _HOPELESS
    if short > 1.0:
        d, of = program.dimension, "persons" if program.persons else "records"
        columns = math.floor(d * short ** (-2.0 / 3.0)) - 1
        fewer = f", or at most {columns} column{'s' * (columns > 1)}" if columns >= 1 else ""
        raise ParameterError(
            f"`epsilon` = {format_cost(epsilon)} is too small for {units:,} {of} and {d} coefficients. "
            f"Nothing was spent. {enough(short, units, epsilon, delta, of)[:-1]}{fewer}."
        )


def enough(short: float, units: int, epsilon: float, delta: float, of: str) -> str:
    """A sentence that states the epsilon, or the number of units, that would be enough.

    short : the factor by which mu, or the number of units, must grow; if it is not finite, 4 is used.
    of : "records" or "persons".
    """
    short = short if math.isfinite(short) else 4.0
    mu = float(gaussian_mu(epsilon, delta)) * short
    return (
        f"About epsilon = {format_cost(float(gaussian_epsilon(mu, delta)))} or {math.ceil(units * short):,} "
        f"{of} would be enough."
    )


def explain_refusal(found: PrivateRegression, units: int, epsilon: float, delta: float) -> str:
    """The error text of a fit that spent its budget without a valid result: the reason, and a remedy."""
    if found.shortfall == 0.0:
        return f"`y` and `X` must fit the family {found.family}: {found.reason}. The budget has been spent."
    fewer = " Fewer, longer periods help too." if found.periods else ""
    remedy = enough(found.shortfall, units, epsilon, delta, found.of)
    return (
        f"`epsilon` = {format_cost(epsilon)} is too small for valid intervals, and it has been spent: "
        f"{found.reason}. {remedy} The least certain column is "
        f"{found.weakest!r}: narrow its range, or drop it if it is nearly constant or determined by "
        f"other columns.{fewer}"
    )


@dataclass(frozen=True)
class RegressionFacts:
    """The public facts that a plan of a regression needs.

    spreads : the standard deviation of every column.
    inflation : the factor by which correlation with other columns increases a column's standard error.
    rate : the mean of a binomial or Poisson outcome, or the hazard of a period.
    residual : the standard deviation of a gaussian outcome around its predicted mean.
    exposure : for a hazard, the mean number of periods in which a person is at risk.
    """

    names: tuple[str, ...]
    spreads: tuple[float, ...]
    inflation: tuple[float, ...]
    rate: float = 0.5
    residual: float = 1.0
    exposure: float = 1.0


@dataclass(frozen=True)
class RegressionPlan:
    """The expected standard errors of a regression.

    The plan assumes that the columns are not correlated; correlation makes both parts of a standard error
    larger. Only the correlation of interaction terms (products such as `age:log_crp`) with the columns that
    are multiplied is included.

    sampling, privacy : the two parts of the standard error of each column.
    ratios : pairs (epsilon, standard error divided by the standard error without privacy), for the plot.
    """

    names: tuple[str, ...]
    epsilon: float
    records: int
    sampling: tuple[float, ...]
    privacy: tuple[float, ...]
    ratios: tuple[tuple[float, float], ...]

    @property
    def se(self) -> tuple[float, ...]:
        """The standard error of each column, sampling and privacy together."""
        return tuple(math.hypot(a, b) for a, b in zip(self.sampling, self.privacy, strict=True))

    def table(self) -> list[list[str]]:
        """The table for a study protocol.

        detectable : 2.8 standard errors, the effect that is detected with 80% power at the 5% level.
        """
        rows = zip(self.names, self.sampling, self.privacy, self.se, strict=True)
        lines = [[name, *(f"{v:.3g}" for v in (a, b, se)), f"{2.8 * se:.3g}"] for name, a, b, se in rows]
        return [["", "sampling", "privacy", "std err", "detectable"], *lines]

    def __repr__(self) -> str:
        rows = self.table()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        head = f"Expected standard errors: {self.records:,} records, epsilon = {format_given(self.epsilon)}"
        return "\n".join([head, *lines])

    def plot(self) -> Picture:
        """A plot of (standard error) / (standard error without privacy) against epsilon."""
        figure = new_figure(4.8, 3.0)
        axes = figure.subplots()
        axes.plot(*zip(*self.ratios, strict=True), color="#2f7d77")
        axes.axvline(self.epsilon, color="#999999", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlabel("epsilon")
        axes.set_ylabel("standard error / without privacy", fontsize=8.5)
        axes.set_ylim(bottom=1.0, top=max(2.0, min(10.0, max(ratio for _, ratio in self.ratios))))
        axes.grid(color="#e4e4e4", linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        return figure


def plan_regression(
    program: Regression, facts: RegressionFacts, units: int, epsilon: float, delta: float, power: float
) -> RegressionPlan:
    """The expected standard errors; `power` is the `strength` at this epsilon."""
    # weight: the Fisher information of a row; reach: the bound to which a row's residual is clipped
    weight = {"gaussian": 1.0, "poisson": facts.rate}.get(program.family, facts.rate * (1 - facts.rate))
    reach = {
        "gaussian": GAUSSIAN_CUT * facts.residual,
        "poisson": poisson_reach(math.log(facts.rate)),
    }.get(program.family, 1.0)
    weight *= facts.exposure
    scale = facts.residual if program.family == "gaussian" else 1.0
    own = [spread / factor for spread, factor in zip(facts.spreads, facts.inflation, strict=True)]
    sampling = tuple(scale / (spread * math.sqrt(units * weight)) for spread in own)
    bound = 2.0 * SCORE_BOUND * program.clip * math.sqrt(program.dimension) * reach
    noise = bound / (units * power * math.sqrt(SCORE_SHARE) * weight)
    privacy = tuple(noise / spread for spread in own)
    part, mu = privacy[0] / sampling[0], float(gaussian_mu(epsilon, delta))
    grid = [0.1 * 10 ** (k / 20) for k in range(41)]
    ratios = tuple((e, math.hypot(1.0, part * mu / float(gaussian_mu(e, delta)))) for e in grid)
    return RegressionPlan(facts.names, epsilon, units, sampling, privacy, ratios)
