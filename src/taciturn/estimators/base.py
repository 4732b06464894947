"""The base class of the estimators: it scales rows, assigns them to sites, plans the run, and trains.

A site is a party that holds rows and does not share them. The planner chooses the settings of the run, such
as noise and rounds, from public numbers. A certificate states the privacy cost of the run.
"""

from __future__ import annotations

import math
import warnings
from copy import deepcopy
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import checks
from ..core.errors import (
    ClippedRowsWarning,
    DataError,
    EmptyRowsWarning,
    ParameterError,
    PrivacyLeakWarning,
)
from ..core.types import Array, LazyRows
from ..data.features.mapped_rows import held_if_few
from ..data.tables.clipping import clip_rows, is_sparse, row_norms, whitened_factors
from ..data.tables.dealing import SiteAssignment, assign_sites
from ..data.tables.unit_ball import UnitBallScaling
from ..graph import GraphLike
from ..methods.admm.updates import network_average
from ..methods.base import Method
from ..methods.run import Run
from ..objective.losses import Loss
from ..planning.calibration import EpsilonBudget
from ..planning.plan import find_plan
from ..planning.request import Plan, PlanRequest, unless_auto
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.released import Released
from ..privacy.facts import SiteBudget
from ..privacy.ledger.active import active_budget, join_budget, origin_of
from ..privacy.ledger.pricing import LEAK
from ..runtime.train import run_charged
from .charging import ChargedEstimator, LedgerFile, ledger_file
from .fitting import fit_setups
from .noise_check import warn_of_noise
from .personal import OwnRows, ball_of, joint_vectors, own_model, own_objective

FROM_DATA = "from data"
_ASKED = ("colluding", "method", "noise", "rounds", "max_rounds", "effort", "whiten")
"""The parameters that are passed to the planner unchanged."""
_DELTA = 1e-5  # delta of the certificate if a guarantee with delta = 0 was requested


@dataclass(frozen=True, eq=False)
class Trace:
    """All vectors that the sites released, (rounds, sites, outputs, entries), and the public settings.

    An output is one linear model: a classifier with more than two classes has one output for each class. The
    entries of a released vector are coefficients for rows that are scaled into the unit ball. If the model
    has an intercept, the last entry belongs to the intercept.
    """

    released: Array
    settings: dict[str, Any]

    def __repr__(self) -> str:
        rounds, sites, outputs, entries = self.released.shape
        return f"Trace(rounds={rounds}, sites={sites}, outputs={outputs}, entries={entries})"


