"""plan: from a budget to schedules, noise and a number of rounds whose certificate stays within it.

The noise is exact: calibrated on the functions that make the certificate. The shape is a choice, made on
public proxy rows by a closed-form model of the released mean ("quick"), or by running the best ones ("full").
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..admm.accounts import loss_facts
from ..data.tables.schema import Schema
from ..errors import ParameterError
from ..graph import Graph, GraphLike
from ..objective import Logistic, Loss
from ..privacy.facts import PLANNED, UNITS, RunFacts
from .blueprint import Blueprint, draw_blueprint
from .calibration import EpsilonBudget
from .masked_plan import MaskedPlan, plan_masked
from .privacy_plan import PrivacyPlan, Trial, find_price
from .proxy import Proxy, generate_proxy, read_proxy, rows_per_site
from .rehearsal import Drawer, Rehearsal
from .search import ROUNDS, Ranked, fewest_rounds, search
from .shapes import PlannedNetwork

_GOOD = 1.04  # fewer rounds are taken where they are predicted to cost no more than this


def plan(
    *,
    epsilon: float | Sequence[float],
    delta: float = 1e-5,
    samples: int | Sequence[int],
    graph: GraphLike,
    dimension: int,
    colluding: int | None = None,
    C: float | Literal["auto"] = "auto",
    regularization: float | Literal["auto"] = "auto",
    loss: Loss | None = None,
    noise: Literal["best", "gaussian", "norm"] = "best",
    rounds: int | None = None,
    max_rounds: int | None = None,
    effort: Literal["quick", "full"] = "full",
    proxy: Schema | tuple[Any, Any] | None = None,
    outputs: int = 1,
    output_noise: bool = True,
    real: bool = True,
    data_norm: float = 1.0,
    seed: int = 0,
    large_delta: bool = False,
    baseline: bool = False,
    unit: Literal["record", "person"] = "record",
) -> PrivacyPlan | MaskedPlan:
    """Choose a method, its noise and its rounds for a budget.

    Parameters
    ----------
    epsilon, delta : what the whole run may cost any one record, or person; one epsilon for all sites, or one
        for each. delta = 0 asks for a pure guarantee, with norm noise.
    samples : B_i, one number for all sites or one for each; persons where they are the `unit`.
    graph : who talks to whom; the name of a family where `samples` has one entry per site.
    dimension : d, an intercept included.
    colluding : None trusts nobody: penalty perturbation, whose promise holds whatever the other sites do. A
        number trusts all but so many of them: masked descent, about as good as a trusted centre.
    C, regularization : the weight of the loss and rho; only their ratio to the penalty matters, so "auto"
        takes C = 1 and hardly any rho.
    noise : "gaussian", "norm", or whichever should do better.
    rounds, max_rounds : exactly so many, or at most so many; at most one of the two.
    effort : "quick" trusts a closed-form model; "full" also runs the best shapes on the proxy.
    proxy : public rows to choose on: a `Schema` to generate them from, or (X, y); by default they are
        generated from `dimension`. Never the private data.
    outputs : models trained at once, K for one-vs-rest: releases per round.
    output_noise : add the little noise that covers the solver's error; the certificate is idealised without.
    real : the certificate counts what a real run adds, whole numbers on a grid; without, it is that of
        `simulate`.
    data_norm : X, the public bound on the norm of every row.
    seed : of the proxy and its runs; the same seed gives the same plan.
    large_delta : insists on a delta above one over the number of all records, or persons.
    unit : what one promise covers: a record, or a person with all rows that are theirs, in any number and at
        one site. That needs Gaussian noise or `colluding`.
    baseline : with effort "full", also the loss without privacy on the same public rows.

    Returns
    -------
    PrivacyPlan, or MaskedPlan with `colluding`
        method, rounds, C, regularization, tol: ready for `simulate`; certificate, price, tried, to_dict().

    Examples
    --------
    >>> import taciturn
    >>> found = taciturn.plan(
    ...     epsilon=1.0, samples=9044, graph=taciturn.Graph.ring(5), dimension=105, effort="quick"
    ... )
    >>> 0.99 < found.certificate.epsilon <= 1.0
    True
    """
    loss = Logistic() if loss is None else loss
    full = checks.choice("effort", effort, ("quick", "full")) == "full"
    person = checks.choice("unit", unit, UNITS) == "person"
    graph = Graph.of(
        graph, len(samples) if isinstance(graph, str) and isinstance(samples, Sequence) else None
    )
    checks.usual_delta(delta, int(_samples(samples, graph.n).sum()), insisted=large_delta)
    if colluding is not None:
        return _masked(
            epsilon, delta, samples, graph, dimension, colluding, loss, outputs, rounds, regularization, unit
        )
    network = _network(epsilon, delta, samples, graph, C, regularization)
    run = _run_facts(network, loss, dimension, outputs, data_norm, person)
    stand_in = _proxy(proxy, network, run, loss, seed, full)
    ranked = search(
        network,
        run,
        stand_in.spectrum(loss),
        noises=_noises(noise, delta, run.dimension, person),
        rounds=_round_numbers(rounds, max_rounds),
        balanced=((True, False) if full else (True,)) if network.uneven else (False,),
    )
    drawer = functools.partial(draw_blueprint, network, run, output_noise=output_noise, real=real)
    if full and ranked:
        chosen, tried = Rehearsal(network, graph, loss, stand_in, seed).choose(ranked, drawer)
    else:
        chosen, tried = _first_feasible(ranked, drawer)
    if chosen is None:
        raise ParameterError(
            f"`epsilon` = {min(network.budget.epsilon):g} at delta = {delta:g} is out of reach: under no "
            f"penalty tried is any noise enough for the smallest site, with {network.samples.min()} rows."
        )
    least = Rehearsal(network, graph, loss, stand_in, seed).baseline() if baseline and full else None
    return PrivacyPlan(chosen, find_price(chosen), tried, effort, stand_in.origin, seed, graph, least)


def _masked(
    epsilon: float | Sequence[float],
    delta: float,
    samples: int | Sequence[int],
    graph: Graph,
    dimension: int,
    colluding: int,
    loss: Loss,
    outputs: int,
    rounds: int | None,
    regularization: float | str,
    unit: str,
) -> MaskedPlan:
    """Masked descent: one epsilon for all, and no search."""
    if not isinstance(epsilon, int | float):
        raise ParameterError("`epsilon` must be one number with `colluding`: all sites add the same noise.")
    return plan_masked(
        epsilon=checks.positive("epsilon", epsilon),
        delta=delta,
        samples=_samples(samples, graph.n).tolist(),
        graph=graph,
        dimension=dimension,
        colluding=checks.whole("colluding", colluding),
        loss=loss,
        outputs=outputs,
        rounds=rounds,
        regularization=None if isinstance(regularization, str) else regularization,
        unit=unit,
    )


def _round_numbers(rounds: int | None, max_rounds: int | None) -> tuple[int, ...]:
    """The numbers of rounds to try."""
    if rounds is not None and max_rounds is not None:
        raise ParameterError(f"`rounds` and `max_rounds` exclude each other; got {rounds} and {max_rounds}.")
    if rounds is not None:
        return (checks.whole("rounds", rounds, least=1),)
    if max_rounds is None:
        return ROUNDS
    most = checks.whole("max_rounds", max_rounds, least=1)
    return tuple(sorted({min(entry, most) for entry in ROUNDS}))


def _first_feasible(ranked: Ranked, drawer: Drawer) -> tuple[Blueprint | None, tuple[Trial, ...]]:
    """The first shape that can be drawn, fewest rounds first among those forecast to be nearly as good."""
    drawn = (drawer(shape) for shape in fewest_rounds(ranked, _GOOD))
    chosen = next((blueprint for blueprint in drawn if blueprint is not None), None)
    return chosen, tuple(Trial(shape, score, None, None) for score, shape in ranked)


def _network(
    epsilon: float | Sequence[float],
    delta: float,
    samples: int | Sequence[int],
    graph: Graph,
    C: float | str,
    regularization: float | str,
) -> PlannedNetwork:
    """Who takes part, with what, and for how much."""
    sizes = _samples(samples, graph.n)
    weight = 1.0 if C == "auto" else checks.positive("C", C)
    if weight > sizes.min():
        raise ParameterError(
            f"`C` must not exceed the smallest site's {sizes.min()} samples; got {weight:g}."
        )
    return PlannedNetwork(
        samples=sizes,
        degrees=graph.degrees,
        budget=EpsilonBudget.of(epsilon, delta, sites=graph.n),
        C=weight,
        rho=None if regularization == "auto" else checks.positive("regularization", regularization),
    )


def _samples(samples: int | Sequence[int], sites: int) -> NDArray[np.int64]:
    each = [samples] * sites if isinstance(samples, int | np.integer) else list(samples)
    if len(each) != sites:
        raise ParameterError(f"`samples` must have one entry per site, {sites}; got {len(each)}.")
    return np.array([checks.whole("samples", entry, least=1) for entry in each], dtype=np.int64)


def _run_facts(
    network: PlannedNetwork, loss: Loss, dimension: int, outputs: int, data_norm: float, person: bool
) -> RunFacts:
    """What holds for every shape; the rest is filled in when one is drawn."""
    return RunFacts(
        method="penalty",
        noise="gaussian",
        loss=loss_facts(loss),
        sites=network.n,
        rounds=1,
        dimension=dimension,
        C=network.C,
        regularization=network.rho or 0.0,
        data_norm=data_norm,
        simulated=False,
        outputs=outputs,
        marks=(PLANNED,),
        unit="person" if person else "record",
        persons=int(network.samples.sum()) if person else None,
    )


def _noises(noise: str, delta: float, d: int, person: bool) -> tuple[str, ...]:
    """The kinds to try; in many dimensions norm noise never does better than Gaussian noise."""
    checks.choice("noise", noise, ("best", "gaussian", "norm"))
    if person and (noise == "norm" or delta == 0):
        raise ParameterError(
            f"`noise` must be 'gaussian' or 'best', and `delta` above 0, for persons; got {noise!r} and "
            f"{delta:g}."
        )
    if person:
        return ("gaussian",)
    if delta == 0:
        if noise == "gaussian":
            raise ParameterError("`noise` must be 'norm' for delta = 0; got 'gaussian', which is never pure.")
        return ("norm",)
    return (("gaussian", "norm") if d <= 40 else ("gaussian",)) if noise == "best" else (noise,)


def _proxy(
    proxy: Schema | tuple[Any, Any] | None,
    network: PlannedNetwork,
    run: RunFacts,
    loss: Loss,
    seed: int,
    full: bool,
) -> Proxy:
    """Public rows: as many as the sites will hold in a rehearsal, and a quarter more to score on."""
    d = run.dimension
    if proxy is not None and not isinstance(proxy, Schema):
        X, y = proxy
        return read_proxy(X, y, d, loss)
    rows = 2_000 if d <= 600 else 400
    if full:
        rows = max(rows, int(1.25 * rows_per_site(network.samples, d).sum()))
    return generate_proxy(d, rows, loss.kind, schema=proxy, seed=seed)
