"""The facts about a run, its sites and its releases, from which the privacy accountant computes costs."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..core.types import Array
from ..core.versions import versions
from ..schedules import trim_repeats
from .loss_facts import LossFacts
from .marks import ABORTED as ABORTED
from .marks import NOT_PROVEN, check_mark, check_name
from .marks import PLANNED as PLANNED
from .mechanisms import MECHANISMS, Mechanism, check_method
from .stated_cost import StatedCost
from .sums import AttemptFacts, SumFacts, SumTerms, check_moments, check_sums

UNITS = ("record", "person")
STARTS = ("zeros", "random")
PLACES = ("process", "folders", "network")
"""Where the rows of a real run were: in one process; on one machine, with a folder and a process per site; or
on one machine per site, as far as the network addresses show."""
_MOST_ORDER, _LONGEST = 1e5, 300
_STEPS = 2.0**52  # floats represent every whole number up to this one
RELATION = "one record replaced by another, at one site; each record is held by one site only"
PERSON = (
    "all records of one person replaced by others; their number may change; at most {} may hold them",
    "all records of one person replaced by others, their number too; held by at most {} in all",  # format 1
)


@dataclass(frozen=True)
class RunFacts:
    """The facts about one run: the method, the noise, the problem and the public bounds.

    Parameters
    ----------
    method : "penalty", "dual" ("penalty" with eta = theta), "primal", "masked", "own" or "none".
    noise : "norm" (density ~ exp(-alpha ||e||)), "gaussian", "discrete" (only for masked sums),
        "own" (for a user's own method, whose cost is `stated`), or "none", with an infinite epsilon.
    loss : the loss with its bounds on slope and curvature.
    sites, rounds, dimension : N, T and d. T counts the planned rounds; with `attempts`, it counts releases.
    C, regularization : the weight C of the loss, and the weight rho of the regularisation.
    regularized : False if some coordinate, such as an intercept, is not regularised.
    data_norm : X, the public bound on ||x||.
    output_noise : for "penalty" and "dual", the noise that is added to the minimiser; None if idealised.
    tol : how far a solved vector may be from the exact minimiser, rounding errors included.
    grid, clip : released values are rounded to multiples of grid and clipped to [-clip, clip]; None if not.
    integers : whether the noise that is added last was drawn exactly, in grid steps: discrete Gaussian or,
        for norm noise, discrete Laplace of scale sqrt(d) / rate. `tol` then covers rounding of other noise.
    simulated : True if the noise can be reproduced from a seed.
    where : where the rows were, one of `PLACES`; set automatically for a simulated or planned run.
    outputs : the number of models (K for one-vs-rest); each has one release per round.
    start : how f(0), the model before round 1, was made; it must not depend on the data.
    marks : warnings, e.g. "bounds taken from the data", or `PLANNED` if there was no run.
    sums : for "masked", the sum of each release; for "penalty", the released moments of the rows, if any.
    records, largest : for sums, the fixed number of records (None for persons), and the most rows of a site.
    colluding : for masked sums, how many of the sites that do not hold a record may collude; None means all.
    connectivity : how many sites must be removed to disconnect the mask graph; None if all pairs share masks.
    attempts : the parts of a masked run, each with a fixed list of sites; empty if no site left or joined.
    unit : what is protected: one "record" or one "person". With "person", all rows of a person together weigh
        at most as one row, and `samples` is the number of persons at a site.
    persons : the public, fixed number of persons in the whole network; for unit "person" only.
    rows_per_person : a public bound on the rows of one person, or None. Only norm noise needs it.
    sites_per_person : the most sites that hold rows of one person; above 1 for masked sums only.
    relation : what neighbouring data sets are, in words; set automatically.
    """

    method: str
    noise: str
    loss: LossFacts
    sites: int
    rounds: int
    dimension: int
    C: float
    regularization: float
    regularized: bool = True
    data_norm: float = 1.0
    output_noise: str | None = None
    tol: float = 0.0
    grid: float | None = None
    clip: float | None = None
    integers: bool = False
    simulated: bool = True
    where: str = ""
    outputs: int = 1
    start: str = "zeros"
    marks: tuple[str, ...] = ()
    sums: tuple[SumFacts, ...] = ()
    records: int | None = None
    largest: int | None = None
    colluding: int | None = None
    connectivity: int | None = None
    unit: str = "record"
    persons: int | None = None
    rows_per_person: int | None = None
    sites_per_person: int = 1
    relation: str = ""
    attempts: tuple[AttemptFacts, ...] = ()
    versions: Mapping[str, str] = field(default_factory=versions)
    stated: StatedCost | None = None

    def __post_init__(self) -> None:
        check_method(self.method, self.noise, self.stated)
        self.loss.check_private(self.noise)
        for name in ("sites", "rounds", "dimension", "outputs"):
            _set(self, name, checks.whole(name, getattr(self, name), least=1))
        for name in ("C", "data_norm"):
            _set(self, name, checks.magnitude(name, getattr(self, name)))
        for name in ("regularization", "tol"):
            number = checks.nonnegative(name, getattr(self, name))
            _set(self, name, number and checks.magnitude(name, number))
        for name in ("grid", "clip"):
            if getattr(self, name) is not None:
                _set(self, name, checks.magnitude(name, getattr(self, name)))
        if self.output_noise is not None:
            checks.choice("output_noise", self.output_noise, ("norm", "gaussian"))
            if not self.mechanism.inside:
                raise ParameterError(
                    f"`output_noise` must be None for method {self.method!r}; got {self.output_noise!r}. "
                    "Only methods with noise inside the solved problem can have output noise as well."
                )
        for name in ("regularized", "simulated", "integers"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"`{name}` must be True or False; got {getattr(self, name)!r}.")
        self._check_where()
        self._check_masks()
        self._check_unit()
        self._check_sums()
        if self.integers:
            self._check_integers()
        checks.choice("start", self.start, STARTS)
        if not isinstance(self.versions, Mapping) or not set(self.versions) <= set(versions()):
            raise ParameterError(f"`versions` must be a mapping with no keys except {', '.join(versions())}.")
        _lines(relation=self.relation, **self.versions)
        _lines(**{f"marks[{k}]": mark for k, mark in enumerate(self.marks)})
        for mark in self.marks:
            check_mark(mark)
        unmarked = self.stated is not None and NOT_PROVEN not in self.marks
        _set(self, "marks", (*self.marks, *[NOT_PROVEN] * unmarked))
        _set(self, "versions", dict(self.versions))

    def _check_where(self) -> None:
        follows = "planned" if self.planned else "simulated" if self.simulated else None
        allowed = PLACES if follows is None else (follows,)
        _set(self, "where", checks.choice("where", self.where or follows, allowed))

    def _check_masks(self) -> None:
        whitened = self.mechanism.moments and bool(self.sums)
        alien = not whitened and (self.sums or {self.records, self.largest} != {None})
        if not self.mechanism.summed and (alien or self.attempts or self.connectivity is not None):
            names = "`sums`, `records`, `largest`, `attempts` and `connectivity`"
            raise ParameterError(f"{names} must be left out for method {self.method!r}; only sums need them.")
        if self.attempts and self.where == "process":
            raise ParameterError(
                "`attempts` must be empty for a run in one process: only a site of a network can leave a run."
            )
        if whitened and (self.outputs > 1 or self.data_norm != 1.0):
            got = f"{self.outputs} and {self.data_norm:g}"
            raise ParameterError(f"`outputs` and `data_norm` must be 1 if `sums` are moments; got {got}.")
        for name in ("colluding", "connectivity"):
            if getattr(self, name) is not None:
                least = 0 if name == "colluding" else 1
                _set(self, name, checks.among_sites(name, getattr(self, name), self.sites, least=least))

    def _check_sums(self) -> None:
        summed = self.mechanism.summed
        if not (summed or self.sums):
            return
        if summed and not self.loss.shipped:
            raise ParameterError(f"`loss` of masked sums must be a loss of taciturn; got {self.loss.name!r}.")
        _set(self, "sums", check_sums(self.sums, self.rounds if summed else len(self.sums)))
        for name in ("largest", "persons" if self.unit == "person" else "records"):
            _set(self, name, checks.whole(name, getattr(self, name), least=1))
        if self.unit == "person" and self.records is not None:
            raise ParameterError("`records` must be None with unit 'person': give `persons` instead.")
        units = self.persons or self.records or 1
        if self.moments:
            check_moments(self.sums, self.rounds, units, self.largest or 1, self.dimension, self.sites)
            return
        features, odd = divmod(self.dimension, K := self.loss.classes)
        if odd:
            raise ParameterError(
                f"`dimension` must be a multiple of the number of classes, {K}; got {self.dimension}."
            )
        terms = SumTerms(self.loss, units, self.largest or 1, features, self.data_norm, self.sites)
        terms.check(self.sums, self.attempts)

    def _check_integers(self) -> None:
        """Raise unless a run with integer noise has noise on the output, a clip, and a grid that is 2^k."""
        if self.noise not in ("norm", "gaussian") or self.idealised:
            raise ParameterError("`integers` must be False without output noise, except for method 'primal'.")
        if self.grid is None or self.clip is None or math.frexp(self.grid)[0] != 0.5:
            raise ParameterError(
                "`grid` must be a power of 2, and `clip` must be given, if `integers` is True; "
                f"got grid {self.grid} and clip {self.clip}."
            )
        if not self.clip / self.grid <= _STEPS:
            raise ParameterError(
                f"`clip` must be at most 2^52 steps of `grid` = {self.grid:g}; got {self.clip:g}. "
                f"Use a grid of {self.clip / _STEPS:g} or more."
            )

    def _check_unit(self) -> None:
        checks.choice("unit", self.unit, UNITS)
        person = self.unit == "person"
        for name in ("persons", "rows_per_person", "sites_per_person"):
            if getattr(self, name) is not None:
                _set(self, name, checks.whole(name, getattr(self, name), least=1))
        if (self.persons is not None) != person:
            needs = "given if `unit` is" if person else "left out unless `unit` is"
            raise ParameterError(f"`persons` must be {needs} 'person'; got {self.persons}.")
        if not person and (self.rows_per_person is not None or self.sites_per_person != 1):
            raise ParameterError("`rows_per_person` and `sites_per_person` need unit 'person'; got 'record'.")
        if self.sites_per_person > (self.sites if self.mechanism.summed else 1):
            raise ParameterError(
                f"`sites_per_person` must be 1 (with masked sums: from 1 to {self.sites}); "
                f"got {self.sites_per_person}."
            )
        places = "one site" if self.sites_per_person == 1 else f"{self.sites_per_person} sites"
        relations = [text.format(places) for text in PERSON] if person else [RELATION]
        if self.relation not in ("", *relations):
            raise ParameterError(f"`relation` must agree with the other facts: use {relations[0]!r}.")
        _set(self, "relation", self.relation or relations[0])

    @property
    def mechanism(self) -> Mechanism:
        """The kind of releases that the run makes."""
        return MECHANISMS[self.method]

    @property
    def masked(self) -> bool:
        """Whether the sites send shares of sums, which masks hide until all shares are added up."""
        return self.mechanism.summed

    @property
    def moments(self) -> int:
        """How many of the first rounds release moments of the rows, before the paper's rounds begin."""
        return 0 if self.mechanism.summed else len(self.sums)

    def honest(self, colluding: int | None) -> int:
        """The number of sites whose noise protects a site, for the worst choice of `colluding` other sites.

        None means that all other sites collude. The honest sites protect each other while masks connect them.
        The result is 1 (the site itself) if colluding sites could disconnect them, or without masked sums."""
        others = self.sites - 1
        against = others if colluding is None else checks.among_sites("colluding", colluding, self.sites)
        safe = self.connectivity is None or against < self.connectivity
        return self.sites - against if self.mechanism.summed and safe else 1

    @property
    def strong(self) -> float:
        """rho / N, the strong convexity in every direction; 0 if a direction is not regularised."""
        return self.regularization / self.sites if self.regularized else 0.0

    @property
    def planned(self) -> bool:
        """Whether these are the settings of a run that did not take place."""
        return PLANNED in self.marks

    @property
    def idealised(self) -> bool:
        """Whether the guarantee needs the exact minimiser: no noise covers the solver's error."""
        return self.mechanism.exact and self.output_noise is None


SCHEDULES = ("dual_step", "eta", "scale", "output_scale")
"""The schedules of a site, one number per round."""


@dataclass(frozen=True)
class SiteFacts:
    """The facts about one site. The last entry of each schedule also holds for all later rounds.

    site, samples, degree : the site's number; B, the number of its samples; V, the number of its neighbours.
    dual_step : theta(t); left out for masked sums, which have no dual step.
    eta, scale, output_scale : the values planned for `Charge`, one per round. If a run ends early, its cost
        depends on these values, and is infinite if they are missing. Masked sums do not need them. If a run
        first releases moments of the rows, these schedules begin after the moments.
    """

    site: int
    samples: int
    degree: int
    dual_step: tuple[float, ...] = ()
    name: str = ""
    eta: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    output_scale: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "site", checks.whole("site", self.site))
        _set(self, "samples", checks.whole("samples", self.samples, least=1))
        _set(self, "degree", checks.whole("degree", self.degree))
        for name in SCHEDULES:
            given = tuple(getattr(self, name))
            _set(self, name, _shared_table(name, given) if given else ())
        _lines(name=self.name)
        check_name(self.name)
        _set(self, "name", self.name or f"site {self.site}")


