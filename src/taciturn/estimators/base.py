"""What the estimators share: rows into the unit ball and to sites, a plan for the budget, runs."""

from __future__ import annotations

import math
import warnings
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..admm.averaging import network_average
from ..admm.methods import Method
from ..admm.run import Run
from ..data.tables.ball import Ball
from ..data.tables.clipping import clip_rows, row_norms
from ..data.tables.dealing import deal
from ..engines.outputs import run_outputs
from ..engines.setup import Setup, prepare
from ..engines.train import prepare_real
from ..errors import ClippedRowsWarning, DataError, ParameterError, PrivacyLeakWarning
from ..graph import Graph, GraphLike
from ..objective.losses import Loss
from ..objective.problem import Problem
from ..planning.masked_plan import MaskedPlan
from ..privacy.facts import SiteBudget
from ..privacy.ledger.active import join_budget, note_origin
from ..privacy.ledger.budget import active_budget
from ..types import Array
from .assignment import SiteAssignment, assign_sites
from .charging import LedgerFile, ledger_file
from .masked import MaskedFit, plan_fit
from .settings import Settings, Wishes, choose_settings, for_budget, for_persons

FROM_DATA = "from data"
_ORIGIN = "_budget_origin"
_TINY = 1e-100
_DELTA = 1e-5  # of the certificate, where a pure guarantee was asked for
LEAK = "`data_norm` was taken from the data, which no noise covers"


@dataclass(frozen=True, eq=False)
class Trace:
    """All that left the sites: released vectors, (rounds, sites, outputs, entries), and the public settings.

    An entry belongs to z, the row inside the unit ball, whose last entry is the intercept's.
    """

    released: Array
    settings: dict[str, Any]

    def __repr__(self) -> str:
        rounds, sites, outputs, entries = self.released.shape
        return f"Trace(rounds={rounds}, sites={sites}, outputs={outputs}, entries={entries})"


