"""PrivacyPlan: a method ready to run, what it will cost, who sets the price, and what else was tried."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..admm.methods import PenaltyPerturbation
from ..graph import Graph
from ..notebook import facts_table
from ..privacy.accounting.shown import rounded_up, shown_delta
from ..privacy.certificate.certificate import Certificate
from ..privacy.noise import NOISES
from ..schedules import to_dict
from .blueprint import TOL, Blueprint
from .shapes import RunShape


@dataclass(frozen=True)
class Trial:
    """A shape, its predicted excess loss, and the loss and accuracy of its runs on the proxy, if any."""

    shape: RunShape
    predicted: float | None
    loss: float | None
    quality: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Price:
    """The site that needs the most noise, and what would relieve it.

    share : of the average's noise variance that is this site's.
    edge, rows : the site's epsilon if the same run had one more link there (None where it has all), or twice
        the rows. `noise` is the factor on its noise, within the same budget, that twice the rows allow.
    counted : what `samples` are: rows, or persons.
    """

    site: int
    samples: int
    degree: int
    share: float
    epsilon: float
    edge: float | None
    rows: float
    noise: float
    counted: str = "rows"

    def sentence(self) -> str:
        """In words."""
        link = (
            "it has every link already"
            if self.edge is None
            else f"one more link there: {rounded_up(self.edge)}"
        )
        return (
            f"Site {self.site} ({self.samples:,} {self.counted}, degree {self.degree}) sets the price: "
            f"{self.share:.0%} of the average's noise. The same run costs it epsilon "
            f"{rounded_up(self.epsilon)}; {link}; twice the {self.counted}: {rounded_up(self.rows)}, "
            f"or the same epsilon with {self.noise:.2g} times the noise."
        )


@dataclass(frozen=True, eq=False)
class PrivacyPlan:
    """A run that stays within its budget.

    method, rounds, C, regularization, tol : what `simulate` and `Problem` take.
    weights : of the sites in the released average, `network_average(run.coef, plan.weights)`.
    certificate : what the run will have cost, computed from the settings.
    epsilon, delta : what was asked for, one epsilon per site.
    baseline : the loss without privacy on the same public rows, where it was asked for.
    """

    blueprint: Blueprint
    price: Price
    tried: tuple[Trial, ...]
    effort: str
    proxy: str
    seed: int
    graph: Graph
    baseline: float | None = None

    @property
    def method(self) -> PenaltyPerturbation:
        return self.blueprint.method

    @property
    def rounds(self) -> int:
        return self.blueprint.shape.rounds

    @property
    def C(self) -> float:  # noqa: N802 - the paper's letter, as everywhere
        return self.blueprint.run.C

    @property
    def regularization(self) -> float:
        return self.blueprint.regularization

    @property
    def tol(self) -> float:
        return TOL

    @property
    def weights(self) -> tuple[float, ...]:
        return self.blueprint.weights

    @property
    def certificate(self) -> Certificate:
        return self.blueprint.certificate

    @property
    def epsilon(self) -> tuple[float, ...]:
        return self.blueprint.network.budget.epsilon

    @property
    def delta(self) -> float:
        return self.blueprint.network.budget.delta

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON; schedules and noises as they are typed in every file."""
        plan, run = self.blueprint, self.blueprint.run
        scale = NOISES[run.noise].parameter
        certificate = self.certificate
        return {
            "budget": {"epsilon": _one(self.epsilon), "delta": self.delta},
            "epsilon": certificate.epsilon if self.delta > 0 else certificate.pure_epsilon,
            "delta": self.delta,
            "pure_epsilon": _finite(certificate.pure_epsilon),
            "unit": run.unit,
            "rounds": self.rounds,
            "C": self.C,
            "regularization": self.regularization,
            "method": run.method,
            "penalty": _one([to_dict(schedule) for schedule in plan.penalty]),
            "dual_step": plan.dual_step,
            "noise": {
                "kind": run.noise,
                scale: _one([to_dict(entry) for entry in plan.noise]),
            },
            "output_noise": None if plan.output is None else {"kind": run.noise, scale: plan.output},
            "tol": self.tol,
            "weights": _one(self.weights),
            "price": asdict(self.price) | {"sentence": self.price.sentence()},
            "effort": self.effort,
            "proxy": self.proxy,
            "seed": self.seed,
            "baseline": self.baseline,
            "tried": [entry.to_dict() for entry in self.tried],
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __repr__(self) -> str:
        start = min(schedule.start for schedule in self.blueprint.penalty)
        return (
            f"PrivacyPlan(rounds={self.rounds}, penalty={start:g}.., noise={self.blueprint.run.noise}, "
            f"epsilon={rounded_up(self.certificate.epsilon)}, delta={shown_delta(self.delta)})"
        )

    def _repr_html_(self) -> str:
        run, certificate = self.blueprint.run, self.certificate
        facts = {
            "epsilon": f"{rounded_up(certificate.epsilon)} at delta = {shown_delta(self.delta)}",
            "sites": f"{certificate.run.sites}",
            "rounds": f"{self.rounds}",
            "noise": f"{run.noise}, {run.method}",
            "C": f"{self.C:.4g}",
            "regularization": f"{self.regularization:.4g}",
            "effort": f"{self.effort}: {len(self.tried)} shapes tried on made-up rows ({self.proxy})",
        }
        return facts_table("Plan: nothing was run, nothing is spent", facts, self.price.sentence())


def find_price(blueprint: Blueprint) -> Price:
    """Who sets the price of a blueprint, and what would lower it."""
    network, sites = blueprint.network, blueprint.network.n
    std = blueprint.gradient_noise()
    parts = np.square(network.weights * std)
    site = int(np.argmax(std))
    samples, degree = int(network.samples[site]), int(network.degrees[site])
    return Price(
        site=site,
        samples=samples,
        degree=degree,
        share=float(parts[site] / parts.sum()),
        epsilon=blueprint.epsilon_with(site),
        edge=None if degree == sites - 1 else blueprint.epsilon_with(site, degree=degree + 1),
        rows=blueprint.epsilon_with(site, samples=2 * samples),
        noise=blueprint.noise_with(site, samples=2 * samples),
        counted="persons" if blueprint.run.unit == "person" else "rows",
    )


def _one(entries: Any) -> Any:
    """A list, or its only value."""
    values = list(entries)
    return values[0] if all(value == values[0] for value in values) else values


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
