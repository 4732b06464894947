"""The noise of one round: inside the update, and on the solved vector before it is sent.

A simulation adds floats and rounds them to the grid. A real run rounds first, and its last noise are whole
numbers of steps, drawn exactly: what leaves it is z = rint(f / grid) + noise, a statement about integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.types import Array
from ...privacy.discrete import draw_steps
from ...privacy.noise import draw
from ...rng import Purpose, Streams
from .tables import Noise, Tables
from .updates import to_grid, to_steps


@dataclass(frozen=True, eq=False)
class RoundNoise:
    """The noise of round t at some sites, drawn when it is asked for, each vector once.

    scale, output_scale : of this round, (sites,); None where there is no such noise.
    shape : (repeats, d).
    """

    tables: Tables
    streams: Streams
    t: int
    sites: NDArray[np.int64]
    scale: Array | None
    output_scale: Array | None
    shape: tuple[int, int]

    @property
    def whole(self) -> bool:
        """Whether whole numbers leave: in a real run that noise on a grid covers."""
        return self.tables.covered and not self.streams.simulated

    @property
    def share(self) -> float:
        """Of `tol`, what the solver may use: half, where the other half is for the rounding of the noise."""
        return 0.5 if self.whole else 1.0

    def inside(self) -> Array | None:
        """e, (sites, repeats, d), of penalty and dual perturbation; None for the others."""
        tables = self.tables
        if tables.method not in ("penalty", "dual"):
            return None
        return self._draw("noise", tables.noise, self.scale)

    def release(self, solved: Array) -> Array:
        """The released form of the solved vectors, (sites, repeats, d)."""
        tables = self.tables
        first = (tables.noise, self.scale) if tables.method == "primal" else (None, None)
        if self.whole:
            return self._steps(solved, *(first if first[0] else (tables.output_noise, self.output_scale)))
        for purpose, last in (("noise", first), ("output", (tables.output_noise, self.output_scale))):
            drawn = self._draw("noise" if purpose == "noise" else "output", *last)
            solved = solved if drawn is None else solved + drawn
        return to_grid(solved, grid=tables.grid, clip=tables.clip)

    def _steps(self, solved: Array, noise: Noise | None, scale: Array | None) -> Array:
        grid, clip = self.tables.grid, self.tables.clip
        if noise is None or scale is None or grid is None or clip is None:
            raise AssertionError("a release of whole numbers has noise, a grid and a clip")
        repeats, d = self.shape
        steps = np.empty((len(self.sites), repeats, d), dtype=np.int64)
        for row, (site, size) in enumerate(zip(self.sites.tolist(), scale.tolist(), strict=True)):
            generator = self.streams.generator(repeat=0, site=site, purpose="output", t=self.t)
            steps[row] = draw_steps(noise.kind, generator, size, grid, d, repeats)
        return to_steps(solved, steps, grid=grid, clip=clip)

    def _draw(self, purpose: Purpose, noise: Noise | None, scale: Array | None) -> Array | None:
        if noise is None or scale is None:
            return None
        return draw(noise, self.streams, purpose, self.t, self.sites, scale, self.shape)