class Charge(NamedTuple):
    """One release of one site in round t = 1, 2, ...

    `scale` is alpha for norm noise and sigma for Gaussian noise (0 without noise); `output_scale` is alpha or
    sigma of the output noise. `degree` is V in this round; None if the site has lost no neighbour.
    For sums: `Charge(site, t, scale=s)`, where s is the std of the site's noise in grid units (`SumFacts`).
    `aborted`: the solver failed after its noise was drawn. Nothing was sent, but the failure may reveal
    something about the records, so the failure is charged as a release.
    """

    site: int
    t: int
    eta: float = 0.0
    scale: float = 0.0
    output_scale: float | None = None
    degree: int | None = None
    aborted: bool = False


class RoundCharges(NamedTuple):
    """The charges of several sites in round t, as arrays. A scale is None if the run lacks this noise."""

    t: int
    sites: NDArray[np.int64]
    eta: Array
    scale: Array | None
    output_scale: Array | None
    aborted: bool = False

    def each(self) -> Iterator[Charge]:
        """The same charges, one by one."""
        scale = np.zeros(len(self.sites)) if self.scale is None else self.scale
        output = [None] * len(self.sites) if self.output_scale is None else self.output_scale.tolist()
        numbers = zip(self.sites.tolist(), self.eta.tolist(), scale.tolist(), output, strict=True)
        return (Charge(i, self.t, eta, size, out, aborted=self.aborted) for i, eta, size, out in numbers)


