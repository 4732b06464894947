"""A run's numbers, fixed before it starts: what a method comes to for every site and round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.noise import GaussianNoise, NormNoise
from ..schedules import Schedule

Noise = NormNoise | GaussianNoise
MethodName = Literal["none", "penalty", "dual", "primal"]
Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers:
    """What one site and a whole network have in common. The last axis of every table is the round's.

    eta, theta : penalty and dual step.
    scale, output_scale : of the noise and the output noise, None where there is none.
    grid, clip : released values are clipped to [-clip, clip] and rounded to multiples of grid.
    """

    method: MethodName
    eta: Table
    theta: Table
    noise: Noise | None = None
    scale: Table | None = None
    output_noise: Noise | None = None
    output_scale: Table | None = None
    grid: float | None = None
    clip: float | None = None

    @property
    def rounds(self) -> int:
        return int(self.eta.shape[-1])

    @property
    def private(self) -> bool:
        return self.method != "none"

    @property
    def covered(self) -> bool:
        """Whether noise on a grid covers all by which floats stray; a real run then sends whole numbers."""
        noisy = self.output_noise is not None or self.method == "primal"
        return noisy and self.grid is not None and self.clip is not None


@dataclass(frozen=True, eq=False, kw_only=True)
class SiteTables(Numbers):
    """One site's numbers: every table is (rounds,). All that its node knows of the method."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables(Numbers):
    """The numbers of several sites: every table is (sites, rounds)."""

    penalties: tuple[Schedule, ...]

    @property
    def sites(self) -> int:
        return int(self.eta.shape[0])

    def site(self, i: int) -> SiteTables:
        """The rows of the i-th of these sites; views, not copies."""
        return SiteTables(
            method=self.method,
            eta=self.eta[i],
            theta=self.theta[i],
            noise=self.noise,
            scale=None if self.scale is None else self.scale[i],
            output_noise=self.output_noise,
            output_scale=None if self.output_scale is None else self.output_scale[i],
            grid=self.grid,
            clip=self.clip,
        )

    def part(self, own: range) -> Tables:
        """The rows of some neighbouring sites, copied: sent elsewhere, it does not drag the others along."""
        rows = slice(own.start, own.stop)
        return Tables(
            method=self.method,
            penalties=self.penalties[rows],
            eta=self.eta[rows].copy(),
            theta=self.theta[rows].copy(),
            noise=self.noise,
            scale=None if self.scale is None else self.scale[rows].copy(),
            output_noise=self.output_noise,
            output_scale=None if self.output_scale is None else self.output_scale[rows].copy(),
            grid=self.grid,
            clip=self.clip,
        )
