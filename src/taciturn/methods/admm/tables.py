"""The schedules and noise scales of a run for every site and round, fixed before the run starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ...privacy.noise import GaussianNoise, NormNoise
from ...schedules import Schedule

Noise = NormNoise | GaussianNoise
MethodName = Literal["none", "penalty", "dual", "primal"]
Table = NDArray[np.float64]
_BY_SITE = ("eta", "theta", "scale", "output_scale")


@dataclass(frozen=True, eq=False, kw_only=True)
class Tables:
    """The schedules and noise scales. A table is (sites, rounds) for several sites, (rounds,) for one site.

    eta, theta : penalty and dual step.
    scale, output_scale : the scales of the noise and of the output noise; None if there is no such noise.
    grid, clip : released values are clipped to [-clip, clip] and rounded to multiples of grid.
    penalties : for each site, the schedule that eta was computed from.
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
    penalties: tuple[Schedule, ...] = ()

    @property
    def rounds(self) -> int:
        return int(self.eta.shape[-1])

    @property
    def sites(self) -> int:
        return int(self.eta.shape[0])

    @property
    def private(self) -> bool:
        return self.method != "none"

    @property
    def inside(self) -> bool:
        """Whether the noise is part of the problem that a site solves."""
        return self.method in ("penalty", "dual")

    @property
    def on_output(self) -> bool:
        """Whether noise is added to the solved vectors."""
        return self.output_noise is not None or self.method == "primal"

    @property
    def covered(self) -> bool:
        """Whether noise on a grid covers all floating-point errors. If so, a real run sends multiples of the
        grid."""
        return self.on_output and self.grid is not None and self.clip is not None

    def site(self, i: int) -> Tables:
        """The tables of the i-th site alone, as views, not copies."""
        return replace(self, penalties=self.penalties[i : i + 1], **self._rows(i))

    def alone(self) -> Tables:
        """The tables of one site in the form of a network with one site: every table (1, rounds)."""
        return replace(self, **self._rows(None))

    def part(self, own: range) -> Tables:
        """The rows of a range of sites, copied, so that a pickle of them does not include other rows."""
        rows = slice(own.start, own.stop)
        copied: dict[str, Any] = {
            name: None if row is None else row.copy() for name, row in self._rows(rows).items()
        }
        return replace(self, penalties=self.penalties[rows], **copied)

    def column(self, name: Literal["scale", "output_scale"], t: int) -> Table | None:
        """The noise scales of round t, (sites,), as a contiguous array; None if there is no such noise."""
        table: Table | None = getattr(self, name)
        return None if table is None else np.ascontiguousarray(table[:, t - 1])

    def _rows(self, index: int | slice | None) -> dict[str, Any]:
        tables = {name: getattr(self, name) for name in _BY_SITE}
        return {name: None if table is None else table[index] for name, table in tables.items()}


class HasTables(Protocol):
    """A method that can compute its numbers for every site and round."""

    def tables(self, sites: int, rounds: int) -> Tables:
        """Return every number of the run, checked."""
        ...
