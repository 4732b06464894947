"""The methods: which penalty, which dual step, which noise, and where it goes.

    ADMM                  eta = theta, one number for all sites and rounds     [ZKL18, (8)-(9)]
    MADMM                 eta_i(t) private to each site, theta apart           [ZKL18, (10)-(11)]
    PenaltyPerturbation   MADMM with noise inside the penalty                  [ZKL18, Algorithm 1]
    DualPerturbation      ADMM with noise on the dual variable                 [zhang2017]
    PrimalPerturbation    ADMM with noise on what is broadcast                 [zhang2017]

A method is a fact. `tables` spreads it over sites and rounds; `node.py` runs it. `penalty` and `dual_step`
are numbers, schedules, or lists of them, one for each site, unless a method says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from .. import checks
from ..errors import ParameterError
from ..privacy.noise import GaussianNoise, NormNoise
from ..schedules import PerSite, per_site, tabulate
from .tables import MethodName, Noise, Tables

_MOST = 10**8  # releases of all sites together


class Method(Protocol):
    """What `simulate` takes: anything that can be spread over sites and rounds."""

    def tables(self, sites: int, rounds: int) -> Tables:
        """Return every number of the run, checked, before anything is spent."""
        ...


@dataclass(frozen=True)
class ADMM:
    """Conventional ADMM in its simplified form: one fixed penalty, which is also the dual step.

    No noise and no privacy: what the other methods are compared with.

    >>> ADMM(penalty=0.5).tables(sites=2, rounds=3).eta.tolist()
    [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    """

    penalty: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", checks.positive("penalty", self.penalty))

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("none", sites, rounds, self.penalty, self.penalty)


@dataclass(frozen=True)
class MADMM:
    """Modified ADMM: penalties of each site's own, decoupled from the dual step. No noise and no privacy.

    >>> from taciturn import Geometric
    >>> MADMM(penalty=[0.5, Geometric(0.5, 2.0)], dual_step=0.5).tables(sites=2, rounds=3).eta.tolist()
    [[0.5, 0.5, 0.5], [0.5, 1.0, 2.0]]
    """

    penalty: PerSite
    dual_step: PerSite

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("none", sites, rounds, self.penalty, self.dual_step)


@dataclass(frozen=True)
class Release:
    """How a private method's vectors leave the site; the same for all of them.

    output_noise: a little noise after the solve, which makes an inexact minimiser private. Without it the
        certificate says 'idealised: exact minimiser assumed'.
    grid, clip: released values are clipped to [-clip, clip] and rounded to multiples of grid.
    """

    output_noise: Noise | None = field(default=None, kw_only=True)
    grid: float | None = field(default=None, kw_only=True)
    clip: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.grid is not None:
            checks.positive("grid", self.grid)
        if self.clip is not None:
            checks.positive("clip", self.clip)
        if self.grid is not None and self.clip is not None and not (self.clip / self.grid).is_integer():
            raise ParameterError(
                f"`clip` must be a whole multiple of `grid` = {self.grid:g}; got {self.clip:g}. "
                f"Use {max(1, round(self.clip / self.grid)) * self.grid:g}."
            )


@dataclass(frozen=True)
class PenaltyPerturbation(Release):
    """M-ADMM with noise inside the penalty: eta sum_j ||f + e - (f_i + f_j)/2||^2.

    A penalty that grows from round to round makes the later rounds cost less privacy. Keep it at or above
    `dual_step`, and nondecreasing: the paper's theorems need that.

    >>> from taciturn import Geometric, NormNoise
    >>> method = PenaltyPerturbation(Geometric(0.5, 1.04), 0.5, NormNoise(rate=Geometric(3.0, 1.03)))
    >>> method.tables(sites=5, rounds=60).method
    'penalty'
    """

    penalty: PerSite
    dual_step: PerSite
    noise: Noise

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("penalty", sites, rounds, self.penalty, self.dual_step, self.noise, self)


@dataclass(frozen=True)
class DualPerturbation(Release):
    """ADMM whose dual variable is lam + eta V e: penalty perturbation with eta = theta, fixed.

    >>> from taciturn import NormNoise
    >>> DualPerturbation(penalty=0.5, noise=NormNoise(rate=3.0)).tables(sites=5, rounds=60).theta[0, 0].item()
    0.5
    """

    penalty: float
    noise: Noise

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "penalty", checks.positive("penalty", self.penalty))

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("dual", sites, rounds, self.penalty, self.penalty, self.noise, self)


@dataclass(frozen=True)
class PrimalPerturbation(Release):
    """ADMM that broadcasts argmin + e; the noise is in the units of f, not of the penalty.

    `dual_step` defaults to the penalty, as in [zhang2017]. What is broadcast is what the site itself goes on
    from, or the cost would be nearly double.

    >>> from taciturn import GaussianNoise
    >>> PrimalPerturbation(penalty=0.5, noise=GaussianNoise(std=0.1)).tables(sites=5, rounds=60).method
    'primal'
    """

    penalty: PerSite
    noise: Noise
    dual_step: PerSite | None = None

    def tables(self, sites: int, rounds: int) -> Tables:
        theta = self.penalty if self.dual_step is None else self.dual_step
        return _tables("primal", sites, rounds, self.penalty, theta, self.noise, self)


def _tables(
    method: MethodName,
    sites: int,
    rounds: int,
    penalty: PerSite,
    dual_step: PerSite,
    noise: Noise | None = None,
    release: Release | None = None,
) -> Tables:
    sites, rounds = checks.whole("sites", sites, least=1), checks.whole("rounds", rounds, least=1)
    if sites * rounds > _MOST:
        raise ParameterError(
            f"`rounds` must be at most {_MOST // sites} with {sites} sites: a run has at most {_MOST:g} "
            f"releases; got {rounds}."
        )
    if noise is not None and not isinstance(noise, NormNoise | GaussianNoise):
        raise ParameterError(f"`noise` must be NormNoise or GaussianNoise; got {type(noise).__name__}.")
    penalties = per_site("penalty", penalty, sites)
    output = None if release is None else release.output_noise
    return Tables(
        method=method,
        penalties=penalties,
        eta=tabulate("penalty", penalties, rounds),
        theta=tabulate("dual_step", per_site("dual_step", dual_step, sites), rounds),
        noise=noise,
        scale=None if noise is None else noise.scales(sites, rounds),
        output_noise=output,
        output_scale=None if output is None else output.scales(sites, rounds),
        grid=None if release is None else release.grid,
        clip=None if release is None else release.clip,
    )