_QUOTING = {
    "could not convert": "`X`, and `y` of a regression, must hold numbers; some entries are texts. "
    "Encode them.",
    "Complex data": "Complex data not supported: `X` and `y` must hold real numbers.",
}
"""What scikit-learn says before it quotes an entry, or all of them; and what is said instead."""


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """The parameters and the fit of every private linear estimator."""

    coef_: Any
    intercept_: Any
    plan_: Settings | MaskedPlan

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        sites: int = 5,
        graph: GraphLike = "complete",
        data_norm: float | str | None = 1.0,
        colluding: int | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.5,
        C: float | str = "auto",
        regularization: float | str = "auto",
        rounds: int | None = None,
        max_rounds: int | None = None,
        noise: str = "best",
        method: Method | None = None,
        effort: str = "full",
        ledger: str | PathLike[str] | LedgerFile | None = None,
        random_state: Any = None,
        large_delta: bool = False,
        verbose: bool | int = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sites = sites
        self.graph = graph
        self.data_norm = data_norm
        self.colluding = colluding
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.C = C
        self.regularization = regularization
        self.rounds = rounds
        self.max_rounds = max_rounds
        self.noise = noise
        self.method = method
        self.effort = effort
        self.ledger = ledger
        self.random_state = random_state
        self.large_delta = large_delta
        self.verbose = verbose

    def _loss(self) -> Loss:
        raise TypeError("use one of the estimators, not their common part")

    def _fit_targets(self, X: Any, targets: Array, site: Any, **told: Any) -> None:
        """Fit one model per row of `targets`, (outputs, rows), and set the public attributes.

        Rows where `keep` is False count as rows of zeros; `weights`, from 0 to 1, say what a row counts. The
        fit is charged to the budget it is in.
        """
        with join_budget(getattr(self, _ORIGIN, None)):
            self._fit_here(X, targets, site, **told)

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
        wishes, seed = self._wishes(), self._seed()
        if person is not None:
            wishes = for_persons(wishes)
        if (budget := active_budget()) is not None:
            wishes = for_budget(wishes, budget.accountant)
        file = ledger_file(self.ledger, seed)
        if self.data_norm == FROM_DATA:
            marks = (*marks, LEAK)
        if file is not None:
            marks = (*marks, *file.marks)
        scaling = checks.positive("intercept_scaling", self.intercept_scaling)
        ball = Ball(self._norm_bound(X), bool(self.fit_intercept), scaling)
        places = assign_sites(X.shape[0], site, self.sites, self.graph, seed, person)
        insisted = bool(self.large_delta) or math.isinf(wishes.epsilon)
        checks.usual_delta(wishes.delta, sum(places.samples), insisted=insisted)
        if seed is not None or math.isinf(wishes.epsilon):
            _warn_of_clipping(X, ball.bound)
        Z, loss = ball.rows(X, keep), self._loss()
        if wishes.colluding is not None and not math.isinf(wishes.epsilon):
            shape = {"dimension": Z.shape[1], "outputs": len(targets)}
            plan = plan_fit(wishes, places, ball, loss, **shape)
            fit = MaskedFit(Z, targets, places, plan, loss, marks, type(self).__name__, weights)
            self._keep_masked(
                ball, fit, fit.run(seed, None if file is None else file.path, show=self._shown())
            )
            return
        settings = choose_settings(wishes, places, loss=loss, dimension=Z.shape[1], outputs=len(targets))
        told: dict[str, Any] = {"outputs": len(targets), "names": places.names, "marks": marks}

        def problem(y: Array) -> Problem:
            rows = deal(Z, y, places.site, sites=places.graph.n)
            return Problem(
                rows,
                loss=loss,
                C=settings.C,
                regularization=settings.regularization,
                weights=places.by_site(weights),
                persons=places.ids,
            )

        setups = (_setup(problem(y), places.graph, settings, seed, k, told) for k, y in enumerate(targets))
        delta = wishes.delta or _DELTA
        limit = None if file is None or math.isinf(wishes.epsilon) else SiteBudget(wishes.epsilon, delta)
        path, what = None if file is None else file.path, type(self).__name__
        runs = run_outputs(setups, ledger=path, budget=limit, show=self._shown(), what=what)
        self.certificate_ = runs[0].certificate(delta, large_delta=True)
        self._keep_results(ball, settings, places, runs)

    def _keep_results(self, ball: Ball, settings: Settings, places: SiteAssignment, runs: list[Run]) -> None:
        """From released vectors alone: the model is their average, which costs nothing more."""
        released = np.stack([run.history[:, 0] for run in runs if run.history is not None], axis=2)
        mean = network_average(released[-1].swapaxes(0, 1), settings.weights)
        self.plan_ = settings
        self.trace_ = Trace(released, {**runs[0].settings, "outputs": len(runs), "names": list(places.names)})
        self.site_coef_, self.site_intercept_ = ball.model(released[-1])
        self.coef_, self.intercept_ = ball.model(mean)
        self.data_norm_, self.softmax_ = ball.bound, False
        self.n_iter_ = settings.rounds

    def _keep_masked(self, ball: Ball, fit: MaskedFit, run: Run) -> None:
        """All sites hold the same model: a function of the sums alone."""
        if run.history is None:
            raise TypeError("a fit keeps the models of all rounds")
        rounds, _, sites, _ = run.history.shape
        released = run.history.reshape(rounds, sites, len(fit.targets), -1)
        self.certificate_ = run.certificate(fit.plan.delta, large_delta=True)
        self.plan_ = fit.plan
        self.trace_ = Trace(
            released, {**run.settings, "outputs": len(fit.targets), "names": list(fit.places.names)}
        )
        self.site_coef_, self.site_intercept_ = ball.model(released[-1])
        self.coef_, self.intercept_ = ball.model(released[-1, 0])
        self.data_norm_, self.n_iter_ = ball.bound, fit.plan.rounds
        self.softmax_ = len(fit.targets) > 1

    def _decide(self, X: Any) -> Array:
        """coef.x + intercept, (rows, outputs), x clipped as in the fit.

        A sum of huge terms that cancel in no definite way is 0.
        """
        check_is_fitted(self)
        X = clip_rows(self._validated(X, reset=False), self.data_norm_)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.nan_to_num(X @ np.atleast_2d(self.coef_).T + self.intercept_))

    def _validated(self, X: Any, *y: Any, **options: Any) -> Any:
        """scikit-learn's own checks, but for a message that quotes an entry of the data."""
        try:
            return validate_data(self, X, *y, accept_sparse="csr", dtype=np.float64, **options)
        except ValueError as error:
            if str(error).startswith("Input X contains"):  # followed by advice to use models that learn gaps
                raise DataError(
                    "`X` contains NaN or infinity; `taciturn.data.BoundedEncoder` makes such a row zeros."
                ) from None
            known = [text for sign, text in _QUOTING.items() if sign in str(error)]
            if not known:
                raise
        raise DataError(known[0])

    def __getstate__(self) -> dict[str, Any]:
        """Takes the budget that is in use along, so that a fit in another process is charged to it too."""
        state: dict[str, Any] = super().__getstate__()
        origin = note_origin()
        return state if origin is None else {**state, _ORIGIN: origin}

    def __sklearn_clone__(self) -> Self:
        """A clone is charged where its model would be."""
        values = self.get_params(deep=False)
        copy = type(self)(**{name: clone(value, safe=False) for name, value in values.items()})
        for name in (_ORIGIN, "_metadata_request"):
            if name in vars(self):
                setattr(copy, name, deepcopy(vars(self)[name]))
        return copy

    def _wishes(self) -> Wishes:
        return Wishes(
            epsilon=math.inf if self.epsilon == math.inf else checks.positive("epsilon", self.epsilon),
            delta=0.0 if self.delta == 0 else checks.probability("delta", self.delta),
            method=self.method,
            rounds=_whole("rounds", self.rounds),
            max_rounds=_whole("max_rounds", self.max_rounds),
            C=_auto("C", self.C),
            regularization=_auto("regularization", self.regularization),
            noise=checks.choice("noise", self.noise, ("best", "gaussian", "norm")),
            effort=checks.choice("effort", self.effort, ("quick", "full")),
            real=self.random_state is None,
            colluding=None if self.colluding is None else checks.whole("colluding", self.colluding),
        )

    def _shown(self) -> bool | None:
        """A bar on a terminal, nothing in a pipe; nothing at all without `verbose`."""
        return None if self.verbose else False

    def _seed(self) -> int | None:
        """None for secret noise. A generator gives a fresh seed to every fit."""
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
                "`data_norm` must be a public bound on the norm of a row; got None. Longer rows are clipped "
                f"to it. data_norm={FROM_DATA!r} takes it from the data, which leaks."
            )
        if not isinstance(self.data_norm, str):
            bound = checks.positive("data_norm", self.data_norm)
            if not _TINY < bound < 1 / _TINY:
                raise ParameterError(f"`data_norm` must lie between 1e-100 and 1e100; got {bound:g}.")
            return bound
        checks.choice("data_norm", self.data_norm, (FROM_DATA,))
        warnings.warn(f"{LEAK}; give a public bound instead.", PrivacyLeakWarning, stacklevel=5)
        return float(row_norms(X).max()) or 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.random_state is None
        return tags


