"""The planner of penalty perturbation, the paper's method.

The shape of a run is its number of rounds, its penalties, and how its noise changes over the rounds. The
planner chooses the shape on proxy rows: public rows in place of the private rows. A closed-form forecast of
the excess loss ranks the shapes; with effort "full", the best shapes are then simulated on the proxy rows.
The functions of the certificate then determine the size of the noise.
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, replace

import numpy as np

from ..core.errors import ParameterError
from ..core.formatting import format_given
from ..core.types import Array
from ..methods.admm.tables import loss_facts
from ..methods.sums.program import SumTables
from ..privacy.facts import RunFacts
from ..privacy.marks import PLANNED
from ..privacy.noise import NOISES
from ..schedules import Geometric, to_dict
from .planned_run import PlannedRun, calibrated_run
from .proxy import Proxy, generate_proxy, read_proxy, rows_per_site
from .request import Plan, PlanRequest, Price, Trial, one_or_all
from .search import ROUNDS, Ranked, fewest_rounds, search
from .shapes import PlannedNetwork
from .trial_runs import Calibrated, TrialRuns
from .whitening import left_budget, may_whiten, planned_moments, whitened_proxy

_GOOD = 1.04  # prefer a shape with fewer rounds if its forecast is at most _GOOD times the best forecast


def plan_penalty(request: PlanRequest) -> Plan:
    """The plan of penalty perturbation that stays within every site's budget."""
    full = request.effort != "quick"
    if request.baseline and not full:
        raise ParameterError("`baseline` must be left out with effort 'quick', which makes no trial runs.")
    network, run, whiten = _network(request), _run_facts(request), None
    rows = _proxy(request, network, full)
    proxy, searched = rows, network
    if may_whiten(request):
        whiten, tables = planned_moments(request)
        better = whitened_proxy(rows, tables, request.seed or 0)
        reduced = replace(network, budget=left_budget(request.budget, whiten))
        forecast = functools.partial(_forecast, request, run)
        if request.whiten or forecast(reduced, better) < forecast(network, rows):
            proxy, searched, run = better, reduced, _with_moments(run, tables)
        else:
            whiten = None
    ranked = search(
        searched,
        run,
        proxy.spectrum(request.loss),
        noises=_noises(request),
        rounds=_round_numbers(request, run.moments),
        balanced=((True, False) if full else (True,)) if network.uneven else (False,),
    )
    calibrated = functools.partial(
        calibrated_run,
        network,
        run,
        output_noise=request.output_noise is not False,
        real=request.real is not False,
        whiten=whiten,
    )
    trials = TrialRuns(network, request.graph, request.loss, proxy, request.seed or 0) if full else None
    chosen, tried = trials.choose(ranked, calibrated) if trials else _first_feasible(ranked, calibrated)
    if chosen is None:
        epsilon, delta = min(network.budget.epsilon), network.budget.delta
        raise ParameterError(
            f"`epsilon` = {format_given(epsilon)} at delta = {format_given(delta)} is out of reach: the "
            f"planner found no penalty and noise that together protect the {network.samples.min()} "
            f"{request.unit}s of the smallest site. Raise `epsilon`, or give each site more {request.unit}s."
        )
    baseline = trials.baseline() if trials and request.baseline is not False else None
    return _plan(request, chosen, proxy.origin, tried, baseline)


def public_spectrum(request: PlanRequest) -> tuple[Array, Array]:
    """The eigenvalues of the Hessian on public rows, and the solution's squared components along them."""
    return _proxy(request, _network(request), full=False).spectrum(request.loss)


def forecast_penalty(request: PlanRequest) -> float:
    """The forecast excess loss of the best shape with Gaussian noise; inf if no noise is enough.

    If the plan may use whitened coordinates, the result is the smaller of the forecasts with and without
    these coordinates.
    """
    network, run = _network(request), _run_facts(request)
    rows = _proxy(request, network, full=False)
    found = _forecast(request, run, network, rows)
    if may_whiten(request):
        mu, tables = planned_moments(request)
        reduced = replace(network, budget=left_budget(request.budget, mu))
        found = min(found, _forecast(request, run, reduced, whitened_proxy(rows, tables, request.seed or 0)))
    return found


def _forecast(request: PlanRequest, run: RunFacts, network: PlannedNetwork, proxy: Proxy) -> float:
    found = search(network, run, proxy.spectrum(request.loss), noises=("gaussian",), rounds=(4, 8))
    return found[0][0] if found else math.inf


def _with_moments(run: RunFacts, tables: SumTables) -> RunFacts:
    """The facts of the run if it begins with rounds that release moments of the rows (for whitening)."""
    return replace(
        run,
        rounds=run.rounds + tables.rounds,
        sums=tables.sums,
        records=tables.units if run.unit == "record" else None,
        largest=tables.largest,
    )


