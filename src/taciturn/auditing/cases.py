"""Worst cases for an audit: two neighbouring data sets at one site, and a neighbour who is the attacker.

The two data sets differ in one record. The site's only neighbour, the observer, knows all other records and
chooses its own messages. All other records are x = 0, like an invalid row. They add no curvature, so the
replaced record has the largest effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ..core.types import Array
from ..methods.admm.perturbations import DualPerturbation, Method, PenaltyPerturbation, PrimalPerturbation
from ..methods.admm.prepared import PreparedADMM
from ..methods.admm.tables import Tables
from ..methods.base import Network
from ..objective.local import LocalObjective
from ..objective.losses import Logistic, Loss, SmoothHinge
from ..privacy.facts import RunFacts, SiteFacts
from ..privacy.noise import GaussianNoise, NormNoise

Score = Callable[[Array], Array]
SITES = 2  # the site and the observer
_ETA, _B = 2.5, 10
_D = 1.0 / (_ETA * _B)  # how far the noise moves at penalty _ETA if one of _B records changes its sign


@dataclass(frozen=True, eq=False)
class Case:
    """One site's run on either of two neighbouring data sets, and the messages of the observer.

    old, new : the record in the old data set, and the record that replaces it in the new data set; each has
        norm at most 1.
    labels : the label of the record, in both data sets, in each of the K problems of one-vs-rest.
    samples : B, the number of records; the other B - 1 records are 0.
    messages : the messages of the neighbour, t = 0 .. rounds, (rounds + 1, d); zeros by default.
    delta : the delta at which epsilon is compared.
    scores : additional scores that the observer tries: functions of a transcript (rounds, runs, K d). A
        larger score means that the old data are more likely.
    """

    name: str
    about: str
    method: Method
    old: Sequence[float]
    new: Sequence[float]
    rounds: int
    samples: int
    loss: Loss = field(default_factory=Logistic)
    C: float = 1.0
    regularization: float = 1e-6
    messages: Array | None = None
    delta: float = 0.01
    tol: float = 1e-8
    scores: Mapping[str, Score] = field(default_factory=dict)
    labels: tuple[float, ...] = (1.0,)
    integers: bool = False
    more: int = 1  # the factor on the number of runs

    def __post_init__(self) -> None:
        if len(self.old) != len(self.new):
            raise ParameterError(
                f"`new` must have as many entries as `old`, {len(self.old)}; got {len(self.new)}."
            )

    @property
    def dimension(self) -> int:
        return len(self.old)

    @property
    def problem(self) -> dict[str, Any]:
        """The objective without the rows."""
        return {"loss": self.loss, "C": self.C, "regularization": self.regularization}

    def tables(self) -> Tables:
        """The numbers of the site in every round, such as eta and the scale of the noise."""
        return self.method.tables(SITES, self.rounds).site(0)

    def objective(self, record: Sequence[float], label: float = 1.0) -> LocalObjective:
        """The objective of the site with this record."""
        X, y = np.zeros((self.samples, self.dimension)), np.ones(self.samples)
        X[0], y[0] = record, label
        return LocalObjective(X, y, **self.problem, sites=SITES)

    def heard(self) -> Array:
        """What the site hears: the messages of the neighbour, (rounds + 1, d)."""
        if self.messages is None:
            return np.zeros((self.rounds + 1, self.dimension))
        return np.asarray(self.messages, dtype=np.float64)

    def run_facts(self) -> RunFacts:
        """The facts that the accountant needs about the run."""
        known: Any = {"total": SITES, "dimension": self.dimension, **self.problem}
        network = Network.without_rows([self.samples], [1], **known)
        prepared = PreparedADMM(network, self.tables(), self.tol, "audited")
        where = "folders" if self.integers else ""
        return prepared.run_facts(simulated=not self.integers, where=where, outputs=len(self.labels))

    def site_facts(self) -> SiteFacts:
        """The facts that the accountant needs about the site."""
        theta = tuple(self.tables().theta.tolist())
        return SiteFacts(site=0, samples=self.samples, degree=1, dual_step=theta)


def admm_cases() -> tuple[Case, ...]:
    """One case for each way in which ADMM makes a release, most with a nearly tight bound."""
    penalty = gaussian_case(), norm_case(), logistic_case(), bend_case(), covered_case()
    return *penalty, dual_case(), outputs_case(), primal_case(), whole_case(), fine_case()


def gaussian_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Opposite records on the straight part of the hinge: the noise moves by D in every round.

    `shift` is the distance, in standard deviations, that all rounds together move the noise.
    """
    return _opposite("penalty, Gaussian", _penalty(_gaussian(rounds, shift)), rounds)


