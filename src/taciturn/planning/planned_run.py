"""PlannedRun: all settings of a planned run of penalty perturbation, and the certificate, before the run.

Penalty perturbation is the paper's method: ADMM in which each site adds noise to its penalty term. A shape
(`RunShape`) is a plan without the size of its noise. `calibrated_run` adds the smallest noise for which the
privacy cost is within the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..core.types import Array
from ..methods.admm.perturbations import PenaltyPerturbation
from ..methods.admm.prepared import PreparedADMM
from ..methods.admm.tables import price_run
from ..methods.base import Network
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import RunFacts
from ..privacy.noise import NOISES
from ..schedules import Geometric, PerSite
from .calibration import Draft, EpsilonBudget, calibrate, epsilon_by_site
from .shapes import PlannedNetwork, RunShape

TOL, MANY_ROWS = 1e-7, 50_000
"""The solver's tolerance is TOL if no site has more than MANY_ROWS rows. With more rows, rounding errors are
larger, and need a larger tolerance (`tolerance`)."""
GRID, CLIP = 2.0**-30, 2.0**20
"""The plan computes the cost with this grid step and this bound for clipping. The defaults of a real run are
at most as large (`methods/admm/real_runs.py`), unless the noise is so large that it needs a larger bound."""
OUTPUT_STD = {"gaussian": 1e-3, "norm": 1e-2}
"""The standard deviation, per coordinate, of the output noise: negligible in the model, but large enough to
cover a solver error of TOL."""


def tolerance(network: PlannedNetwork) -> float:
    """The solver's tolerance for the number of rows of the largest site."""
    return TOL * 10.0 ** max(0, math.ceil(math.log10(int(network.samples.max()) / MANY_ROWS)))


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A planned run: its shape, and the penalty and noise of each site.

    run : the facts that the certificate of the run states.
    output : the scale of the output noise, which covers the solver's error; None for no output noise.
    whiten : the privacy cost mu of the first rounds, if these learn whitened coordinates; otherwise None.
    """

    shape: RunShape
    network: PlannedNetwork
    run: RunFacts
    penalty: tuple[Geometric, ...]
    noise: tuple[Geometric, ...]
    output: float | None
    whiten: float | None = None

    @property
    def dual_step(self) -> float:
        """theta, the step size of the dual update: the smallest eta(1), as Theorem 1 requires."""
        return min(schedule.start for schedule in self.penalty)

    @property
    def regularization(self) -> float:
        return self.run.regularization

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights of the sites in the released average."""
        return tuple(self.network.weights.tolist())

    @cached_property
    def method(self) -> PenaltyPerturbation:
        """The method with the settings of this plan."""
        return replace(self.on_rows, whiten=self.whiten)

    @cached_property
    def on_rows(self) -> PenaltyPerturbation:
        """The method without the rounds that learn whitened coordinates."""
        kind = NOISES[self.run.noise]
        return PenaltyPerturbation(
            penalty=_share(self.penalty),
            dual_step=self.dual_step,
            noise=kind(_share(self.noise)),
            output_noise=None if self.output is None else kind(self.output),
        )

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the run; if delta is 0, its `pure_epsilon` is the cost."""
        tables = self.on_rows.tables(self.network.n, self.shape.rounds)
        samples, degrees, delta = self.network.samples, self.network.degrees, self.network.budget.delta
        public = Network.without_rows(samples, degrees, total=self.network.n, dimension=self.run.dimension)
        sites = PreparedADMM(public, tables, self.run.tol, "planned").site_facts()
        return Certificate.from_ledger(price_run(tables, self.run, sites), delta or 1e-5)

    def draft(self, site: int, *, samples: int | None = None, degree: int | None = None) -> Draft:
        """One site's part of the run, optionally with a different number of samples or neighbours."""
        rounds = range(1, self.shape.rounds + 1)
        eta = np.array([[self.penalty[site](t) for t in rounds]])
        scale = np.array([[self.noise[site](t) for t in rounds]])
        return Draft(
            run=self.run,
            samples=np.array([float(samples or self.network.samples[site])]),
            degree=np.array([float(degree or self.network.degrees[site])]),
            eta=eta,
            relative=NOISES[self.run.noise].size(scale),
            output_scale=self.output,
        )

    def epsilon_with(self, site: int, *, samples: int | None = None, degree: int | None = None) -> float:
        """The epsilon of a site in the same run if the site had this number of samples or neighbours."""
        draft = self.draft(site, samples=samples, degree=degree)
        return float(epsilon_by_site(self.run, draft.releases(np.ones(1)), self.network.budget.delta)[0])

    def noise_with(self, site: int, *, samples: int) -> float:
        """(noise that a site would need for its budget if it had this many samples) / (its noise now)."""
        budget = EpsilonBudget((self.network.budget.epsilon[site],), self.network.budget.delta)
        scale = calibrate(self.draft(site, samples=samples), budget)
        if scale is None:
            return 1.0
        kind, now = NOISES[self.run.noise], self.noise[site](1)
        return float(kind.size(scale[0, 0]) / kind.size(now))

    def gradient_noise(self) -> Array:
        """The standard deviation per coordinate of each site's noise in the last round, divided by C."""
        T = self.shape.rounds
        scale = np.array([schedule(T) for schedule in self.noise])
        std = NOISES[self.run.noise].coordinate_std(scale, self.run.dimension)
        eta = np.array([schedule(T) for schedule in self.penalty])
        return np.asarray(2 * eta * self.network.degrees * std / self.run.C)


