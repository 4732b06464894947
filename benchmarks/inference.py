"""Do 95% intervals contain the true value in 95% of cases? Every setting was listed before it ran.

    python -m benchmarks.inference                  all 22 settings, half an hour on one core
    python -m benchmarks.inference 3 7 --fits 20    settings 3 and 7, with fewer fits

Rows are real and drawn with replacement; the outcome is drawn from a model whose coefficients are known. The
first twelve settings were listed together. The ten later ones have survival times, several rows per person,
rare outcomes, long tails, or few records.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import poisson

import taciturn as tt
from taciturn.core.errors import ParameterError
from taciturn.core.types import Array
from taciturn.data import load_adult, load_credit, load_support


@dataclass(frozen=True)
class Setting:
    """One line of the table in docs/inference.md.

    size : the size of the coefficients, per standard deviation of a column.   rate : the mean outcome.
    refused : whether theory predicts that the budget is too small.
    link : the link of a hazard over four periods.   rows : the rows per person, if the unit is a person.
    tails : degrees of freedom of the errors of a gaussian outcome; infinite for normal errors.
    """

    table: str
    columns: int
    family: str
    n: int
    epsilon: float
    size: float = 0.3
    rate: float = 0.3
    refused: bool = False
    link: str = ""
    rows: int = 1
    tails: float = math.inf

    def words(self) -> str:
        """The setting as text."""
        more = f" ({self.link})" if self.link else ""
        more += f", {self.rows} rows of a person" if self.rows > 1 else ""
        more += f", {self.rate:.0%} events" if self.rate < 0.1 else ""
        more += f", errors with {self.tails:g} degrees of freedom" if math.isfinite(self.tails) else ""
        return f"{self.table}, {self.columns} columns, {self.family}{more}"


SETTINGS = (
    Setting("adult", 4, "binomial", 2_000, 2.0),
    Setting("adult", 8, "binomial", 20_000, 1.0),
    Setting("credit", 12, "binomial", 100_000, 1.0),
    Setting("credit", 6, "binomial", 50_000, 0.5, rate=0.1),
    Setting("support", 12, "binomial", 20_000, 5.0, size=0.6),
    Setting("adult", 12, "binomial", 2_000, 1.0, refused=True),
    Setting("support", 8, "gaussian", 5_000, 3.0),
    Setting("credit", 12, "gaussian", 50_000, 1.0),
    Setting("adult", 12, "gaussian", 2_000, 0.5, refused=True),
    Setting("support", 6, "poisson", 10_000, 2.0, rate=2.0),
    Setting("adult", 10, "poisson", 100_000, 0.5, rate=0.5),
    Setting("credit", 12, "poisson", 2_000, 1.0, rate=1.0, refused=True),
    Setting("support", 6, "hazard", 10_000, 2.0, rate=0.15, link="logit"),
    Setting("support", 6, "hazard", 10_000, 2.0, rate=0.15, link="cloglog"),
    Setting("adult", 6, "binomial", 10_000, 2.0, rows=3),
    Setting("support", 6, "gaussian", 10_000, 2.0, rows=3),
    Setting("credit", 4, "poisson", 10_000, 2.0, rate=1.0, rows=3),
    Setting("adult", 6, "binomial", 50_000, 2.0, rate=0.03),
    Setting("adult", 6, "binomial", 3_000, 2.0),
    Setting("support", 8, "gaussian", 20_000, 1.0, tails=3.0),
    Setting("credit", 9, "binomial", 30_000, 2.0, size=0.8),
    Setting("adult", 6, "poisson", 30_000, 2.0, rate=0.05),
)
"""The first twelve settings were listed together; the others were listed later, but also before they ran."""

PERIODS = (1.0, 2.0, 3.0, 4.0)
RATIOS = 40  # the number of fits that are compared with a fit without privacy


def adult_rows() -> tuple[Array, list[tuple[float, float]]]:
    data = load_adult()
    job, marital, occupation = (
        data.column(name).astype(str) for name in ("workclass", "marital-status", "occupation")
    )
    columns: list[tuple[Any, float, float]] = [
        (data.column("age"), 17, 90),
        (data.column("education-num"), 1, 16),
        (data.column("sex") == "Male", 0, 1),
        (data.column("hours-per-week"), 1, 99),
        (np.char.startswith(marital, "Married"), 0, 1),
        (data.column("race") == "White", 0, 1),
        (data.column("capital-gain") > 0, 0, 1),
        (np.char.find(job, "gov") >= 0, 0, 1),
        (data.column("capital-loss") > 0, 0, 1),
        (np.char.startswith(job, "Self"), 0, 1),
        (occupation == "Exec-managerial", 0, 1),
        (data.column("native-country") == "United-States", 0, 1),
    ]
    return _stack(columns)


def credit_rows() -> tuple[Array, list[tuple[float, float]]]:
    data = load_credit()
    late = [data.column(f"PAY_{k}") for k in (0, 2, 3)]
    logs = [
        (np.log1p(np.maximum(data.column(name), 0.0)), 0, 14)
        for name in ("BILL_AMT1", "PAY_AMT1", "PAY_AMT2")
    ]
    columns: list[tuple[Any, float, float]] = [
        (data.column("AGE"), 18, 80),
        (np.log1p(data.column("LIMIT_BAL")), 0, 14),
        (data.column("SEX") == "male", 0, 1),
        (data.column("EDUCATION") == "1", 0, 1),
        (data.column("MARRIAGE") == "1", 0, 1),
        (np.isin(late[0], ("1", "2", "3")), 0, 1),
        *logs,
        (np.isin(late[1], ("1", "2", "3")), 0, 1),
        (np.isin(late[2], ("1", "2", "3")), 0, 1),
        (data.column("EDUCATION") == "3", 0, 1),
    ]
    return _stack(columns)


def support_rows() -> tuple[Array, list[tuple[float, float]]]:
    data = load_support()
    ranges = {
        field.name: (field.low, field.high) for field in data.schema if isinstance(field, tt.data.Number)
    }
    chosen = ["age", "meanbp", "hrt", "resp", "temp", "crea", "sod", "wblc", "alb", "bili", "num.co"]
    columns = [(data.column(name), *ranges[name]) for name in chosen]
    return _stack([*columns, (data.column("sex") == "male", 0, 1)])


def _stack(columns: list[tuple[Any, float, float]]) -> tuple[Array, list[tuple[float, float]]]:
    X = np.column_stack([np.asarray(values, dtype=np.float64) for values, _, _ in columns])
    return X, [(float(low), float(high)) for _, low, high in columns]


ROWS = {"adult": adult_rows, "credit": credit_rows, "support": support_rows}


def draw(setting: Setting, X: Array, coef: Array, rng: np.random.Generator) -> tuple[Array, Any]:
    """Draw the outcome of the rows X; return it with its public range."""
    eta = X @ coef
    if setting.family == "gaussian":
        eta -= float(eta.mean())
        if math.isfinite(setting.tails):
            return (eta + rng.standard_t(setting.tails, len(X))).clip(-20, 20), (-20.0, 20.0)
        return eta + _errors(setting, len(X), rng), (-6.0, 6.0)
    low, high = -50.0, 50.0
    mean = MEANS[setting.link or setting.family]
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if float(np.mean(mean(eta + middle))) < setting.rate else (low, middle)
    mu = mean(eta + low)
    if setting.family == "hazard":
        period = rng.geometric(mu)
        return np.column_stack([np.minimum(period, len(PERIODS)), period <= len(PERIODS)]).astype(float), None
    if setting.rows > 1:
        u = ndtr(_errors(setting, len(X), rng))
        return (u < mu).astype(float) if setting.family == "binomial" else poisson.ppf(u, mu), (
            None if setting.family == "binomial" else (0.0, 20.0)
        )
    if setting.family == "binomial":
        return (rng.random(len(X)) < mu).astype(float), None
    return rng.poisson(mu).astype(float), (0.0, 20.0)


MEANS = {
    "binomial": lambda v: 1 / (1 + np.exp(-v)),
    "logit": lambda v: 1 / (1 + np.exp(-v)),
    "cloglog": lambda v: -np.expm1(-np.exp(v)),
    "poisson": np.exp,
}


def _errors(setting: Setting, rows: int, rng: np.random.Generator) -> Array:
    """Standard normal errors; the errors of a person's rows share half of their variance."""
    own = rng.standard_normal(rows)
    if setting.rows == 1:
        return own
    shared = np.repeat(rng.standard_normal(rows // setting.rows), setting.rows)
    return np.asarray((own + shared) / math.sqrt(2.0))


def _draw_rows(setting: Setting, whole: Array, rng: np.random.Generator) -> tuple[Array, Array | None]:
    """Draw rows with replacement, and their persons. Half of the columns are equal in a person's rows."""
    X = whole[rng.integers(0, len(whole), setting.n * setting.rows)]
    if setting.rows == 1:
        return X, None
    person, half = np.repeat(np.arange(setting.n), setting.rows), setting.columns // 2
    X[:, :half] = X[:: setting.rows, :half][person]
    return X, person


def coefficients(setting: Setting, X: Array) -> Array:
    """The true coefficients: about `size` per standard deviation, with varying signs and sizes."""
    j = np.arange(setting.columns)
    return setting.size * np.where(j % 2, -1.0, 1.0) * (0.4 + 0.3 * (j % 3)) / X.std(axis=0)


@dataclass(frozen=True)
class Finding:
    """The result of many fits of one setting."""

    fits: int
    refused: int
    held: float
    intervals: int
    ratio: float

    def line(self, number: int, setting: Setting) -> str:
        told = "refused" if setting.refused else "answered"
        kept = f"{self.held:.1%} of {self.intervals:,}" if self.intervals else "-"
        ratio = f"{self.ratio:.2f}" if self.intervals else "-"
        start = f"| {number} | {setting.words()} | {setting.n:,} | {setting.epsilon:g} | {told} "
        return f"{start}| {self.refused} of {self.fits} | {kept} | {ratio} |"


def study(setting: Setting, intervals: int, fits: int) -> Finding:
    """Count the intervals that contain the truth. Stop at this number of intervals, or of fits."""
    whole, bounds = ROWS[setting.table]()
    whole, bounds = whole[:, : setting.columns], bounds[: setting.columns]
    coef, held, total, refused, ratios = coefficients(setting, whole), 0, 0, 0, []
    for seed in range(fits):
        if total >= intervals:
            fits = seed
            break
        rng = np.random.default_rng(seed)
        X, person = _draw_rows(setting, whole, rng)
        y, outcome = draw(setting, X, coef, rng)
        given: dict[str, Any] = {"bounds": bounds, "outcome": outcome, "link": setting.link}
        given |= {"periods": PERIODS} if setting.family == "hazard" else {}
        model = tt.PrivateGLM(setting.family, epsilon=setting.epsilon, random_state=seed, **given)
        try:
            model.fit(X, y, person=person)
        except ParameterError:
            refused += 1
            continue
        low, high = model.interval(0.95).T
        held, total = held + int(np.sum((low <= coef) & (coef <= high))), total + len(coef)
        if len(ratios) < RATIOS:
            plain = tt.PrivateGLM(setting.family, epsilon=math.inf, **given).fit(X, y, person=person)
            ratios.append(np.median(model.se_ / plain.se_))
    return Finding(fits, refused, held / max(total, 1), total, float(np.median(ratios or [math.nan])))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("numbers", nargs="*", type=int, help="settings, from 1; all by default")
    parser.add_argument(
        "--fits",
        type=int,
        default=400,
        help="the largest number of fits per setting; a setting ends when it has 1,000 intervals",
    )
    given = parser.parse_args()
    for number in given.numbers or range(1, len(SETTINGS) + 1):
        setting = SETTINGS[number - 1]
        fits = min(given.fits, 30) if setting.refused else given.fits
        print(study(setting, 1000, fits).line(number, setting), flush=True)


if __name__ == "__main__":
    main()
