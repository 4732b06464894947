"""The kind of question "correlations": means, covariances, correlations and principal components of columns.

Each column is scaled from its public range to [-1, 1], so x is in [-1, 1]^d. A record contributes the matrix
q q' with q = (1, x) / sqrt(1 + d); a person contributes the mean of q q' over the person's rows. The sites
release the mean over all n units (records, or persons) with noise. The norm of q q' is at most 1, and the
inner product of two such matrices is never negative, so replacing a unit moves the mean by at most
sqrt 2 / n. A missing value counts as the middle of its range.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field as Key
from scipy.special import ndtri

from ...core.errors import ParameterError
from ...core.notebook import Picture, new_figure
from ...core.types import Array
from ...data.tables.column_types import Boolean, Category, Date, Field, Number
from ...jobfile.job_format import Text
from ...jobfile.toml_fields import LISTED
from ...methods.programs.counts import OuterProducts
from ...methods.programs.own_program import UnitRows
from ..answer import PrivateAnswer
from ..estimates import Estimate
from ..question import PublicTable, Question, SiteTable, Spending, Totals

_DRAWS = 400


class Correlations(Question):
    """The keys of a question of kind "correlations" in a job file.

    columns : columns of the schema with numbers, dates or booleans; all of them by default.
    level : the confidence level of all intervals.
    """

    kind: ClassVar[str] = "correlations"
    columns: Annotated[tuple[Text, ...], LISTED] | None = Key(default=None, min_length=2)
    level: float = Key(default=0.95, gt=0, lt=1)

    def fields(self, public: PublicTable) -> tuple[Number | Date | Boolean, ...]:
        """The columns of the question: numbers, dates and booleans, but no categories."""
        fields = public.fields(self.columns, "columns")
        kept = tuple(one for one in fields if not isinstance(one, Category))
        if len(kept) < 2 or (self.columns is not None and len(kept) < len(fields)):
            names = [one.name for one in fields]
            raise ParameterError(f"`columns` must name two or more numbers, dates or booleans; got {names}.")
        return kept

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        return tuple(one.name for one in self.fields(public))

    def method(self, public: PublicTable, spending: Spending) -> OuterProducts:
        return OuterProducts(len(self.fields(public)) + 1, *spending)

    def rows(self, public: PublicTable, table: SiteTable) -> UnitRows:
        fields = self.fields(public)
        parsed = table.parsed(fields)
        X = np.column_stack([_scaled(one, parsed[one.name]) for one in fields])
        Q = np.column_stack([np.ones(len(X)), X]) / math.sqrt(1 + len(fields))
        return table.unit_rows(Q)

    def answer(self, public: PublicTable, totals: Totals) -> PrivateCorrelations:
        fields, d = self.fields(public), len(self.fields(public)) + 1
        noise = totals.sums[0].grid * totals.sums[0].std * math.sqrt(totals.sites) * d
        M = _matrix(totals.values * d, d)
        return _estimate(M, noise, totals.units, fields, self.level)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCorrelations(PrivateAnswer):
    """Means, standard deviations, covariances and correlations of columns, in the units of the columns.

    means, sds : the mean and the standard deviation of each column, with intervals.
    correlation : the correlation of each pair of columns, with its interval.
    covariance : the covariance matrix, (columns, columns).
    components, variances : the principal components of the correlation matrix, one in each row, and the share
        of the variance that each explains.
    """

    names: tuple[str, ...]
    means: dict[str, Estimate]
    sds: dict[str, Estimate]
    covariance: Array
    correlation: dict[tuple[str, str], Estimate]
    components: Array
    variances: tuple[Estimate, ...]
    units: int

    @property
    def title(self) -> str:
        return f"Correlations of {len(self.names)} columns of {self.units:,} {self.unit_name}"

    def __repr__(self) -> str:
        return f"PrivateCorrelations({len(self.names)} columns, {self.certificate})"

    def __getitem__(self, pair: tuple[str, str]) -> Estimate:
        first, second = pair
        return self.correlation[pair if pair in self.correlation else (second, first)]

    def table(self) -> list[list[str]]:
        rows = [["", "", "estimate", "from", "to"]]
        rows += [[name, "mean", *_shown(e)] for name, e in self.means.items()]
        rows += [[name, "SD", *_shown(e)] for name, e in self.sds.items()]
        rows += [[f"{a}, {b}", "correlation", *_shown(e)] for (a, b), e in self.correlation.items()]
        rows += [[f"component {k + 1}", "share", *_shown(e)] for k, e in enumerate(self.variances)]
        return rows

    def facts(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "columns": list(self.names),
            "means": {name: vars(e) for name, e in self.means.items()},
            "sds": {name: vars(e) for name, e in self.sds.items()},
            "covariance": self.covariance.tolist(),
            "correlations": [{"columns": list(pair), **vars(e)} for pair, e in self.correlation.items()],
            "components": self.components.tolist(),
            "variances": [vars(e) for e in self.variances],
        }

    def plot(self) -> Picture:
        """The correlation matrix as a heat map."""
        d = len(self.names)
        square = np.eye(d)
        for (a, b), e in self.correlation.items():
            i, j = self.names.index(a), self.names.index(b)
            square[i, j] = square[j, i] = e.value
        figure = new_figure(2.2 + 0.55 * d, 1.6 + 0.5 * d)
        axes = figure.subplots()
        image = axes.imshow(square, vmin=-1, vmax=1, cmap="RdBu_r")
        axes.set_xticks(range(d), self.names, rotation=45, ha="right", fontsize=8)
        axes.set_yticks(range(d), self.names, fontsize=8)
        for i in range(d):
            for j in range(d):
                axes.text(j, i, f"{square[i, j]:.2f}", ha="center", va="center", fontsize=7)
        figure.colorbar(image, label="correlation")
        axes.set_title(self.title, fontsize=10)
        return figure


class _Moments(NamedTuple):
    """Means, covariances and correlations of columns that are scaled to [-1, 1].

    values, vectors : the eigenvalues of the correlation matrix, in decreasing order, and its eigenvectors.
    """

    mean: Array
    covariance: Array
    correlation: Array
    values: Array
    vectors: Array


def _moments(M: Array) -> _Moments:
    """The moments from a noisy matrix M of second moments. The covariance has no eigenvalue below 1e-9."""
    mean = M[0, 1:]
    levels, vectors = np.linalg.eigh(M[1:, 1:] - np.outer(mean, mean))
    covariance = (vectors * np.maximum(levels, 1e-9)) @ vectors.T
    deviation = np.sqrt(np.diagonal(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    values, axes = np.linalg.eigh(correlation)
    return _Moments(mean, covariance, correlation, values[::-1], axes[:, ::-1].T)


def _estimate(
    M: Array, noise: float, units: int, fields: Sequence[Number | Date | Boolean], level: float
) -> PrivateCorrelations:
    """All estimates. The intervals of the components come from simulated samples and simulated noise."""
    found, d = _moments(M), len(fields)
    scales = np.array([_half(one) for one in fields])
    offsets = np.array([_middle(one) for one in fields])
    z, names = float(-ndtri((1 - level) / 2)), tuple(one.name for one in fields)
    raw = M[1:, 1:] - np.outer(found.mean, found.mean)
    pairs = {
        (names[i], names[j]): _correlation(raw[np.ix_((i, j), (i, j))], found.mean[[i, j]], noise, units, z)
        for i, j in zip(*np.triu_indices(d, 1), strict=True)
    }
    return PrivateCorrelations(
        names=names,
        means={
            names[k]: _shift(_mean(found.mean[k], raw[k, k], noise, units, z), scales[k], offsets[k])
            for k in range(d)
        },
        sds={
            names[k]: _shift(
                _deviation(raw[k, k], found.mean[k], noise, units, z, binary=isinstance(fields[k], Boolean)),
                scales[k],
            )
            for k in range(d)
        },
        covariance=found.covariance * np.outer(scales, scales),
        correlation=pairs,
        components=found.vectors,
        variances=_components(found, noise, units, level, M),
        units=units,
    )


def _mean(mean: float, variance: float, noise: float, units: int, z: float) -> Estimate:
    """A mean on the scale of [-1, 1]. Means are off the diagonal of M, so their noise is noise / sqrt 2."""
    half = z * math.sqrt(max(variance, 0.0) / units + noise * noise / 2)
    return Estimate(_inside(mean), _inside(mean - half), _inside(mean + half))


def _deviation(variance: float, mean: float, noise: float, units: int, z: float, *, binary: bool) -> Estimate:
    """The root of a variance. Its interval assumes normal values; if `binary`, the values -1 and 1."""
    kept = max(variance, 0.0)
    sample = 4 * mean * mean * kept if binary else 2 * kept * kept
    half = z * math.sqrt(sample / units + noise * noise * (1 + 2 * mean * mean))
    ends = (kept, variance - half, variance + half)
    return Estimate(*(math.sqrt(min(max(end, 0.0), 1.0)) for end in ends))


def _correlation(C: Array, mean: Array, noise: float, units: int, z: float) -> Estimate:
    """All r for which C_12 - r sqrt(C_11 C_22) differs from 0 by no more than noise and sampling error allow.

    The test does not divide by a noisy number, so the interval is valid even if the noise is large. If a
    variance is at most twice the noise, the interval is (-1, 1).
    """
    a, b = float(C[0, 0]), float(C[1, 1])
    if min(a, b) <= 2 * noise:
        value = C[0, 1] / math.sqrt(max(a, 1e-9) * max(b, 1e-9))
        return Estimate(_inside(float(value)), -1.0, 1.0)
    r, root, ratio = np.linspace(-1.0, 1.0, 4001), math.sqrt(a * b), math.sqrt(b / a)
    first, second = r * ratio * mean[0] - mean[1], r / ratio * mean[1] - mean[0]
    of_noise = noise * noise * (0.5 + (r / 2) ** 2 * (ratio**2 + ratio**-2) + (first**2 + second**2) / 2)
    off = z * np.sqrt(of_noise + (1 - r * r) ** 2 * root * root / units)
    value = _inside(float(C[0, 1]) / root)
    held = np.append(r[np.abs(C[0, 1] - r * root) <= off], value)
    return Estimate(value, float(held.min()), float(held.max()))


def _components(found: _Moments, noise: float, units: int, level: float, M: Array) -> tuple[Estimate, ...]:
    """Shares of the variance. Their intervals come from simulated samples of normal rows and simulated noise.

    Noise makes the largest eigenvalue larger. So each end of an interval is either the percentile of the
    simulated values or the mirror image of the opposite percentile about the estimate, whichever is further
    from the estimate.
    """
    seed = int.from_bytes(hashlib.sha256(M.tobytes()).digest()[:8], "big")
    rng, d = np.random.default_rng(seed), len(found.mean)
    drawn = np.stack([_moments(_redrawn(found, noise, units, rng)).values / d for _ in range(_DRAWS)])
    tail, value = 100 * (1 - level) / 2, found.values / d
    below, above = np.percentile(drawn, [tail, 100 - tail], axis=0)
    low, high = np.minimum(below, 2 * value - above), np.maximum(above, 2 * value - below)
    ends = np.clip([value, np.minimum(low, value), np.maximum(high, value)], 0.0, 1.0)
    return tuple(Estimate(*map(float, row)) for row in ends.T)


def _inside(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def _shift(found: Estimate, scale: float, offset: float = 0.0) -> Estimate:
    """An estimate in the units of its column."""
    return Estimate(*(float(offset + scale * end) for end in (found.value, found.low, found.high)))


def _redrawn(found: _Moments, noise: float, units: int, rng: np.random.Generator) -> Array:
    """A simulated matrix M: the second moments of a new sample of `units` units, with new noise."""
    d = len(found.mean)
    root = np.linalg.cholesky(found.covariance)
    mean = found.mean + root @ rng.standard_normal(d) / math.sqrt(units)
    W = rng.standard_normal((d, min(units, 4 * d + 200)))
    wishart = root @ ((W @ W.T) / W.shape[1] - np.eye(d)) @ root.T * math.sqrt(W.shape[1] / units)
    M = np.empty((d + 1, d + 1))
    M[0, 0], M[0, 1:], M[1:, 0] = 1.0, mean, mean
    M[1:, 1:] = found.covariance + wishart + np.outer(mean, mean)
    N = np.triu(rng.standard_normal((d + 1, d + 1))) * noise
    N = N / math.sqrt(2) + np.diag(np.diagonal(N)) * (1 - 1 / math.sqrt(2))
    return np.asarray(M + N + np.triu(N, 1).T)


def _matrix(released: Array, d: int) -> Array:
    """The symmetric matrix from its released upper triangle, with off-diagonal entries divided by sqrt 2."""
    M = np.zeros((d, d))
    M[np.triu_indices(d)] = released
    upper = np.triu(M, 1) / math.sqrt(2.0)
    return np.asarray(upper + upper.T + np.diag(np.diagonal(M)))


def _half(field: Field) -> float:
    if isinstance(field, Number):
        return (field.high - field.low) / 2
    return field.days / 2 if isinstance(field, Date) else 0.5


def _middle(field: Field) -> float:
    if isinstance(field, Number):
        return (field.high + field.low) / 2
    return field.start + field.days / 2 if isinstance(field, Date) else 0.5


def _scaled(field: Field, values: Array) -> Array:
    moved = (values - _middle(field)) / _half(field)
    return np.asarray(np.clip(np.nan_to_num(moved), -1.0, 1.0))


def _shown(e: Estimate) -> list[str]:
    return [f"{value:.4g}" for value in (e.value, e.low, e.high)]
