"""The noise of one round: noise inside the problem that a site solves, and noise on the solved vector.

A release is a vector that leaves its site, rounded to multiples of `grid`. A simulation adds noise in floats
and then rounds. A real run has secret noise. If it also has a grid, a clip and noise on its solved vectors,
it first rounds the solved vector f, and then adds noise that is a whole number of grid steps, drawn exactly.
So it releases z = rint(f / grid) + noise in steps of the grid, and the privacy proof is about integers.
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
    """The noise of round t at some sites. Each vector is drawn once, when it is needed.

    scale, output_scale : (sites,), the scales of the noise and of the output noise in this round, or None.
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
        """Whether sites release whole numbers of grid steps: true for a real run with noise on a grid."""
        return self.tables.covered and not self.streams.simulated

    @property
    def share(self) -> float:
        """The share of `tol` for the solver: half if `whole`, as rounding the noise needs the other half."""
        return 0.5 if self.whole else 1.0

    def inside(self) -> Array | None:
        """The noise e inside the problem, (sites, repeats, d); None if the method adds no noise there."""
        tables = self.tables
        if not tables.inside:
            return None
        return self._draw("noise", tables.noise, self.scale)

    def release(self, solved: Array) -> Array:
        """The solved vectors as they are released, (sites, repeats, d): with noise, on the grid, clipped."""
        tables = self.tables
        noise = (tables.noise, self.scale) if tables.method == "primal" else (None, None)
        output = tables.output_noise, self.output_scale
        if self.whole:
            return self._steps(solved, *(noise if noise[0] else output))
        for drawn in (self._draw("noise", *noise), self._draw("output", *output)):
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