def calibrated_run(
    network: PlannedNetwork,
    run: RunFacts,
    shape: RunShape,
    *,
    output_noise: bool,
    real: bool = True,
    whiten: float | None = None,
) -> PlannedRun | None:
    """The run of a shape with the smallest noise that stays within the budget; None if no noise is enough.

    run : the facts about the run that are the same for every shape.
    output_noise : whether each release has the small output noise that covers the solver's error.
    real : True for a run between real sites, which adds discrete noise on a grid; False for a simulation.
    whiten : see `PlannedRun`.
    """
    kind = NOISES[shape.noise]
    output = kind.scale_for(OUTPUT_STD[shape.noise], run.dimension) if output_noise else None
    facts = replace(
        run,
        noise=shape.noise,
        rounds=shape.rounds + run.moments,
        regularization=round_digits(network.regularization(shape)),
        output_noise=shape.noise if output_noise else None,
        tol=tolerance(network),
        grid=GRID if real and output_noise else None,
        clip=CLIP if real and output_noise else None,
        integers=real and output_noise,
    )
    growth, tilt = round(shape.growth, 3), round(shape.tilt, 3)
    penalty = tuple(Geometric(round_digits(start), growth) for start in network.penalties(shape).tolist())
    rounds = range(1, shape.rounds + 1)
    eta = np.array([[schedule(t) for t in rounds] for schedule in penalty])
    relative = np.broadcast_to(tilt ** np.arange(shape.rounds), eta.shape)
    draft = Draft(facts, network.samples.astype(float), network.degrees.astype(float), eta, relative, output)
    scale = calibrate(draft, network.budget)
    if scale is None:
        return None
    larger = kind.size(2.0) > kind.size(1.0)  # rounding must never make the noise smaller
    ratio = kind.scale_of(tilt)
    noise = tuple(Geometric(round_digits(start, up=larger), ratio) for start in scale[:, 0].tolist())
    return PlannedRun(shape, network, facts, penalty, noise, output, whiten)


def round_digits(value: float, *, up: bool | None = None) -> float:
    """`value` rounded to six digits: to the nearest; up if `up` is True; down if `up` is False.

    >>> round_digits(0.00012345678), round_digits(2.00000001, up=True), round_digits(2.9999999, up=False)
    (0.000123457, 2.00001, 2.99999)
    """
    step = 10.0 ** (math.floor(math.log10(value)) - 5)
    turn: Callable[[float], float] = round if up is None else math.ceil if up else math.floor
    return float(f"{turn(value / step) * step:.6g}")


def _share(schedules: Sequence[Geometric]) -> PerSite:
    """One schedule if all sites have the same schedule, else the list of the sites' schedules."""
    return schedules[0] if len(set(schedules)) == 1 else list(schedules)
