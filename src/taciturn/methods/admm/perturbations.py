"""ADMM and its private variants. A method says what penalty, dual step and noise a run has.

    ADMM                  eta = theta, one number for all sites and rounds     [ZKL18, (8)-(9)]
    MADMM                 eta_i(t) for each site and round, separate theta     [ZKL18, (10)-(11)]
    PenaltyPerturbation   MADMM with noise inside the penalty                  [ZKL18, Algorithm 1]
    DualPerturbation      ADMM with noise on the dual variable                 [zhang2017]
    PrimalPerturbation    ADMM with noise on the vectors that are sent         [zhang2017]

A method is a frozen dataclass. `tables` computes the method's numbers for every site and round, `prepare`
adds the facts of the network and the run, and `node.py` runs the method. `penalty` (eta) and `dual_step`
(theta) are each a number, a schedule, or a list with a number or schedule for each site. For ADMM and
DualPerturbation, the penalty is one number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar

from ...core import checks
from ...core.errors import ParameterError
from ...objective.softmax import Softmax
from ...privacy.noise import GaussianNoise, NormNoise
from ...schedules import PerSite, per_site, tabulate
from ..base import UNSAID, Network, RunOptions
from ..whitened_penalty import ROUNDS as MOMENT_ROUNDS
from ..whitened_penalty import PreparedWhitened
from .prepared import PreparedADMM
from .real_runs import check_samplers, cover
from .tables import MethodName, Noise, Tables
from .theory import check_theorem_1

_MOST = 10**8  # the largest number of sites x rounds of a run
_TOL = 1e-8  # the default tolerance of the solver in a simulation
_REAL_TOL = 1e-9  # the default in an idealised real run; for other real runs, `cover` sets the default


class ADMMMethod(ABC):
    """The base class of ADMM and its perturbations. It prepares a run from the method and public facts.

    constant : whether the penalty is one number, and not a schedule.
    """

    constant: ClassVar[bool] = False

    @classmethod
    def settings(cls) -> dict[str, bool]:
        """For each setting of this method, whether it must be given.

        >>> DualPerturbation.settings()["penalty"], PrimalPerturbation.settings()["dual_step"]
        (True, False)
        """
        return {entry.name: entry.default is MISSING for entry in fields(cls)}  # type: ignore[arg-type]

    @abstractmethod
    def tables(self, sites: int, rounds: int) -> Tables:
        """Return every number of the run, checked, before any budget is spent."""

    def prepare(self, network: Network, rounds: int, options: RunOptions = UNSAID) -> PreparedADMM:
        """Prepare a run of this method over a network. `cover` adds settings that a real run needs."""
        if isinstance(network.loss, Softmax):
            name = type(self).__name__
            raise ParameterError(f"`method` must be MaskedDescent for a SoftmaxProblem; got {name}.")
        usual = _REAL_TOL if options.real else _TOL
        tol = checks.positive("tol", usual if options.tol is None else options.tol)
        method, tables = self, self.tables(len(network.sites), rounds)
        if options.real and not options.idealised:
            needed, tol = cover(tables, network, tol=options.tol)
            method = self.covered(**needed)
            tables = method.tables(len(network.sites), rounds)
        if options.real:
            check_samplers(tables)
        if options.strict is not False:
            check_theorem_1(tables)
        begin = checks.choice("start", options.start or "zeros", ("zeros", "random"))
        return PreparedADMM(network, tables, tol, repr(method), begin)

    def covered(self, **needed: Any) -> ADMMMethod:
        """The same method with the settings `needed`, which `real_runs.cover` chose for a real run."""
        return replace(self, **needed) if needed else self  # type: ignore[type-var]


Method = ADMMMethod


@dataclass(frozen=True)
class ADMM(ADMMMethod):
    """Conventional ADMM in its simplified form: one fixed penalty, which is also the dual step.

    This method adds no noise and gives no privacy. It is the baseline for the private methods.

    >>> ADMM(penalty=0.5).tables(sites=2, rounds=3).eta.tolist()
    [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    """

    penalty: float
    constant = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", checks.positive("penalty", self.penalty))

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("none", sites, rounds, self.penalty, self.penalty)


@dataclass(frozen=True)
class MADMM(ADMMMethod):
    """Modified ADMM: each site has its own penalties, separate from the dual step. No noise, so no privacy.

    >>> from taciturn import Geometric
    >>> MADMM(penalty=[0.5, Geometric(0.5, 2.0)], dual_step=0.5).tables(sites=2, rounds=3).eta.tolist()
    [[0.5, 0.5, 0.5], [0.5, 1.0, 2.0]]
    """

    penalty: PerSite
    dual_step: PerSite

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("none", sites, rounds, self.penalty, self.dual_step)


@dataclass(frozen=True)
class Release(ADMMMethod):
    """The base class of all private methods. It has the settings for the release of a vector.

    output_noise: a little noise that is added to the solved vector. It hides the error of an inexact solver.
        Without it, a certificate of penalty or dual perturbation says 'idealised: exact minimiser assumed'.
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

    If the penalty grows from round to round, later rounds cost less privacy. The paper's theorems need a
    penalty that never decreases and is at least `dual_step`.

    whiten : mu, the cost (mu-GDP) of two more rounds at the start; None to leave these two rounds out. They
        release noisy second moments of the rows. The later rounds then run in whitened coordinates, in which
        rows vary equally in every direction. The schedules apply to the later rounds.

    >>> from taciturn import Geometric, NormNoise
    >>> method = PenaltyPerturbation(Geometric(0.5, 1.04), 0.5, NormNoise(rate=Geometric(3.0, 1.03)))
    >>> method.tables(sites=5, rounds=60).method
    'penalty'
    """

    penalty: PerSite
    dual_step: PerSite
    noise: Noise
    whiten: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.whiten is not None:
            object.__setattr__(self, "whiten", checks.positive("whiten", self.whiten))

    def prepare(self, network: Network, rounds: int, options: RunOptions = UNSAID) -> PreparedADMM:
        """Prepare a run over a network; with `whiten`, its first rounds release moments of the rows."""
        if self.whiten is None:
            return super().prepare(network, rounds, options)
        if checks.whole("rounds", rounds) <= MOMENT_ROUNDS:
            raise ParameterError(
                f"`rounds` must be at least {MOMENT_ROUNDS + 1} with `whiten`, because the first "
                f"{MOMENT_ROUNDS} rounds release moments of the rows; got {rounds}."
            )
        return PreparedWhitened.of(super().prepare(network, rounds - MOMENT_ROUNDS, options), self.whiten)

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("penalty", sites, rounds, self.penalty, self.dual_step, self.noise, self)


@dataclass(frozen=True)
class DualPerturbation(Release):
    """ADMM with noise e on the dual variable: lam + eta V e instead of lam.

    This method equals penalty perturbation with a fixed eta = theta.

    >>> from taciturn import NormNoise
    >>> DualPerturbation(penalty=0.5, noise=NormNoise(rate=3.0)).tables(sites=5, rounds=60).theta[0, 0].item()
    0.5
    """

    penalty: float
    noise: Noise
    constant = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "penalty", checks.positive("penalty", self.penalty))

    def tables(self, sites: int, rounds: int) -> Tables:
        return _tables("dual", sites, rounds, self.penalty, self.penalty, self.noise, self)


@dataclass(frozen=True)
class PrimalPerturbation(Release):
    """ADMM that broadcasts argmin + e: the noise e is added to the solved vector, not inside the problem.

    `dual_step` defaults to the penalty, as in Zhang and Zhu (2017). The site itself continues from the noisy
    vector that it broadcast. Continuing from the vector without noise would nearly double the privacy cost.

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


METHODS: dict[str, Any] = {
    "admm": ADMM,
    "madmm": MADMM,
    "penalty": PenaltyPerturbation,
    "dual": DualPerturbation,
    "primal": PrimalPerturbation,
}
"""The class of each method, by its name in `taciturn certify` and in the files of the paper's figures."""


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
            f"`rounds` must be at most {_MOST // sites} with {sites} sites, because a run has at "
            f"most {_MOST:g} releases; got {rounds}."
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