_QUOTING = {
    "could not convert": "`X`, and `y` of a regression, must contain numbers; some entries are texts. "
    "Encode them.",
    "Complex data": "Complex data not supported: `X` and `y` must contain real numbers.",
    "Expected 2D array": "`X` must have rows and columns. Reshape your data: X.reshape(-1, 1) makes one "
    "column, X.reshape(1, -1) makes one row.",
}
"""Some messages of scikit-learn quote data. If one contains a key, the key's value is raised instead."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearModel(ChargedEstimator):
    """The base class of the private linear estimators: their parameters and their fit."""

    epsilon: float = 1.0
    delta: float | None = None
    sites: int = 5
    graph: GraphLike = "complete"
    data_norm: float | str | None = 1.0
    colluding: int | None = None
    fit_intercept: bool = True
    intercept_scaling: float = 0.5
    C: float | str = "auto"
    regularization: float | str = "auto"
    rounds: int | None = None
    max_rounds: int | None = None
    noise: str = "best"
    method: Method | str | None = None
    effort: str | None = None
    whiten: bool | None = None
    ledger: str | PathLike[str] | LedgerFile | None = None
    random_state: Any = None
    large_delta: bool = False
    verbose: bool | int = False

    coef_: Any = field(init=False)
    intercept_: Any = field(init=False)
    plan_: Plan = field(init=False)
    certificate_: Certificate = field(init=False)

    def _loss(self) -> Loss:
        raise TypeError("use one of the estimators, not their base class")

    def _fit_targets(self, X: Any, targets: Array, site: Any, **told: Any) -> None:
        """Fit one model for each output of `targets`, (outputs, rows), and set the public attributes.

        `told` are keyword arguments of `_fit_here`: `keep` has an entry for each row, and a row whose entry
        is False counts as a row of zeros; `weights` are weights of the rows from 0 to 1; `marks` are short
        warnings for the certificate; and `person` names the person of each row. The fit is charged to the
        open `Budget`, if there is one.
        """
        with join_budget(origin_of(self)):
            self._fit_here(X, targets, site, **told)
        self._certify_model()

    def _certify_model(self) -> None:
        """Put a digest of the model's coefficients into the certificate."""
        found = Released.model(self.coef_, self.intercept_, self.whitening_)
        self.certificate_ = self.certificate_.of(found)

    def _fit_here(
        self,
        X: Any,
        targets: Array,
        site: Any,
        *,
        person: Any = None,
        keep: NDArray[np.bool_] | None = None,
        marks: tuple[str, ...] = (),
        weights: Array | None = None,
    ) -> None:
        seed = self._seed()
        file = ledger_file(self.ledger, seed)
        leak = (LEAK,) if self.data_norm == FROM_DATA else ()
        marks = (*marks, *leak, *(() if file is None else file.marks))
        scaling = checks.positive("intercept_scaling", self.intercept_scaling)
        ball = UnitBallScaling(self._norm_bound(X), bool(self.fit_intercept), scaling)
        places = assign_sites(X.shape[0], site, self.sites, self.graph, seed, person)
        request = self._request(places, ball, len(targets))
        plan = find_plan(replace(request, real=None if seed is None else False), recall=True)
        free = math.isinf(plan.epsilon[0])
        if seed is not None or free:
            _warn_of_rows(X, ball.bound, keep)
        if seed is None:
            promise = {"epsilon": plan.epsilon[0], "delta": plan.delta}
            warn_of_noise(request.samples, request.dimension, colluding=self.colluding, **promise)
        setups = fit_setups(X, targets, ball, places, plan, seed, keep=keep, weights=weights, marks=marks)
        limit = None if file is None or free else SiteBudget(plan.epsilon[0], plan.delta or _DELTA)
        path, show = None if file is None else file.path, None if self.verbose else False
        runs = run_charged(setups, ledger=path, budget=limit, show=show, what=type(self).__name__)
        self._keep_results(ball, plan, places, runs)

    def _request(self, places: SiteAssignment, ball: UnitBallScaling, outputs: int) -> PlanRequest:
        """The request to the planner: the estimator's parameters, and public numbers about the rows."""
        free, charged_to = self.epsilon == math.inf, active_budget()
        epsilon = math.inf if free else checks.positive("epsilon", self.epsilon)
        delta = checks.usual_delta(self.delta, sum(places.samples), insisted=bool(self.large_delta) or free)
        return PlanRequest(
            budget=EpsilonBudget((epsilon,) * places.graph.n, delta),
            samples=tuple(places.samples),
            graph=places.graph,
            dimension=self.n_features_in_ + ball.intercept,
            loss=self._loss(),
            outputs=outputs,
            unit="record" if places.person is None else "person",
            C=unless_auto(self.C),
            regularization=unless_auto(self.regularization),
            baseline=False,
            choose=True,
            constant=ball.constant if ball.intercept else None,
            known_mu=charged_to is not None and charged_to.accountant in (None, "gaussian"),
            **{name: getattr(self, name) for name in _ASKED},
        )

    def _keep_results(
        self, ball: UnitBallScaling, plan: Plan, places: SiteAssignment, runs: list[Run]
    ) -> None:
        """Set the public attributes. The model is a mean of released vectors: it costs no extra privacy."""
        each = [run.history[:, 0] for run in runs if run.history is not None]  # (rounds, sites, entries)
        entries = self.n_features_in_ + ball.intercept
        released = np.concatenate([one.reshape(*one.shape[:2], -1, entries) for one in each], axis=2)
        mean = network_average(released[-1].swapaxes(0, 1), plan.weights)
        told = {"outputs": released.shape[2], "names": list(places.names)}
        self.certificate_ = runs[0].certificate(plan.delta or _DELTA, large_delta=True)
        self.plan_ = plan
        self.trace_ = Trace(released, {**runs[0].settings, **told})
        self.site_coef_, self.site_intercept_ = ball.model(released[-1])
        self.coef_, self.intercept_ = ball.model(mean)
        V = runs[0].coordinates
        self.whitening_ = None if V is None else np.column_stack(ball.model(V[0].T))
        self.data_norm_, self.softmax_ = ball.bound, plan.together and len(released[0, 0]) > 1
        self.n_iter_ = plan.rounds

    def _decide(self, X: Any) -> Array:
        """coef.x + intercept, (rows, outputs), where x is scaled down as in the fit if its norm is too large.

        If the fit used whitened coordinates, the score is also scaled as in the fit (`whitened_factors`). A
        score that is NaN because terms overflow is replaced by 0.
        """
        check_is_fitted(self)
        X = self._features(X)
        if isinstance(X, LazyRows):
            return np.concatenate([self._scores(X.take(some)) for some in X.slices()])
        return self._scores(X)

    def _scores(self, X: Any) -> Array:
        X = clip_rows(X, self.data_norm_)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.nan_to_num(X @ np.atleast_2d(self.coef_).T + self.intercept_)
            return np.asarray(scores * whitened_factors(X, self.whitening_)[:, None])

    def _features(self, X: Any) -> Any:
        """The encoded rows, in which the model is linear."""
        return self._validated(X, reset=False)

    def _own_targets(self, y: Any) -> tuple[Array, NDArray[np.bool_], Array, float]:
        """(scaled targets, mask of the rows with a target, weights of the rows, the unit of the targets)."""
        raise TypeError("use one of the estimators, not their base class")

    def personalise(self, X_own: Any, y_own: Any) -> Self:
        """A site's own model: the joint model of all sites, adapted to this site's rows.

        On rows of this site, the own model is often better than the joint model and better than a model that
        was trained on the site's rows alone. It is trained WITHOUT noise: keep the own model, its `strength_`
        and all its scores at the site. It has no certificate, and costs no privacy budget. `strength_` is the
        weight of the penalty on the distance from the joint model. Cross-validation chooses this weight; it
        is infinite if the joint model is best.
        """
        check_is_fitted(self)
        if hasattr(self, "strength_"):
            raise ParameterError(
                "`personalise` needs a model of all sites; this model was already adapted to one site's rows."
            )
        targets, known, weights, unit = self._own_targets(y_own)
        ball = ball_of(self)
        X = self._features(X_own)
        X = np.asarray(X) if isinstance(X, LazyRows) else X
        if X.shape[0] != len(known):
            raise DataError(
                f"`X_own` and `y_own` must have the same number of rows; got {X.shape[0]} and {len(known)}."
            )
        Z = ball.rows(X)
        if self.whitening_ is not None:
            shrunk = whitened_factors(clip_rows(X, self.data_norm_), self.whitening_)[:, None]
            Z = Z.multiply(shrunk).tocsr() if is_sparse(Z) else Z * shrunk
        rows = OwnRows(Z, targets, weights).some(np.flatnonzero(known))
        joint = joint_vectors(self, ball, unit)
        objective = own_objective(self._loss(), together=bool(self.softmax_))
        F, strength = own_model(objective, rows, joint)
        own = deepcopy(self)
        for name in ("certificate_", "trace_", "plan_", "site_coef_", "site_intercept_"):
            own.__dict__.pop(name, None)
        coef, intercept = ball.model(F)
        own.coef_ = np.reshape(coef * unit, np.shape(self.coef_))
        own.intercept_ = np.reshape(intercept * unit, np.shape(self.intercept_))[()]
        own.strength_ = strength
        return own

    def _validated(self, X: Any, *y: Any, **options: Any) -> Any:
        """Run scikit-learn's checks of X and y, but raise no message that quotes the data.

        Lazy rows are computed only when they are needed. A small table of lazy rows becomes an array. A large
        table stays lazy, and the checks get zeros of the same shape in its place.
        """
        X = held_if_few(X) if isinstance(X, LazyRows) else X
        if isinstance(X, LazyRows):
            found = self._validated(np.broadcast_to(np.zeros(1), X.shape), *y, **options)
            return (X, found[1]) if y else X
        try:
            return validate_data(self, X, *y, accept_sparse="csr", dtype=np.float64, **options)
        except ValueError as error:
            if str(error).startswith("Input X contains"):
                # scikit-learn's own message would recommend other models
                raise DataError(
                    "`X` contains NaN or infinity. Remove these rows, or encode the table with "
                    "`taciturn.data.BoundedEncoder`, which turns such rows into zeros."
                ) from None
            known = [text for sign, text in _QUOTING.items() if sign in str(error)]
            if not known:
                raise
        raise DataError(known[0])

    def _seed(self) -> int | None:
        """The seed of this fit; None for secret noise. A random generator gives every fit a new seed."""
        state = self.random_state
        if state is None:
            return None
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31 - 1))
        return checks.whole("random_state", state)

    def _norm_bound(self, X: Any) -> float:
        if self.data_norm is None:
            raise ParameterError(
                "`data_norm` must be a public bound on the norm of a row; got None. Rows with a larger norm "
                f"are clipped. data_norm={FROM_DATA!r} computes the bound from the rows, and no noise "
                "hides it."
            )
        if not isinstance(self.data_norm, str):
            return checks.magnitude("data_norm", self.data_norm)
        if self.data_norm != FROM_DATA:
            raise ParameterError(f"`data_norm` must be a number or {FROM_DATA!r}; got {self.data_norm!r}.")
        warnings.warn(f"{LEAK}; give a public bound instead.", PrivacyLeakWarning, stacklevel=5)
        return float(row_norms(X).max()) or 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags


