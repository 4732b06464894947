"""The distributions from which a site draws noise, with samplers and normalised log densities."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .. import schedules
from ..core import checks
from ..core.types import Array
from ..rng import Purpose, SeededStreams, Streams
from ..schedules import PerSite


class Noise(ABC):
    """A distribution on R^d with one scale per site and round; `parameter` is the name of the scale."""

    kind: ClassVar[Literal["norm", "gaussian"]]
    parameter: ClassVar[Literal["rate", "std"]]

    def __post_init__(self) -> None:
        object.__setattr__(self, self.parameter, _check_scales(self.parameter, getattr(self, self.parameter)))

    @classmethod
    def size(cls, scale: Any) -> Any:
        """The size of noise with this scale: std for Gaussian noise, 1/rate for norm noise."""
        return scale if cls.parameter == "std" else 1 / scale

    @classmethod
    def coordinate_std(cls, scale: Any, d: int) -> Any:
        """The standard deviation of each coordinate in R^d: std, or for norm noise sqrt(d + 1) / rate.

        For norm noise E ||e||^2 = d (d + 1) / rate^2, and the d coordinates have equal variances.
        """
        return scale if cls.parameter == "std" else math.sqrt(d + 1) / scale

    scale_of, scale_for = size, coordinate_std
    """The inverse functions of `size` and `coordinate_std`. Each of the two is its own inverse in `scale`."""

    def scales(self, sites: int, rounds: int) -> Array:
        """The scale for every site and round, (sites, rounds)."""
        each = schedules.per_site(self.parameter, getattr(self, self.parameter), sites)
        return schedules.tabulate(self.parameter, each, rounds)

    @abstractmethod
    def sample(self, generator: np.random.Generator, scale: float, d: int) -> Array:
        """One vector in R^d."""

    @abstractmethod
    def log_density(self, e: ArrayLike, scale: ArrayLike) -> Array:
        """The normalised log density at e, whose last axis is R^d."""


@dataclass(frozen=True)
class NormNoise(Noise):
    """density(e) ~ exp(-rate ||e||): the norm is Gamma(d, 1/rate), the direction uniform [ZKL18, Alg 1].

    `rate` is a number, a schedule, or a list with a number or schedule for each site. A larger rate means
    less noise.

    >>> from taciturn import Geometric
    >>> NormNoise(rate=Geometric(3.0, 1.5)).scales(sites=2, rounds=3).tolist()
    [[3.0, 4.5, 6.75], [3.0, 4.5, 6.75]]
    """

    kind: ClassVar[Literal["norm"]] = "norm"
    parameter: ClassVar[Literal["rate"]] = "rate"

    rate: PerSite

    def sample(self, generator: np.random.Generator, scale: float, d: int) -> Array:
        """One vector in R^d: a Gamma(d, 1/scale) norm times a uniform direction."""
        length = 0.0
        while length == 0.0:
            direction = generator.standard_normal(d)
            length = float(np.linalg.norm(direction))
        return np.asarray(direction * (generator.gamma(d, 1 / scale) / length))

    def log_density(self, e: ArrayLike, scale: ArrayLike) -> Array:
        """d ln rate - ln area(unit sphere) - ln Gamma(d) - rate ||e||"""
        e, rate = np.asarray(e, dtype=np.float64), np.asarray(scale, dtype=np.float64)
        d = e.shape[-1]
        area = np.log(2) + d / 2 * np.log(np.pi) - special.gammaln(d / 2)
        constant = d * np.log(rate) - area - special.gammaln(d)
        return np.asarray(constant - rate * np.linalg.norm(e, axis=-1))


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """density(e) = N(0, std^2 I)

    `std` is a number, a schedule, or a list with a number or schedule for each site. A larger std means
    more noise.

    >>> GaussianNoise(std=[1.0, 2.0]).scales(sites=2, rounds=2).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """

    kind: ClassVar[Literal["gaussian"]] = "gaussian"
    parameter: ClassVar[Literal["std"]] = "std"

    std: PerSite

    def sample(self, generator: np.random.Generator, scale: float, d: int) -> Array:
        return np.asarray(scale * generator.standard_normal(d))

    def log_density(self, e: ArrayLike, scale: ArrayLike) -> Array:
        """ln density(e) = -||e||^2 / (2 std^2) - d/2 ln(2 pi std^2)"""
        e, std = np.asarray(e, dtype=np.float64), np.asarray(scale, dtype=np.float64)
        d = e.shape[-1]
        return np.asarray(-np.sum(e**2, axis=-1) / (2 * std**2) - d / 2 * np.log(2 * np.pi * std**2))


NOISES: dict[str, type[NormNoise] | type[GaussianNoise]] = {"norm": NormNoise, "gaussian": GaussianNoise}
"""The noises by their kind."""


def draw(
    noise: NormNoise | GaussianNoise,
    streams: Streams,
    purpose: Purpose,
    t: int,
    sites: NDArray[np.int64],
    scales: Array,
    shape: tuple[int, int],
) -> Array:
    """One fresh vector for every site and repeat, (sites, repeats, d); `shape` is (repeats, d).

    Each vector comes from its own stream, so it does not depend on which other vectors are drawn.
    Seeded streams draw norm noise and Gaussian noise for all sites at once; secret streams use a fresh key
    for each vector.
    """
    drawn = np.empty((len(sites), *shape))
    if isinstance(streams, SeededStreams) and type(noise) in (NormNoise, GaussianNoise):
        streams.vectors(purpose, t, sites, scales, drawn, directed=noise.kind == "norm")
        return drawn
    for i, (site, scale) in enumerate(zip(sites.tolist(), scales.tolist(), strict=True)):
        for repeat in range(shape[0]):
            generator = streams.generator(repeat=repeat, site=site, purpose=purpose, t=t)
            drawn[i, repeat] = noise.sample(generator, scale, shape[1])
    return drawn


def _check_scales(name: str, spec: Any) -> PerSite:
    """`spec` with its numbers checked; a list becomes a tuple."""
    if isinstance(spec, Sequence | np.ndarray) and not isinstance(spec, str | bytes):
        return tuple(_entry(f"{name}[{i}]", entry) for i, entry in enumerate(spec))
    return _entry(name, spec)


def _entry(name: str, spec: Any) -> float | schedules.Schedule:
    return spec if isinstance(spec, schedules.Schedule) else checks.positive(name, spec)
