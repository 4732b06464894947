"""PrivateRegression: the table of a regression that sites fitted together.

It has the coefficients in the units of the data, with standard errors, confidence intervals and p-values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm

from ...core import checks
from ...core.errors import ParameterError
from ...core.notebook import Picture, new_figure
from ...core.types import Array
from ...methods.programs.glm.regression import CLOGLOG
from ..answer import PrivateAnswer

_RATIOS = {"binomial": "odds ratio", "poisson": "rate ratio", "hazard": "odds ratio"}
_INK, _PART = "#2f7d77", "#b8d8d5"
NOTHING_PROTECTED = "epsilon = infinity: no noise was added, and nothing is protected."


class Coefficients(NamedTuple):
    """The coefficients followed by the intercepts (`values`), and the two parts of their covariance.

    sampling : the covariance that the random sample causes. privacy : the covariance that the noise causes.
    """

    values: Array
    sampling: Array
    privacy: Array

    @property
    def covariance(self) -> Array:
        return self.sampling + self.privacy

    def se(self, part: str = "covariance") -> Array:
        """Standard errors: from both parts of the covariance, or from "sampling" or "privacy" alone."""
        return np.sqrt(np.maximum(np.diag(getattr(self, part)), 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class PrivateRegression(PrivateAnswer):
    """The table of a regression, in the units of the data.

    A unit is what the privacy guarantee protects: a record, or a person with any number of rows.

    periods : for a hazard regression, the ends of its periods; else empty.
    counted : (the share of units without missing cells, the standard error of this share). None if the fit
        added no noise, or if its input was an array, because an array has no missing cells.
    reason : why the intervals would not be valid; "" if they are valid.
    shortfall : the factor by which (number of units) x mu is too small for valid intervals. The parameter
        mu of Gaussian differential privacy grows with the budget.
    weakest : the column with the least certain coefficient.
    of : the name of the units, "records" or "persons".
    """

    family: str
    names: tuple[str, ...]
    periods: tuple[float, ...]
    estimates: Coefficients
    units: int
    counted: tuple[float, float] | None
    reason: str = ""
    shortfall: float = 0.0
    weakest: str = ""
    level: float = 0.95
    of: str = "records"
    link: str = ""

    @property
    def title(self) -> str:
        return (
            f"{self.family.capitalize()} regression of {self.units:,} {self.of}, {self.level:.0%} intervals"
        )

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of the coefficients, then of the intercepts."""
        last = [f"until {end:g}" for end in self.periods] if self.periods else ["intercept"]
        return (*self.names, *last)

    def interval(self, level: float | None = None) -> Array:
        """(columns, 2): both ends of the interval of every coefficient, without the intercepts."""
        return self._ends(level)[: len(self.names)]

    def intercept_interval(self, level: float | None = None) -> Array:
        """Both ends of the interval of the intercept; for a hazard, of every intercept, as (periods, 2)."""
        found = self._ends(level)[len(self.names) :]
        return found if self.periods else found[0]

    def _ends(self, level: float | None) -> Array:
        self.require_valid()
        share = checks.probability("level", self.level if level is None else level)
        half = float(-ndtri((1 - share) / 2)) * self.estimates.se()
        return np.column_stack([self.estimates.values - half, self.estimates.values + half])

    @property
    def p_values(self) -> Array:
        """The two-sided p-value of each coefficient, then of each intercept; the hypothesis is value = 0."""
        self.require_valid()
        return np.asarray(2 * norm.sf(np.abs(self.estimates.values / self.estimates.se())))

    def require_valid(self) -> None:
        """Raise if the intervals would not be valid."""
        if self.reason:
            raise ParameterError(f"this regression has no valid intervals: {self.reason}.")

    def table(self) -> list[list[str]]:
        if self.reason:
            return [["", "value"], ["refused", self.reason]]
        ratio = "hazard ratio" if self.link == CLOGLOG else _RATIOS.get(self.family)
        ends, rest = self._ends(None), (1 - self.level) / 2
        head = ["", "coef", *([ratio] if ratio else []), "std err", "sampling", "privacy", "z", "P>|z|"]
        rows = [[*head, f"[{rest:.3g}", f"{1 - rest:.3g}]"]]
        se, one, two = (self.estimates.se(part) for part in ("covariance", "sampling", "privacy"))
        for k, name in enumerate(self.all_names):
            value = self.estimates.values[k]
            odds = [f"{math.exp(min(value, 700.0)):.4g}" if k < len(self.names) else ""] if ratio else []
            rows.append(
                [
                    name,
                    f"{value:.4g}",
                    *odds,
                    *(f"{error[k]:.3g}" for error in (se, one, two)),
                    f"{value / se[k]:.3f}",
                    _chance(self.p_values[k]),
                    *(f"{end:.4g}" for end in ends[k]),
                ]
            )
        return rows

    def note(self) -> str:
        """The number of complete records or persons, if it was released, and the privacy cost."""
        cost = super().note() or NOTHING_PROTECTED
        if self.counted is None:
            return cost
        share, error = self.counted
        complete, spread = share * self.units, error * self.units
        return f"Complete {self.of}: about {complete:,.0f} (standard error {spread:,.0f}). {cost}"

    def text(self) -> str:
        return f"{super().text()}\n{self.note()}"

    def __repr__(self) -> str:
        return self.text()

    def latex(self) -> str:
        """The table as LaTeX, with the privacy cost below the table."""
        head, *rows = ([_escape(cell) for cell in row] for row in self.table())
        note = rf"\multicolumn{{{len(head)}}}{{p{{\linewidth}}}}{{\footnotesize {_escape(self.note())}}} \\"
        body = [" & ".join(row) + r" \\" for row in rows]
        lines = [" & ".join(head) + r" \\", r"\hline", *body, r"\hline", note]
        columns = "l" + "r" * (len(head) - 1)
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\hline", *lines, r"\end{tabular}"])

    def facts(self) -> dict[str, Any]:
        named: dict[str, Any] = {
            "family": self.family,
            "units": self.units,
            **({"link": self.link} if self.link else {}),
            "names": list(self.all_names),
            "refused": self.reason or None,
        }
        if not self.reason:
            parts = {"coef": self.estimates.values, "p": self.p_values, "interval": self._ends(None)}
            parts |= {"se": self.estimates.se(), "se_sampling": self.estimates.se("sampling")}
            parts |= {"se_privacy": self.estimates.se("privacy"), "covariance": self.estimates.covariance}
            named |= {key: value.tolist() for key, value in parts.items()} | {"level": self.level}
        return named

    def plot(self) -> Picture | None:
        """A forest plot: each coefficient with its interval, and with a narrower one for sampling alone."""
        if self.reason:
            return None
        ends, values = self.interval(), self.estimates.values[: len(self.names)]
        z = float(-ndtri((1 - self.level) / 2))
        sampling = z * self.estimates.se("sampling")[: len(self.names)]
        places = np.arange(len(self.names))[::-1]
        figure = new_figure(6.4, 1.1 + 0.32 * len(self.names))
        axes = figure.subplots()
        axes.axvline(0.0, color="#999999", linewidth=0.8)
        axes.hlines(places, ends[:, 0], ends[:, 1], color=_INK, linewidth=1.4, label="sampling and privacy")
        axes.hlines(
            places, values - sampling, values + sampling, color=_PART, linewidth=5, label="sampling alone"
        )
        axes.plot(values, places, "o", color=_INK, markersize=4)
        axes.set_yticks(places, self.names)
        axes.set_ylim(-0.8, len(self.names) - 0.2)
        what = "log hazard ratio" if self.link == CLOGLOG else f"log {_RATIOS.get(self.family, '')}"
        named = what if self.family in _RATIOS else "coefficient"
        axes.set_xlabel(f"{named}, {self.level:.0%} interval")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.grid(axis="x", color="#e4e4e4", linewidth=0.5)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=2)
        return figure

    def survival(self, x: Any, level: float | None = None) -> Array:
        """(periods, 3): for a unit with columns x, the probability of no event up to the end of each period,
        and both ends of the interval of this probability.
        """
        if not self.periods:
            raise ParameterError(f"`family` must be 'hazard' for survival curves; got {self.family!r}.")
        self.require_valid()
        row = np.asarray(x, dtype=np.float64)
        if row.shape != (len(self.names),) or not np.isfinite(row).all():
            raise ParameterError(f"`x` must contain {len(self.names)} finite numbers; got shape {row.shape}.")
        p, T = len(self.names), len(self.periods)
        eta = np.clip(self.estimates.values[p:] + row @ self.estimates.values[:p], -500.0, 30.0)
        hazard = np.exp(eta) if self.link == CLOGLOG else 1 / (1 + np.exp(-eta))  # equal to -d(log S)/d(eta)
        log_free = np.cumsum(-hazard if self.link == CLOGLOG else np.log1p(-hazard))
        slope = np.hstack([-np.outer(np.cumsum(hazard), row), -np.tril(np.tile(hazard, (T, 1)))])
        error = np.sqrt(np.einsum("ij,jk,ik->i", slope, self.estimates.covariance, slope))
        share = checks.probability("level", self.level if level is None else level)
        half = float(-ndtri((1 - share) / 2)) * error / np.maximum(-log_free, 1e-12)
        bend = np.log(np.maximum(-log_free, 1e-12))  # on the scale log(-log S), both ends stay in (0, 1)
        ends = [np.exp(-np.exp(bend + half)), np.exp(-np.exp(bend - half))]
        return np.column_stack([np.exp(log_free), *ends])


def _chance(p: float) -> str:
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


_SIGNS = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {sign: f"${sign}$" for sign in "<>|"}
_SIGNS |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _escape(text: str) -> str:
    """A text with the special characters of LaTeX escaped."""
    return "".join(_SIGNS.get(sign, sign) for sign in text)
