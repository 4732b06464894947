"""Worst cases for an audit of ADMM: in most of them the certified bound is nearly tight."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..methods.admm.perturbations import DualPerturbation, Method, PenaltyPerturbation, PrimalPerturbation
from ..objective.losses import SmoothHinge
from ..privacy.noise import GaussianNoise, NormNoise
from .observer import Case, WhitenedCase

_ETA, _B = 2.5, 10
# If one of _B records changes its sign, a site sends the same vector only if its noise moves by _D.
_D = 1.0 / (_ETA * _B)


def admm_cases() -> tuple[Case, ...]:
    """One case for each way in which ADMM makes a release, most with a nearly tight bound."""
    penalty = gaussian_case(), norm_case(), logistic_case(), bend_case(), covered_case()
    return *penalty, dual_case(), outputs_case(), primal_case(), whole_case(), fine_case()


def gaussian_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Opposite records on the straight part of the hinge: the noise moves by _D in every round.

    `shift` is the distance, in standard deviations, that all rounds together move the noise.
    """
    return _opposite("penalty, Gaussian", _penalty(_gaussian(rounds, shift)), rounds)


def norm_case(rounds: int = 2, pure: float = 2.0) -> Case:
    """The records of `gaussian_case` with norm noise in one dimension: the pure bound is nearly tight."""
    return _opposite("penalty, norm", _penalty(NormNoise(rate=pure / (rounds * _D))), rounds)


def logistic_case(shift: float = 1.0) -> Case:
    """Records 150 degrees apart. The observer's messages move the model to where both are misclassified."""
    x, y = math.cos(math.radians(75.0)), math.sin(math.radians(75.0))
    return Case(
        name="penalty, Gaussian, logistic",
        about="records 150 degrees apart, at a model that misclassifies both",
        method=_penalty(_gaussian(1, shift)),
        old=(x, y),
        new=(x, -y),
        rounds=1,
        samples=_B,
        messages=np.array([[-60.0, 0.0]] * 2),
    )


def bend_case(k: float = 40.0, rate: float = 0.01) -> Case:
    """A record against a record of zeros; the penalty is so small that the Jacobian is most of the bound."""
    return Case(
        name="penalty, norm, Jacobian",
        about="a record against a record of zeros, tiny penalty",
        method=PenaltyPerturbation(penalty=1 / (2 * k), dual_step=1 / (4 * k), noise=NormNoise(rate=rate)),
        old=(1.0,),
        new=(0.0,),
        rounds=1,
        samples=1,
    )


def covered_case(pure: float = 2.0, tol: float = 1e-4) -> Case:
    """A real run that rounds to a grid, and whose output noise is large enough to cover a large `tol`."""
    output = NormNoise(rate=0.05 / tol)
    method = _penalty(NormNoise(rate=pure / _D), output_noise=output, grid=2.0**-15, clip=4.0)
    about = "opposite records, smooth hinge, the whole numbers of a real run"
    name = "penalty, norm, output noise, grid"
    return _opposite(name, method, 1, about=about, tol=tol, integers=True)


def whole_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Discrete Gaussian noise on the output of a real run; rounding to the coarse grid adds to the cost."""
    std = _D * math.sqrt(rounds) / shift
    step = 2.0 ** round(math.log2(std / 50))
    method = PrimalPerturbation(_ETA, GaussianNoise(std), _ETA / 100, grid=step, clip=2.0**10)
    about = "opposite records, smooth hinge, the whole numbers of a real run"
    return _opposite("primal, Gaussian, whole numbers", method, rounds, about=about, integers=True)


def fine_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Penalty perturbation on the usual grid of a real run, which is so fine that rounding costs nothing."""
    output = GaussianNoise(std=_D / 40)
    method = _penalty(_gaussian(rounds, shift), output_noise=output, grid=2.0**-34, clip=2.0**10)
    about = "opposite records, smooth hinge, the fine grid of a real run"
    return _opposite("penalty, Gaussian, whole numbers", method, rounds, about=about, integers=True)


def dual_case(rounds: int = 2, shift: float = 1.0) -> Case:
    """Noise on the dual variable, which is penalty perturbation with eta = theta."""
    return _opposite("dual, Gaussian", DualPerturbation(_ETA, _gaussian(rounds, shift)), rounds)


def outputs_case(outputs: int = 3, shift: float = 1.0) -> Case:
    """One-vs-rest: the site releases the models of `outputs` problems.

    In each problem, the gradients of the two records differ as much as possible.

    `shift` is the distance, in standard deviations, that all problems together move the noise.
    """
    about = "opposite records of the first class, smooth hinge, one against the rest"
    labels = (1.0,) + (-1.0,) * (outputs - 1)
    method = _penalty(_gaussian(outputs, shift))
    return _opposite(f"penalty, Gaussian, {outputs} outputs", method, 1, about=about, labels=labels)


def primal_case(rounds: int = 6, shift: float = 1.0, ratio: float = 100.0) -> Case:
    """Noise on the broadcast vector; the site continues from the noisy vector. eta is `ratio` times theta."""
    method = PrimalPerturbation(_ETA, _gaussian(rounds, shift), dual_step=_ETA / ratio)
    return _opposite("primal, Gaussian", method, rounds)


def whitened_penalty_case(shift: float = 1.65, delta: float = 0.2) -> Case:
    """Opposite records: their moments are equal, so only the ADMM rounds reveal which record was used."""
    more: Any = {"about": "opposite records, clipped rows", "delta": delta, "whiten": 0.1}
    name = "penalty, Gaussian, whitened"
    return _opposite(name, _penalty(_gaussian(2, shift)), 2, kind=WhitenedCase, **more)


def moments_case(mu: float = 1.65, delta: float = 0.2) -> Case:
    """Orthogonal records: the moments reveal nearly everything, the ADMM rounds hardly anything."""
    more: Any = {"about": "orthogonal records, moments of the rows", "delta": delta, "whiten": mu}
    more |= {"kind": WhitenedCase, "old": (1.0, 0.0), "new": (0.0, 1.0)}
    return _opposite("penalty, moments of the rows", _penalty(_gaussian(2, 0.1)), 2, **more)


def _gaussian(releases: int, shift: float) -> GaussianNoise:
    """Gaussian noise that the releases together move by `shift` of its standard deviations."""
    return GaussianNoise(std=_D * math.sqrt(releases) / shift)


def _penalty(noise: NormNoise | GaussianNoise, **more: Any) -> PenaltyPerturbation:
    return PenaltyPerturbation(_ETA, _ETA / 2, noise, **more)


def _opposite(name: str, method: Method, rounds: int, *, kind: type[Case] = Case, **more: Any) -> Case:
    """One record and its opposite, on the straight part of the hinge: their gradients differ most."""
    usual: Any = {"about": "opposite records, smooth hinge", "old": (1.0,), "new": (-1.0,)}
    return kind(
        name=name, method=method, rounds=rounds, **{**usual, "samples": _B, "loss": SmoothHinge(0.5), **more}
    )
