"""What a plan tells the accountant: the facts of the run and of its sites, every charge, its ledger.

Every schedule is fixed in advance, so all of it is known before the first round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from ..objective.losses import SHIPPED, Loss
from ..privacy.facts import Charge, LossFacts, RunFacts, SiteFacts
from ..privacy.ledger.memory import MemoryLedger
from .methods import Plan


def loss_facts(loss: Loss) -> LossFacts:
    """What the accountant must know of a loss; only the shipped classes may claim a bound made for them."""
    shipped = type(loss) in SHIPPED.values()
    parameters: dict[str, Any] = asdict(loss) if is_dataclass(loss) and not isinstance(loss, type) else {}
    return LossFacts(
        name=loss.name if shipped else f"custom {loss.name}",
        slope_bound=loss.slope_bound,
        curvature_bound=loss.curvature_bound,
        kind=loss.kind,
        parameters={name: value for name, value in parameters.items() if isinstance(value, float)},
    )


def run_facts(
    plan: Plan,
    loss: Loss,
    *,
    dimension: int,
    C: float,
    regularization: float,
    tol: float,
    simulated: bool,
    sites: int | None = None,
    classes: int = 1,
    start: str = "zeros",
    marks: tuple[str, ...] = (),
) -> RunFacts:
    """What the accountant must know of the run; `sites` is N where the plan has rows for some sites only."""
    return RunFacts(
        mechanism=plan.mechanism,
        noise="none" if plan.noise is None else plan.noise.kind,
        loss=loss_facts(loss),
        sites=plan.sites if sites is None else sites,
        rounds=plan.rounds,
        dimension=dimension,
        C=C,
        regularization=regularization,
        output_noise=None if plan.output_noise is None else plan.output_noise.kind,
        tol=tol,
        grid=plan.grid,
        clip=plan.clip,
        simulated=simulated,
        classes=classes,
        start=start,
        marks=marks,
    )


def site_facts(plan: Plan, samples: Iterable[int], degrees: Iterable[int]) -> list[SiteFacts]:
    """B_i, V_i and the dual steps of every site."""
    return [
        SiteFacts(site=i, samples=int(B), degree=int(V), dual_step=tuple(plan.theta[i].tolist()))
        for i, (B, V) in enumerate(zip(samples, degrees, strict=True))
    ]


def charge(plan: Plan, site: int, t: int, *, row: int | None = None) -> Charge:
    """What one site releases in round t; `row` is its row in the plan, where that is not its number."""
    at = (site if row is None else row, t - 1)
    return Charge(
        site=site,
        t=t,
        eta=float(plan.eta[at]),
        scale=0.0 if plan.scale is None else float(plan.scale[at]),
        output_scale=None if plan.output_scale is None else float(plan.output_scale[at]),
    )


def charges(plan: Plan, t: int) -> list[Charge]:
    """What every site releases in round t; by columns, since a driver charges many sites at once."""
    eta = plan.eta[:, t - 1].tolist()
    scale = [0.0] * len(eta) if plan.scale is None else plan.scale[:, t - 1].tolist()
    output = [None] * len(eta) if plan.output_scale is None else plan.output_scale[:, t - 1].tolist()
    return [Charge(i, t, *numbers) for i, numbers in enumerate(zip(eta, scale, output, strict=True))]


def planned_ledger(plan: Plan, run: RunFacts, sites: Sequence[SiteFacts]) -> MemoryLedger:
    """The ledger that these sites will hold after the last round."""
    ledger = MemoryLedger(run, sites)
    for t in range(1, plan.rounds + 1):
        ledger.charge_all([charge(plan, facts.site, t) for facts in sites])
    return ledger
