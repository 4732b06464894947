"""The cost of a planned run for any one record or person. A budget over several runs is charged this cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ...core.errors import ParameterError
from ..accounting.budgets import BUDGET_ORDERS, RunCost, pure_mu
from ..accounting.gaussian import compose_mu
from ..accounting.masked_sums import Slack
from ..accounting.rounding import up
from ..collusion import masked_mu, masked_slack
from ..costs import Releases, exact_slack, float_delta, gaussian_totals, pure_costs, renyi_totals
from ..facts import Columns, RunFacts, SiteFacts
from ..marks import NOT_PROVEN
from .memory import ChargedRun

LEAK = "`data_norm` was taken from the data, which no noise covers"
_WHERE = "inside a Budget, or if the model is to be scored with `private_score`"


class Planned(ChargedRun, Protocol):
    """The certificate (a `Certificate`) of a whole run. The run need not have taken place yet."""

    @property
    def releases(self) -> tuple[Columns, ...]: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def pure_epsilon(self) -> float: ...


def check_proof(run: RunFacts) -> None:
    """Raise if a certificate cannot prove the cost of the run. A budget needs this proof."""
    if run.simulated:
        raise ParameterError(
            f"`random_state` must be None {_WHERE}: noise that can be replayed protects nobody. Use "
            "`random_state` on public or made-up rows, outside the Budget."
        )
    if run.idealised and run.noise != "none":
        raise ParameterError(
            f"`idealised` must be False {_WHERE}: the noise does not cover the error of the solver."
        )
    if NOT_PROVEN in run.marks:
        raise ParameterError(
            f"`method` must be a method of taciturn {_WHERE}: the cost of any other method is stated by its "
            "author and not proven by taciturn."
        )
    if LEAK in run.marks:
        raise ParameterError(
            f"`data_norm` must be a public number {_WHERE}: a bound that is computed from the "
            "rows reveals something about them."
        )


def run_cost(planned: Planned, *, pure: bool = False) -> RunCost:
    """The largest cost of any site, by every accountant.

    The largest cost counts, because a record that is at one site in this run may be at another site in the
    next run. `pure` is True if the budget's delta is 0. Otherwise the delta of the certificate `planned` must
    be the budget's delta.
    """
    if any(limit is not None and limit.order is not None for limit in planned.budgets):
        raise ParameterError(
            "remove `order` from the `SiteBudget` of the run: with an order, the cost of the run is not "
            "known before its end."
        )
    alone = planned.pure_epsilon if pure else planned.epsilon
    if planned.run.mechanism.summed:
        return _masked(planned, alone)
    return _noisy(planned.run, planned.sites, planned.releases, alone)


def _masked(planned: Planned, alone: float) -> RunCost:
    run = planned.run
    honest = run.honest(run.colluding)
    rounds = sorted({t for columns in planned.releases for t in columns.t.tolist()})
    mu, slack = masked_mu(run, rounds, honest), masked_slack(run, rounds, honest)
    renyi = tuple(up(BUDGET_ORDERS * mu**2 / 2).tolist())
    return RunCost(mu, renyi, np.inf, alone, slack.epsilon, slack.failure)


@np.errstate(over="ignore", invalid="ignore")  # a bound that overflows is infinite
def _noisy(run: RunFacts, sites: Sequence[SiteFacts], releases: Sequence[Columns], alone: float) -> RunCost:
    table = Releases.of(run, sites, releases)
    rounds = pure_costs(run, table)
    gaussian = _worst(gaussian_totals(run, table))
    slack = exact_slack(run) if (run.integers or run.moments) and np.isfinite(gaussian) else Slack(0.0, 0.0)
    renyi = np.max(_finite(renyi_totals(run, table, BUDGET_ORDERS)), axis=0)
    mu = min(gaussian, _worst(compose_mu(pure_mu(rounds))))
    return RunCost(
        mu=mu,
        renyi=tuple(np.minimum(renyi, up(BUDGET_ORDERS * mu**2 / 2)).tolist()),
        pure=_worst(up(np.sum(rounds, axis=1))),
        alone=alone,
        slack=slack.epsilon,
        failure=slack.failure,
        floats=float_delta(run),
    )


def _finite(costs: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(costs), np.inf, costs)


def _worst(costs: np.ndarray) -> float:
    return float(np.max(_finite(costs)))
