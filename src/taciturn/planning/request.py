"""PlanRequest and Plan: the input and the output of a planner, for every method."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..core.formatting import format_cost, format_delta
from ..core.notebook import facts_table
from ..data.tables.schema import Schema
from ..graph import Graph
from ..methods.base import Method, Network, RunOptions
from ..methods.programs.descent_losses import TrainingLoss
from ..objective import L2, Loss
from ..objective.persons import Persons
from ..objective.softmax import Softmax
from ..privacy.certificate.certificate import Certificate
from ..privacy.facts import UNITS
from ..privacy.marks import PLANNED
from .calibration import EpsilonBudget
from .shapes import RunShape

_DELTA = 1e-5  # delta of a certificate if a pure guarantee was requested
PENALTY = "penalty"
"""The one method that may be asked for by its name."""
_DEFAULTS = {"noise": "'best'", "C": "'auto'", "regularization": "'auto'"}


@dataclass(frozen=True)
class PlanRequest:
    """Public numbers of a run, and what is asked of it; None leaves a choice to the planner.

    constant : the public value of the last column, where every row has the same one (an intercept).
    known_mu : prefer noise whose mu is known: the run is charged to a budget that adds up squares of mu.
    choose : without `colluding`, choose the method with the better forecast; otherwise the paper's.
    whiten : learn better coordinates from moments of the rows first. None: where it should pay, but for the
        paper's method only with `choose`.
    additive : the model must be a sum of its columns' effects. The paper's method on whitened rows gives no
        such model, because it shortens long rows.
    """

    budget: EpsilonBudget
    samples: tuple[int, ...]
    graph: Graph
    dimension: int
    loss: Loss
    outputs: int = 1
    unit: str = "record"
    colluding: int | None = None
    method: Method | str | None = None
    C: float | None = None
    regularization: float | None = None
    noise: str | None = None
    rounds: int | None = None
    max_rounds: int | None = None
    effort: str | None = None
    proxy: Schema | tuple[Any, Any] | None = None
    output_noise: bool | None = None
    real: bool | None = None
    data_norm: float | None = None
    seed: int | None = None
    baseline: bool | None = None
    constant: float | None = None
    known_mu: bool = False
    choose: bool = False
    whiten: bool | None = None
    additive: bool = False

    def checked(self) -> PlanRequest:
        """The same request with every value in its proper type, or one line that names what is wrong."""
        if self.rounds is not None and self.max_rounds is not None:
            raise ParameterError(
                f"`rounds` and `max_rounds` exclude each other; got {self.rounds} and {self.max_rounds}."
            )
        checks.choice("unit", self.unit, UNITS)
        if not (self.whiten is None or isinstance(self.whiten, bool)):
            raise ParameterError(f"`whiten` must be True, False or None; got {self.whiten!r}.")
        if isinstance(self.method, str):
            checks.choice("method", self.method, (PENALTY,))
        changes: dict[str, Any] = {"outputs": checks.whole("outputs", self.outputs, least=1)}
        changes["dimension"] = checks.whole("dimension", self.dimension, least=1)
        for name, least in {"rounds": 1, "max_rounds": 1, "colluding": 0, "seed": 0}.items():
            if (value := getattr(self, name)) is not None:
                changes[name] = checks.whole(name, value, least=least)
        for name in ("C", "regularization"):
            if (value := getattr(self, name)) is not None:
                changes[name] = checks.positive(name, value)
        if self.C is not None and self.C > min(self.samples):
            raise ParameterError(
                f"`C` must not exceed the smallest site's {min(self.samples)} samples; got {self.C:g}."
            )
        if self.data_norm is not None:
            changes["data_norm"] = checks.magnitude("data_norm", self.data_norm)
        if self.noise is not None:
            word = checks.choice("noise", self.noise, ("best", "gaussian", "norm"))
            changes["noise"] = None if word == "best" else word
        if self.effort is not None:
            checks.choice("effort", self.effort, ("quick", "full"))
        self._check_proxy()
        return replace(self, **changes)

    def _check_proxy(self) -> None:
        proxy = self.proxy
        pair = isinstance(proxy, tuple | list) and len(proxy) == 2
        if proxy is not None and not isinstance(proxy, Schema) and not pair:
            raise ParameterError(
                f"`proxy` must be a Schema, or public rows (X, y); got {type(proxy).__name__}."
            )

    def refuse(self, reasons: Mapping[str, str], where: str) -> None:
        """Raise for the first of these parameters that was given: it would have no effect."""
        for name, reason in reasons.items():
            value = getattr(self, name)
            if value is not None and not (name == "baseline" and value is False):
                told = type(value).__name__ if isinstance(value, tuple | Schema) else repr(value)
                raise ParameterError(
                    f"`{name}` must be {_DEFAULTS.get(name, 'left out')} {where}; got {told}: {reason}."
                )

    def forecast(
        self, method: Method, rounds: int, loss: TrainingLoss, C: float, rho: float, tol: float | None
    ) -> Certificate:
        """The cost of a run of the method; every number is fixed in advance."""
        classes = loss.classes if isinstance(loss, Softmax) else 1
        prepared = method.prepare(self.network(loss, C, rho), rounds, RunOptions(tol=tol))
        simulated, outputs = self.real is False, self.outputs if classes == 1 else 1
        run = prepared.run_facts(simulated=simulated, outputs=outputs, marks=(PLANNED,))
        return prepared.forecast(run, self.budget.delta or _DELTA)

    def network(self, loss: TrainingLoss, C: float, rho: float) -> Network:
        """The public facts of the sites."""
        n, person, samples = self.graph.n, self.unit == "person", self.samples
        classes = loss.classes if isinstance(loss, Softmax) else 1
        return Network(
            total=n,
            sites=tuple(range(n)),
            samples=samples,
            degrees=tuple(self.graph.degrees.tolist()),
            names=(),
            dimension=self.dimension * classes,
            loss=loss,
            C=C,
            regularization=rho,
            regularizer=L2(),
            persons=Persons((), np.array(samples), sum(samples)) if person else None,
        )


@dataclass(frozen=True)
class Trial:
    """A shape, its predicted excess loss, and the loss and accuracy of its runs on the proxy, if any."""

    shape: RunShape
    predicted: float | None
    loss: float | None
    quality: float | None


@dataclass(frozen=True)
class Price:
    """The site that needs the most noise, and what would relieve it.

    share : this site's share of the noise variance of the average.
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
        """The text for people."""
        link = (
            "the site already has every link"
            if self.edge is None
            else f"with one more link it would cost {format_cost(self.edge)}"
        )
        return (
            f"Site {self.site} ({self.samples:,} {self.counted}, degree {self.degree}) sets the price: "
            f"it adds {self.share:.0%} of the noise in the average. The run costs epsilon "
            f"{format_cost(self.epsilon)} there; {link}; with twice the {self.counted} it would cost "
            f"{format_cost(self.rows)}, or the same epsilon with {self.noise:.2g} times the noise."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A run that stays within its budget; nothing has been run, and nothing is spent.

    method, rounds, C, regularization : what `simulate`, `train` and `Problem` take.
    tol : the solver's tolerance that the certificate counts on; None for a method that solves nothing.
    weights : of the sites in the released average, `network_average(run.coef, plan.weights)`.
    loss : what one run trains on.
    together : True if one run serves all outputs (with `Softmax`); False if each output has its own run.
    certificate : what the run will have cost, computed from the settings.
    epsilon, delta : what was asked for, one epsilon per site.
    tried, baseline : the shapes that were compared, and the loss without privacy on the same public rows.
    for_estimator, for_job, for_site : the method's own settings as an estimator takes them, as the job of a
        network states them, and as each site keeps them to itself (a list has one entry per site).
    details, shown : further entries of `to_dict` and of the table for people.
    find_price : computes `price`, if one site sets it.
    """

    method: Method
    rounds: int
    C: float
    regularization: float
    tol: float | None
    weights: tuple[float, ...]
    loss: TrainingLoss
    graph: Graph
    budget: EpsilonBudget
    certificate: Certificate
    together: bool = False
    tried: tuple[Trial, ...] = ()
    baseline: float | None = None
    find_price: Callable[[], Price] | None = None
    words: str = ""
    for_estimator: Mapping[str, Any] = field(default_factory=dict)
    for_job: Mapping[str, Any] = field(default_factory=dict)
    for_site: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def epsilon(self) -> tuple[float, ...]:
        return self.budget.epsilon

    @property
    def delta(self) -> float:
        return self.budget.delta

    @cached_property
    def price(self) -> Price | None:
        """The site that needs the most noise, and what would relieve it; None where all add the same."""
        return None if self.find_price is None else self.find_price()

    def sentence(self) -> str:
        """The cost of the choice, as text."""
        return self.words if self.price is None else self.price.sentence()

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON; schedules and noises as they are typed in every file."""
        run, price = self.certificate.run, self.price
        return {
            **self.for_job,
            **self.for_site,
            **self.details,
            **({} if price is None else {"price": asdict(price) | {"sentence": price.sentence()}}),
            "budget": {"epsilon": one_or_all(self.epsilon), "delta": self.delta},
            "epsilon": self.certificate.epsilon if self.delta > 0 else self.certificate.pure_epsilon,
            "delta": self.delta,
            "unit": run.unit,
            "method": run.method,
            "rounds": self.rounds,
            "C": self.C,
            "regularization": self.regularization,
            "sentence": self.sentence(),
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def facts(self) -> dict[str, str]:
        """The plan for people, as names and values."""
        epsilon = self.certificate.epsilon if self.delta > 0 else self.certificate.pure_epsilon
        return {
            "epsilon": f"{format_cost(epsilon)} at delta = {format_delta(self.delta)}",
            "sites": f"{self.certificate.run.sites}",
            "method": f"{self.certificate.run.method}, {self.certificate.run.noise} noise",
            "rounds": f"{self.rounds}",
            "C, regularization": f"{self.C:.4g}, {self.regularization:.4g}",
            **self.shown,
        }

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.for_estimator.items())
        return (
            f"Plan({type(self.method).__name__}, rounds={self.rounds}, {told + ', ' if told else ''}"
            f"epsilon={format_cost(self.certificate.epsilon)}, delta={format_delta(self.delta)})"
        )

    def _repr_html_(self) -> str:
        return facts_table("Plan: nothing was run, nothing is spent", self.facts(), self.sentence())


def unless_auto(value: Any) -> Any:
    """The value, or None for "auto", which leaves the choice to the planner."""
    return None if isinstance(value, str) and value == "auto" else value


def one_or_all(entries: Sequence[Any]) -> Any:
    """A list, or its only value."""
    values = list(entries)
    return values[0] if all(value == values[0] for value in values) else values