def norm_case(rounds: int = 2, pure: float = 2.0) -> Case:
    """The records of `gaussian_case` with norm noise in one dimension: the pure bound is nearly tight."""
    return _opposite("penalty, norm", _penalty(NormNoise(rate=pure / (rounds * _D))), rounds)


def logistic_case(shift: float = 1.0) -> Case:
    """Records 150 degrees apart. The neighbour moves the model to where both records are misclassified."""
    x, y = math.cos(math.radians(75.0)), math.sin(math.radians(75.0))
    return Case(
        name="penalty, Gaussian, logistic",
        about="records 150 degrees apart, dragged to where both are misclassified",
        method=_penalty(_gaussian(1, shift)),
        old=(x, y),
        new=(x, -y),
        rounds=1,
        samples=_B,
        messages=np.array([[-60.0, 0.0]] * 2),
    )


def bend_case(k: float = 40.0, rate: float = 0.01) -> Case:
    """A record and a record of zeros, with a penalty so small that the Jacobian is most of the bound."""
    return Case(
        name="penalty, norm, Jacobian",
        about="a record and a record of zeros, tiny penalty",
        method=PenaltyPerturbation(penalty=1 / (2 * k), dual_step=1 / (4 * k), noise=NormNoise(rate=rate)),
        old=(1.0,),
        new=(0.0,),
        rounds=1,
        samples=1,
    )


def covered_case(pure: float = 2.0, tol: float = 1e-4) -> Case:
    """The output noise of a real run, large enough for a poor `tol`, and rounding to a grid."""
    output = NormNoise(rate=0.05 / tol)
    method = _penalty(NormNoise(rate=pure / _D), output_noise=output, grid=2.0**-15, clip=4.0)
    about = "opposite records, smooth hinge, the whole numbers of a real run"
    name = "penalty, norm, output noise, grid"
    return _opposite(name, method, 1, about=about, tol=tol, integers=True)


def whole_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Primal noise in a real run: discrete Gaussian, on a grid so coarse that rounding adds to the cost."""
    std = _D * math.sqrt(rounds) / shift
    step = 2.0 ** round(math.log2(std / 50))
    method = PrimalPerturbation(_ETA, GaussianNoise(std), _ETA / 100, grid=step, clip=2.0**10)
    about = "opposite records, smooth hinge, the whole numbers of a real run"
    return _opposite("primal, Gaussian, whole numbers", method, rounds, about=about, integers=True)


def fine_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """The usual grid of a real run, so fine that rounding costs nothing."""
    output = GaussianNoise(std=_D / 40)
    method = _penalty(_gaussian(rounds, shift), output_noise=output, grid=2.0**-34, clip=2.0**10)
    about = "opposite records, smooth hinge, the fine grid of a real run"
    return _opposite("penalty, Gaussian, whole numbers", method, rounds, about=about, integers=True)


def dual_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Noise on the dual variable, which is penalty perturbation with eta = theta."""
    return _opposite("dual, Gaussian", DualPerturbation(_ETA, _gaussian(rounds, shift)), rounds)


def outputs_case(outputs: int = 3, shift: float = 1.0) -> Case:
    """One-vs-rest: the site releases the models of K problems. In each, the two records differ most.

    `shift` is the distance, in standard deviations, that all problems together move the noise.
    """
    about = "opposite records of the first class, smooth hinge, one against the rest"
    labels = (1.0,) + (-1.0,) * (outputs - 1)
    method = _penalty(_gaussian(outputs, shift))
    return _opposite(f"penalty, Gaussian, {outputs} outputs", method, 1, about=about, labels=labels)


def primal_case(rounds: int = 6, shift: float = 1.0, ratio: float = 100.0) -> Case:
    """Noise on the broadcast vector, from which the site must continue; eta is `ratio` times theta."""
    method = PrimalPerturbation(_ETA, _gaussian(rounds, shift), dual_step=_ETA / ratio)
    return _opposite("primal, Gaussian", method, rounds)


def _gaussian(releases: int, shift: float) -> GaussianNoise:
    """Noise of such a size that the releases together move by `shift` standard deviations of it."""
    return GaussianNoise(std=_D * math.sqrt(releases) / shift)


def _penalty(noise: NormNoise | GaussianNoise, **more: Any) -> PenaltyPerturbation:
    return PenaltyPerturbation(_ETA, _ETA / 2, noise, **more)


def _opposite(name: str, method: Method, rounds: int, **more: Any) -> Case:
    """One record and its opposite, both on the straight part of the hinge, so that the slopes differ most."""
    usual: Any = {"about": "opposite records, smooth hinge", "samples": _B, "loss": SmoothHinge(0.5)}
    return Case(name=name, method=method, old=(1.0,), new=(-1.0,), rounds=rounds, **(usual | more))