def _warn_of_rows(X: Any, bound: float, keep: NDArray[np.bool_] | None) -> None:
    """Warn if many rows are clipped or empty. The number of such rows is private, so a real private fit does
    not call this function."""
    norms = row_norms(X)
    # sparse rows of zeros are not counted, because they may be intended
    empty = np.zeros(len(norms), dtype=bool) if is_sparse(X) else norms == 0
    empty |= False if keep is None else ~keep
    if (share := float(np.mean(empty))) > 0.1:
        warnings.warn(
            f"{math.floor(100 * share)}% of the rows count as zeros, so the model learns little from them. A "
            "row counts as zeros if it has an empty cell and was encoded by `taciturn.data.BoundedEncoder` "
            "with `missing='row'`, or if its label is not one of `classes`. A private fit without "
            "`random_state` never gives this warning, because the share is private; use `taciturn.check`.",
            EmptyRowsWarning,
            stacklevel=5,
        )
    share = float(np.mean(norms > bound * (1 + 1e-9)))
    if share > 0.01:
        warnings.warn(
            f"{math.floor(100 * share)}% of the rows have a norm above `data_norm` = {bound:g} and are "
            "clipped to it. Scale the columns by public bounds (`taciturn.data.BoundedEncoder`), or raise "
            "`data_norm`.",
            ClippedRowsWarning,
            stacklevel=5,
        )
