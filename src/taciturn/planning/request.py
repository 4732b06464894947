"""PlanRequest and Plan: the input and the output of a planner, which chooses the settings of a private run.

The planner of penalty perturbation (the method of [ZKL18], "the paper") compares shapes: a shape is a plan
without the size of its noise. It tries the shapes on public rows, the proxy, in place of the private rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core import checks
from ..core.errors import ParameterError
from ..core.formatting import format_cost, format_delta, format_given
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

_DELTA = 1e-5  # the delta of the certificate if the requested delta is 0
_LEAST, _MOST = 1e-20, 1e100  # the range of epsilon in which the planner's numbers do not over- or underflow
PENALTY = "penalty"
"""The only method that a request may give by name."""
_DEFAULTS = {"noise": "'best'", "C": "'auto'", "regularization": "'auto'"}


@dataclass(frozen=True)
class PlanRequest:
    """The public numbers of a run and the requirements on its plan. If a setting is
    None and the method needs it, the planner chooses it.

    constant : the public value of the last column if it is the same in every row (an intercept), else None.
    known_mu : True if the planner may use only noise with a known mu (the measure of Gaussian differential
        privacy), because the run is charged to a budget that adds up the squares of mu.
    choose : has an effect only if `colluding` is None. True compares forecasts of the loss for two methods,
        the paper's method (penalty perturbation) and whitened descent (noisy gradient descent in the
        coordinates that `whiten` describes), and chooses the better one; False chooses the paper's method.
    whiten : True if the run must first learn better (whitened) coordinates from moments of the rows; False
        if it must use the original coordinates. With None the planner decides from public numbers. For the
        paper's method, it considers whitened coordinates only if three conditions hold: `choose` is True,
        `noise` is not "norm", and `effort` is not "quick".
    additive : True if the model must be a sum of functions of single columns. The paper's method on whitened
        rows gives no such model: it shortens a long row by a factor that depends on all columns of the row.
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
        """The same request with every value converted to its type; raises if a value is invalid."""
        if self.rounds is not None and self.max_rounds is not None:
            raise ParameterError(
                f"`rounds` and `max_rounds` exclude each other; got {self.rounds} and {self.max_rounds}."
            )
        for epsilon in self.budget.epsilon:
            if epsilon != math.inf and not _LEAST <= epsilon <= _MOST:  # inf asks for a run without privacy
                given = format_given(epsilon)
                raise ParameterError(f"`epsilon` must be between {_LEAST:g} and {_MOST:g}; got {given}.")
        checks.choice("unit", self.unit, UNITS)
        if not (self.whiten is None or isinstance(self.whiten, bool)):
            raise ParameterError(f"`whiten` must be True, False or None; got {self.whiten!r}.")
        if isinstance(self.method, str) and self.method != PENALTY:
            raise ParameterError(f"`method` must be {PENALTY!r} or a method object; got {self.method!r}.")
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
        """Raise if a parameter in `reasons` was given. `reasons` says why each of them has no effect."""
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
        """The certificate of a run of the method, computed before the run from the settings."""
        classes = loss.classes if isinstance(loss, Softmax) else 1
        prepared = method.prepare(self.network(loss, C, rho), rounds, RunOptions(tol=tol))
        simulated, outputs = self.real is False, self.outputs if classes == 1 else 1
        run = prepared.run_facts(simulated=simulated, outputs=outputs, marks=(PLANNED,))
        return prepared.forecast(run, self.budget.delta or _DELTA)

    def network(self, loss: TrainingLoss, C: float, rho: float) -> Network:
        """The public facts about the sites, as the input of a method."""
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
    """A shape, and how good it is.

    predicted : the forecast of how much the noise increases the loss.
    loss, quality : the loss, and the accuracy (or the mean absolute error of a regression), in a trial run of
        the shape on proxy rows.

    A number that was not computed is None.
    """

    shape: RunShape
    predicted: float | None
    loss: float | None
    quality: float | None