class Columns(NamedTuple):
    """The charges of one site, ordered by round; output_scale is 0 where there is no output noise."""

    t: NDArray[np.int64]
    eta: Array
    scale: Array
    output_scale: Array
    degree: NDArray[np.int64]

    @classmethod
    def of(cls, site: SiteFacts, charges: Sequence[Charge]) -> Columns:
        """The columns of some charges, which may be in any order."""
        rows = sorted(charges, key=lambda charge: charge.t)
        plain = [(r.t, r.eta, r.scale, r.output_scale or 0.0, r.degree or site.degree) for r in rows]
        t, eta, scale, output, degree = np.array(plain, dtype=np.float64).reshape(-1, 5).T
        return cls(t.astype(np.int64), eta, scale, output, degree.astype(np.int64))


@dataclass(frozen=True)
class SiteBudget:
    """The limit of a site: the site stops before its cost exceeds (epsilon, delta).

    If `order` is None, the schedules must be fixed before the run. With a Renyi order, chosen before the run,
    charges may depend on earlier releases (a Renyi filter); the certificate then states the whole budget.
    """

    epsilon: float
    delta: float
    order: float | None = None

    def __post_init__(self) -> None:
        _set(self, "epsilon", checks.positive("epsilon", self.epsilon))
        _set(self, "delta", checks.probability("delta", self.delta))
        if self.order is not None:
            _set(self, "order", checks.real("order", self.order))
            if not 1 < self.order <= _MOST_ORDER:
                raise ParameterError(f"`order` must be above 1, at most {_MOST_ORDER:g}; got {self.order:g}.")


_shared_table = functools.lru_cache(maxsize=64)(trim_repeats)  # sites with equal schedules share one tuple


def _lines(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, str):
            raise ParameterError(f"`{name}` must be a text; got {type(value).__name__}.")
        if len(value) > _LONGEST or not value.isprintable():
            raise ParameterError(f"`{name}` must be one line of at most {_LONGEST} printable characters.")


def _set(facts: Any, name: str, value: Any) -> None:
    object.__setattr__(facts, name, value)
