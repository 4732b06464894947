"""Problem: min_f sum_i (C/B_i) sum_n L(z_n) + rho R(f), with the data at N sites [ZKL18, eq. 1].

[ZKL18] is the paper in docs/glossary.md. f is the model, L the loss and R the regulariser; C and rho are
their weights. Site i has B_i rows, and z_n is the margin (or the residual) of its row n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import DataError, NotConverged
from ..core.types import Array
from .blocks import WeightedRows
from .local import LocalObjective, Objective
from .losses import Logistic, Loss
from .persons import Persons, persons_of
from .regularizers import L2, Regularizer
from .solver.gradient_evaluator import GradientEvaluator
from .solver.newton import newton, newton_step

_UNIT = 1 + 1e-12  # the norm of a normalised row, with its rounding errors, is at most this


class DealtProblem:
    """The base class of problems whose rows are all in this process. It stores the objective of each site."""

    def __init__(
        self,
        C: float,
        regularization: float,
        sites: int,
        persons: Sequence[Any] | None,
        rows_per_person: int | None,
        sites_per_person: int,
    ) -> None:
        self.C = checks.positive("C", C)
        self.regularization = checks.positive("regularization", regularization)
        if not sites:
            raise DataError("`sites` must contain at least one pair (X, y); it is empty.")
        self.persons = given_persons(persons, sites, rows_per_person, sites_per_person)

    def hold(self, objectives: Iterable[Any]) -> None:
        """Store the sites' objectives. An iterator may create the objectives one after the other."""
        self._sites = tuple(objectives)
        self.dimension = common_dimension([site.dimension for site in self._sites])
        self.samples: NDArray[np.int64] = np.array([site.samples for site in self._sites], dtype=np.int64)
        self.samples.flags.writeable = False

    @property
    def n(self) -> int:
        """N, the number of sites."""
        return len(self._sites)

    @property
    def units(self) -> int:
        """The number of records, or of persons, at all sites together."""
        return int(self.samples.sum()) if self.persons is None else self.persons.total

    @property
    def largest_norm(self) -> float:
        """max ||x|| over the rows of all sites."""
        return float(max(site.largest_norm for site in self._sites))

    def site(self, i: int) -> Any:
        """The objective O_i of site i."""
        return self._sites[i]

    def require_unit_rows(self) -> None:
        """Raise an error unless every row has ||x|| <= 1, which the privacy bounds need."""
        check_unit_rows([site.largest_norm for site in self._sites])


class Problem(DealtProblem):
    """A regularised empirical risk over several sites [ZKL18, eq. 1], with the rows of all sites.

    Parameters
    ----------
    sites : one pair (X, y) per site; X is dense or sparse (stored as CSR), y is in {-1, +1}, or real for a
        regression
    loss : a `Loss`; `Logistic()` if not given
    C : the weight of the loss; at most the number of samples B_i of the smallest site
    regularization : rho > 0, the weight of the regulariser
    regularizer : a `Regularizer`; `L2()` if not given
    weights : one array per site with a weight from 0 to 1 for every row. The weight of a row may depend only
        on this row and on public facts. A weight cannot make a row count more, so all privacy bounds stay
        valid.
    persons : one array per site with a person's id for every row; the privacy guarantee is then about one
        person, and not about one row
    rows_per_person, sites_per_person : public upper bounds on the number of rows of a person, and on the
        number of sites at which a person has rows. Only methods that release masked sums (sums over all
        sites) allow a person to have rows at several sites.

    >>> problem = Problem([([[1.0], [0.5]], [1, -1]), ([[-1.0], [0.2]], [-1, 1])], C=1.0, regularization=0.1)
    >>> problem.n, problem.dimension, problem.samples.tolist(), problem.largest_norm
    (2, 1, [2, 2], 1.0)
    """

    def __init__(
        self,
        sites: Sequence[tuple[Any, Any]],
        *,
        C: float,
        regularization: float,
        loss: Loss | None = None,
        regularizer: Regularizer | None = None,
        weights: Sequence[Any] | None = None,
        persons: Sequence[Any] | None = None,
        rows_per_person: int | None = None,
        sites_per_person: int = 1,
    ) -> None:
        self.loss: Loss = Logistic() if loss is None else loss
        self.regularizer: Regularizer = L2() if regularizer is None else regularizer
        sites = sites if isinstance(sites, Sequence) else list(sites)
        super().__init__(C, regularization, len(sites), persons, rows_per_person, sites_per_person)
        self.hold(
            LocalObjective(
                *_pair(sites[i]),
                loss=self.loss,
                C=self.C,
                regularization=self.regularization,
                sites=len(sites),
                regularizer=self.regularizer,
                name=f"site {i}",
                overwrite=bool(getattr(sites, "fresh", False)),
                **row_weights(self.persons, weights, i, len(sites)),
            )
            for i in range(len(sites))  # one at a time: `sites` may compute rows on access
        )

    @property
    def unit(self) -> str:
        """The unit that the privacy guarantee protects: "record" or "person"."""
        return "record" if self.persons is None else "person"

    def pooled(self) -> Objective:
        """The objective of eq. 1 on the rows of all sites together; the rows are not copied."""
        parts = tuple(WeightedRows(part.rows, part.weight) for site in self._sites for part in site.parts)
        return Objective(parts, loss=self.loss, rho=self.regularization, regularizer=self.regularizer)

    def optimum(self, tol: float = 1e-10) -> Array:
        """f_c*, (d,): the minimiser of eq. 1 on the rows of all sites, for comparison. It is not private.

        The length of the next Newton step, ||H^-1 gradient||, estimates the distance to the exact minimiser
        and must be at most `tol`. The bound ||gradient|| / rho would be too loose if rho is small.
        """
        zero = np.zeros((1, self.dimension))
        phi = GradientEvaluator(self.pooled(), 0.0, zero)
        f = newton(phi, zero, 0.0)
        left = float(np.linalg.norm(newton_step(phi, f)))
        if not left <= checks.positive("tol", tol):
            raise NotConverged(
                f"`tol` = {tol:g} is too small: the solver came within about {left:.2g} of the optimum. "
                "Use a larger `tol`."
            )
        return np.asarray(f[0])

    def __repr__(self) -> str:
        return (
            f"Problem({self.n} sites, {int(self.samples.sum())} samples, {self.dimension} features,"
            f" {self.loss!r}, C={self.C:g}, regularization={self.regularization:g})"
        )