@dataclass(frozen=True)
class Price:
    """The site that needs the most noise, and how a link or more rows would lower its epsilon or its noise.

    share : this site's share of the noise variance in the released average.
    edge : the site's epsilon in the same run if the site had one more link; None if no link can be added.
    rows : the site's epsilon in the same run if the site had twice as many rows.
    noise : the factor by which the site's noise could change, within the same budget, if the site had twice
        as many rows.
    counted : the unit of `samples`: "rows" or "persons".
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
        """The same facts as a text."""
        link = (
            "The site is linked to every other site already."
            if self.edge is None
            else f"With one more link, its epsilon would be {format_cost(self.edge)}."
        )
        return (
            f"Site {self.site} ({self.samples:,} {self.counted}, degree {self.degree}) needs the most "
            f"noise: its epsilon is {format_cost(self.epsilon)}, and it adds {self.share:.0%} of the noise "
            f"variance in the released average. {link} With twice the {self.counted}, its epsilon "
            f"would be {format_cost(self.rows)}, or its noise could be {self.noise:.2g} times as large at "
            "the same epsilon."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A plan of a run within a budget. The planner reads no private rows and spends nothing.

    method, rounds, C, regularization : arguments for `simulate`, `train` and `Problem`.
    tol : the solver's tolerance that the certificate assumes; None for a method without a solver.
    weights : the weights of the sites in the released average, for `run.decide(X, plan.weights)`.
    loss : the loss that one run minimises.
    together : True if one run trains all outputs (with `Softmax`); False if each output has its own run. An
        output is one linear model, such as that of one class.
    certificate : the privacy cost of the run, computed from the settings.
    epsilon, delta : the requested budget, with one epsilon per site.
    tried : the shapes that were compared.
    baseline : the loss, on the proxy rows, of a model without privacy; None if it was not computed.
    words : the text of `sentence` if all sites add the same noise or no noise.
    for_estimator, for_job, for_site : the method's own settings as arguments of an estimator, as entries of a
        job file, and as private settings of each site. In `for_site`, a value that
        differs between sites is a list with one entry per site.
    details : further entries of `to_dict`.
    shown : further entries of `facts`, the table that notebooks display.
    find_price : a function that computes `price`; None if all sites add the same noise.
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

    @property
    def _cost(self) -> float:
        """The certified epsilon at the requested delta."""
        return self.certificate.epsilon if self.delta > 0 else self.certificate.pure_epsilon

    @cached_property
    def price(self) -> Price | None:
        """The site that needs the most noise, as a `Price`; None if `find_price` is None."""
        return None if self.find_price is None else self.find_price()

    def sentence(self) -> str:
        """One or two sentences about the plan: its price, or `words` if there is no price."""
        return self.words if self.price is None else self.price.sentence()

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON values; schedules and noises have the same form as in job files."""
        run, price = self.certificate.run, self.price
        return {
            **self.for_job,
            **self.for_site,
            **self.details,
            **({} if price is None else {"price": asdict(price) | {"sentence": price.sentence()}}),
            "budget": {"epsilon": one_or_all(self.epsilon), "delta": self.delta},
            "epsilon": self._cost,
            "delta": self.delta,
            "unit": run.unit,
            "method": run.method,
            "rounds": self.rounds,
            "C": self.C,
            "regularization": self.regularization,
            "sentence": self.sentence(),
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def facts(self) -> dict[str, str]:
        """The plan as names and values for display."""
        return {
            "epsilon": f"{format_cost(self._cost)} at delta = {format_delta(self.delta)}",
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
            f"epsilon={format_cost(self._cost)}, delta={format_delta(self.delta)})"
        )

    def _repr_html_(self) -> str:
        return facts_table(
            "Plan: no private row was read, and nothing is spent", self.facts(), self.sentence()
        )


def unless_auto(value: Any) -> Any:
    """The value; None for "auto", so that the planner chooses."""
    return None if isinstance(value, str) and value == "auto" else value


def one_or_all(entries: Sequence[Any]) -> Any:
    """One value if all entries are equal, else the list of the entries."""
    values = list(entries)
    return values[0] if all(value == values[0] for value in values) else values
