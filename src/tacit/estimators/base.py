"""What the estimators share: rows into the unit ball, rows to sites, a plan for the budget, one run per class."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import checks
from ..admm.trace import Run
from ..data.dealing import assign_evenly, deal
from ..engines.simulate import simulate
from ..engines.train import train
from ..errors import ParameterError, PrivacyLeakWarning
from ..graph import Graph
from ..objective.losses import Loss
from ..objective.problem import Problem
from ..privacy.certificate import Certificate
from ..privacy.ledger import MemoryLedger
from ..rng import SecureStreams
from ..trials.plan import PrivacyPlan, plan
from .rows import Ball, row_norms

Array = NDArray[np.float64]

FROM_DATA = "from data"
_LEAK = "`data_norm` was taken from the data, which no noise covers"


@dataclass(frozen=True)
class Trace:
    """What the sites released, (rounds, sites, outputs, entries), and the settings. Nothing else of the data."""

    released: Array
    settings: dict[str, Any]


class PrivateLinearModel(BaseEstimator):
    """The parameters and the fit of every private linear estimator."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        sites: int = 5,
        graph: str | Graph = "complete",
        data_norm: float | str | None = 1.0,
        fit_intercept: bool = True,
        C: float | str = "auto",
        regularization: float | str = "auto",
        rounds: int | None = None,
        noise: str = "gaussian",
        tol: float = 1e-9,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sites = sites
        self.graph = graph
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.C = C
        self.regularization = regularization
        self.rounds = rounds
        self.noise = noise
        self.tol = tol
        self.random_state = random_state

    # -- for the subclasses ---------------------------------------------------------------------

    def _loss(self) -> Loss:
        raise TypeError("use one of the estimators, not their common part")

    def _fit_targets(self, X: Any, targets: Array, site: Any) -> Array:
        """Fit one model per row of `targets`, (outputs, rows); set the public attributes; return f."""
        epsilon = _budget(self.epsilon)
        ball = Ball(self._norm_bound(X), bool(self.fit_intercept))
        site = self._assign(X.shape[0], site)
        graph = _graph(self.graph, int(site.max()) + 1)
        Z = ball.rows(X)
        samples = np.bincount(site, minlength=graph.n)
        chosen = self._plan(epsilon, samples, graph, Z.shape[1], len(targets))
        runs = [self._run(Z, y, site, graph, chosen, k) for k, y in enumerate(targets)]
        released = np.stack([run.history[:, 0] for run in runs if run.history is not None], axis=2)
        self.plan_ = chosen
        self.certificate_ = self._certificate(runs, len(targets))
        self.trace_ = Trace(released, {**runs[0].settings, "outputs": len(targets)})
        coef, intercept = ball.model(released[-1])
        self.site_coef_, self.site_intercept_ = coef, intercept
        self.coef_, self.intercept_ = coef.mean(axis=0), intercept.mean(axis=0)
        self.n_iter_ = chosen.rounds
        return self.coef_

    def _decide(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    # -- the steps of a fit ---------------------------------------------------------------------

    def _norm_bound(self, X: Any) -> float:
        if self.data_norm is None:
            raise ParameterError(
                "`data_norm` must be a public bound on the norm of a row; got None. Longer rows are clipped to "
                f"it. data_norm={FROM_DATA!r} takes it from the data, which leaks."
            )
        if self.data_norm != FROM_DATA:
            return checks.positive("data_norm", self.data_norm)
        warnings.warn(f"{_LEAK}; give a public bound instead.", PrivacyLeakWarning, stacklevel=4)
        return max(float(row_norms(X).max()), 1e-300)

    def _assign(self, rows: int, site: Any) -> NDArray[np.int64]:
        """The number of each row's site: as given, or dealt at random."""
        if site is None:
            sites = checks.whole("sites", self.sites, least=2)
            if rows < sites:
                raise ParameterError(
                    f"`X` must have at least one row per site, {sites}; got n_samples = {rows}. Lower `sites`."
                )
            if self.random_state is None:
                secret = SecureStreams().generator(repeat=0, site=0, purpose="deal", t=0)
                return np.asarray(secret.permutation(np.arange(rows) % sites))
            return np.asarray(assign_evenly(rows, sites, seed=self._seed()))
        labels = np.asarray(site)
        if labels.shape != (rows,):
            raise ParameterError(f"`site` must name one site per row, {rows}; got shape {labels.shape}.")
        names, numbers = np.unique(labels, return_inverse=True)
        if len(names) < 2:
            raise ParameterError("`site` must name at least 2 sites; got 1.")
        return np.asarray(numbers, dtype=np.int64)

    def _seed(self) -> int:
        return checks.whole("random_state", self.random_state)

    def _plan(
        self, epsilon: float, samples: NDArray[np.int64], graph: Graph, dimension: int, outputs: int
    ) -> PrivacyPlan:
        return plan(
            epsilon=epsilon,
            delta=self.delta,
            samples=samples,
            graph=graph,
            dimension=dimension,
            loss=self._loss(),
            C=self.C,
            regularization=self.regularization,
            rounds=self.rounds,
            noise=self.noise,
            classes=outputs,
            tol=self.tol,
            effort="quick",
        )

    def _run(
        self, Z: Any, y: Array, site: NDArray[np.int64], graph: Graph, chosen: PrivacyPlan, output: int
    ) -> Run:
        problem = Problem(
            deal(Z, y, site, sites=graph.n),
            loss=self._loss(),
            C=chosen.C,
            regularization=chosen.regularization,
        )
        settings: dict[str, Any] = {"rounds": chosen.rounds, "tol": self.tol, "history": True}
        if self.random_state is None:
            return train(problem, graph, chosen.method, progress=False, **settings)
        seed = int(np.random.SeedSequence([self._seed(), output]).generate_state(1)[0])
        return simulate(problem, graph, chosen.method, seed=seed, progress=False, **settings)

    def _certificate(self, runs: list[Run], outputs: int) -> Certificate:
        """What all outputs together cost: every record is in each of them."""
        ledger = runs[0].ledger
        marks = (_LEAK,) if self.data_norm == FROM_DATA else ()
        facts = replace(ledger.run, classes=outputs, marks=(*ledger.run.marks, *marks))
        joint = MemoryLedger(facts, ledger.sites)
        for site in ledger.sites:
            for charge in ledger.charges(site.site):
                joint.charge(charge)
        return Certificate.from_ledger(joint, delta=self.delta)


def _budget(epsilon: Any) -> float:
    if epsilon == math.inf:
        return math.inf
    return checks.positive("epsilon", epsilon)


def _graph(graph: str | Graph, sites: int) -> Graph:
    if isinstance(graph, Graph):
        if graph.n != sites:
            raise ParameterError(f"`graph` must have one node per site, {sites}; got {graph.n}.")
        return graph
    families = {"complete": Graph.complete, "ring": Graph.ring, "star": Graph.star, "path": Graph.path}
    family = families[checks.choice("graph", graph, tuple(families))]
    return Graph.path(sites) if sites == 2 else family(sites)