def check_unit_rows(norms: Sequence[float]) -> None:
    """Raise an error unless every norm is at most 1; `norms` has the largest norm of a row at each site."""
    long = [i for i, norm in enumerate(norms) if norm > _UNIT]
    if long:
        where = f"site {long[0]}" if len(long) == 1 else f"{len(long)} sites, first at site {long[0]}"
        raise DataError(
            f"rows must have norm at most 1 for a private method; there are larger norms at {where}."
            " Scale the features with public bounds, or clip the rows:"
            " X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))."
        )


def _pair(site: Any) -> tuple[Any, Any]:
    try:
        X, y = site
    except (TypeError, ValueError):
        raise DataError("`sites` must be a list of pairs (X, y), one per site.") from None
    return X, y


def row_weights(
    persons: Persons | None, weights: Sequence[Any] | None, site: int, sites: int
) -> dict[str, Any]:
    """The arguments `weights` and `count` of a site's `LocalObjective`; empty if its rows have no weights."""
    if weights is None:
        return (
            {} if persons is None else {"weights": persons.weights[site], "count": int(persons.counts[site])}
        )
    if len(weights) != sites:
        raise DataError(f"`weights` must contain {sites} arrays, one per site; got {len(weights)}.")
    own = np.asarray(weights[site], dtype=np.float64)
    if persons is None:
        return {"weights": own, "count": own.size}
    if own.shape != persons.weights[site].shape:
        raise DataError(f"`weights` of site {site} must have one number per row; got shape {own.shape}.")
    return {"weights": own * persons.weights[site], "count": int(persons.counts[site])}


def given_persons(
    ids: Sequence[Any] | None, sites: int, most_rows: int | None, most_sites: int
) -> Persons | None:
    """The persons of the rows from their ids; None if no ids are given."""
    if ids is None:
        if most_rows is not None or most_sites != 1:
            raise DataError("`rows_per_person` and `sites_per_person` are allowed only with `persons`.")
        return None
    if len(ids) != sites:
        raise DataError(f"`persons` must contain {sites} arrays of ids, one per site; got {len(ids)}.")
    return persons_of(ids, most_rows=most_rows, most_sites=most_sites)


def common_dimension(dimensions: Sequence[int]) -> int:
    """d, the number of features; raise an error if it is not the same at all sites."""
    for i, d in enumerate(dimensions):
        if d != dimensions[0]:
            raise DataError(
                f"all sites must have the same number of features; site 0 has {dimensions[0]}, "
                f"site {i} has {d}."
            )
    return dimensions[0]