def _plan(
    request: PlanRequest, chosen: PlannedRun, origin: str, tried: tuple[Trial, ...], baseline: float | None
) -> Plan:
    run, certificate = chosen.run, chosen.certificate
    scale, effort = NOISES[run.noise].parameter, request.effort or "full"
    pure = certificate.pure_epsilon
    whitened = f"whitened: the first {run.moments} rounds release moments of the rows"
    return Plan(
        method=chosen.method,
        rounds=chosen.shape.rounds + run.moments,
        C=run.C,
        regularization=run.regularization,
        tol=run.tol,
        weights=chosen.weights,
        loss=request.loss,
        graph=request.graph,
        budget=request.budget,
        certificate=certificate,
        tried=tried,
        baseline=baseline,
        find_price=functools.partial(find_price, chosen),
        for_estimator={"noise": run.noise},
        for_job={
            "dual_step": chosen.dual_step,
            **({} if chosen.whiten is None else {"whiten": chosen.whiten}),
        },
        for_site={
            "penalty": one_or_all([to_dict(schedule) for schedule in chosen.penalty]),
            "noise": {"kind": run.noise, scale: one_or_all([to_dict(entry) for entry in chosen.noise])},
            "output_noise": None if chosen.output is None else {"kind": run.noise, scale: chosen.output},
        },
        details={
            "pure_epsilon": pure if math.isfinite(pure) else None,
            "tol": run.tol,
            "weights": one_or_all(chosen.weights),
            "effort": effort,
            "proxy": origin,
            "seed": request.seed or 0,
            "baseline": baseline,
            "tried": [asdict(entry) for entry in tried],
        },
        shown={
            "penalty": _starts(chosen.penalty),
            "dual step": f"{chosen.dual_step:g}",
            "noise": _starts(chosen.noise),
            "output noise": "none" if chosen.output is None else f"{chosen.output:g}",
            **({} if chosen.whiten is None else {"coordinates": whitened}),
            "chosen": f"effort {effort}: {len(tried)} plans compared on public rows, {origin}",
        },
    )


def _starts(schedules: tuple[Geometric, ...]) -> str:
    starts, ratio = [schedule.start for schedule in schedules], schedules[0].ratio
    low, high = min(starts), max(starts)
    each = f"{low:g}" if low == high else f"{low:g} to {high:g}, one per site"
    return f"{each}, x {ratio:g} each round"


def find_price(planned: PlannedRun) -> Price:
    """The site that needs the most noise, and what would lower that noise."""
    network, sites = planned.network, planned.network.n
    std = planned.gradient_noise()
    parts = np.square(network.weights * std)
    site = int(np.argmax(std))
    samples, degree = int(network.samples[site]), int(network.degrees[site])
    return Price(
        site=site,
        samples=samples,
        degree=degree,
        share=float(parts[site] / parts.sum()),
        epsilon=planned.epsilon_with(site),
        edge=None if degree == sites - 1 else planned.epsilon_with(site, degree=degree + 1),
        rows=planned.epsilon_with(site, samples=2 * samples),
        noise=planned.noise_with(site, samples=2 * samples),
        counted="persons" if planned.run.unit == "person" else "rows",
    )


def _round_numbers(request: PlanRequest, moments: int) -> tuple[int, ...]:
    """The numbers of rounds to try; the rounds that release moments of the rows are not counted."""
    if request.rounds is not None:
        return (request.rounds - moments,)
    if request.max_rounds is None:
        return ROUNDS
    most = request.max_rounds - moments
    return tuple(sorted({min(entry, most) for entry in ROUNDS}))


def _first_feasible(ranked: Ranked, calibrated: Calibrated) -> tuple[PlannedRun | None, tuple[Trial, ...]]:
    """(the run of the first shape in `fewest_rounds` for which some noise is enough, all forecasts)."""
    drawn = (calibrated(shape) for shape in fewest_rounds(ranked, _GOOD))
    chosen = next((planned for planned in drawn if planned is not None), None)
    return chosen, tuple(Trial(shape, score, None, None) for score, shape in ranked)


def _network(request: PlanRequest) -> PlannedNetwork:
    return PlannedNetwork(
        samples=np.array(request.samples, dtype=np.int64),
        degrees=request.graph.degrees,
        budget=request.budget,
        C=request.C or 1.0,
        rho=request.regularization,
    )


def _run_facts(request: PlanRequest) -> RunFacts:
    """The facts of the run that are the same for every shape; `calibrated_run` sets the others."""
    person = request.unit == "person"
    return RunFacts(
        method="penalty",
        noise="gaussian",
        loss=loss_facts(request.loss),
        sites=request.graph.n,
        rounds=1,
        dimension=request.dimension,
        C=request.C or 1.0,
        regularization=request.regularization or 0.0,
        data_norm=request.data_norm or 1.0,
        simulated=False,
        outputs=request.outputs,
        marks=(PLANNED,),
        unit=request.unit,
        persons=sum(request.samples) if person else None,
    )


def _noises(request: PlanRequest) -> tuple[str, ...]:
    """The kinds of noise to try. With many features, norm noise is never better than Gaussian noise."""
    noise, delta = request.noise, request.budget.delta
    if request.unit == "person" and (noise == "norm" or delta == 0):
        raise ParameterError(
            f"`noise` must be 'gaussian' or 'best', and `delta` must be above 0, because unit 'person' needs "
            f"Gaussian noise; got noise = {noise or 'best'!r} and delta = {delta:g}."
        )
    if delta == 0:
        if noise == "gaussian":
            raise ParameterError(
                "`noise` must be 'norm' for delta = 0: Gaussian noise never gives pure epsilon-DP."
            )
        return ("norm",)
    if noise is not None:
        return (noise,)
    only = request.unit == "person" or request.known_mu or request.dimension > 40
    return ("gaussian",) if only else ("gaussian", "norm")


def _proxy(request: PlanRequest, network: PlannedNetwork, full: bool) -> Proxy:
    """The public rows. Trial runs (`full`) need rows for all sites, and a quarter more for the score."""
    d, loss, given = request.dimension, request.loss, request.proxy
    if isinstance(given, tuple | list):
        return read_proxy(*given, d, loss)
    rows = 2_000 if d <= 600 else 400
    if full:
        rows = max(rows, int(1.25 * rows_per_site(network.samples, d).sum()))
    return generate_proxy(d, rows, loss.kind, schema=given, seed=request.seed or 0)