def _warn_of_clipping(X: Any, bound: float) -> None:
    """How many rows are clipped: said only where nothing is promised, since it is read off the rows."""
    share = float(np.mean(row_norms(X) > bound * (1 + 1e-9)))
    if share > 0.01:
        warnings.warn(
            f"{math.floor(100 * share)}% of the rows are longer than `data_norm` = {bound:g} and are "
            "clipped to it. Scale the columns by public bounds (`taciturn.data.BoundedEncoder`), or raise "
            "`data_norm`.",
            ClippedRowsWarning,
            stacklevel=5,
        )


def _whole(name: str, value: Any) -> int | None:
    return None if value is None else checks.whole(name, value, least=1)


def _auto(name: str, value: Any) -> float | None:
    """A number, or None where the planner may choose."""
    return None if isinstance(value, str) and value == "auto" else checks.positive(name, value)


def _setup(
    problem: Problem, graph: Graph, settings: Settings, seed: int | None, output: int, told: dict[str, Any]
) -> Setup:
    """Of a real run with secret noise; with a seed of a simulation, each output with noise of its own."""
    rounds, tol = settings.rounds, settings.tol
    if seed is None:
        return prepare_real(problem, graph, settings.method, rounds=rounds, tol=tol, history=True, **told)
    return prepare(
        problem,
        graph,
        settings.method,
        rounds=rounds,
        repeats=1,
        seed=int(np.random.SeedSequence([seed, output]).generate_state(1)[0]),
        tol=tol,
        start="zeros",
        strict=True,
        history=True,
        measure=False,
        **told,
    )
