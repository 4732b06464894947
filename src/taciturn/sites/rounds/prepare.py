"""The preparation of a site: everything it needs before round 1, checked, and the cost of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...core import checks
from ...jobfile.job_format import TRAIN
from ...jobfile.toml_files import about_files
from ...methods.admm.float_limits import check_reach, least_tol
from ...methods.admm.perturbations import PenaltyPerturbation
from ...methods.admm.prepared import PreparedADMM
from ...methods.admm.theory import convergence
from ...methods.base import PreparedMethod, RunOptions
from ...methods.sums.prepared import PreparedSums
from ...methods.whitened_penalty import PreparedWhitened
from ...objective.local import LocalObjective
from ...objective.softmax import Softmax, SoftmaxObjective
from ...privacy.certificate.certificate import Certificate
from ...privacy.facts import Charge, RunFacts, SiteBudget, SiteFacts
from ..files.rows import load_table, load_weighted_rows
from ..files.site import Site
from ..state.account import judged
from ..wire.trust import Identity, Trust, load_identity, site_trust


@dataclass(frozen=True)
class PreparedSite:
    """A site that may start: its rows, its keys, and the first facts of its ledger."""

    site: Site
    prepared: PreparedMethod
    rows: Any
    identity: Identity
    trust: Trust
    run: RunFacts
    facts: SiteFacts
    budget: SiteBudget

    def charge_of(self, t: int) -> Charge:
        """What the release of round t costs."""
        return next(self.prepared.charges(t).each())

    def forecast(self) -> Certificate:
        """What all rounds together will have cost at this site's delta, if every one is released."""
        return self.prepared.forecast(self.run, self.budget.delta)

    def planned(self) -> Certificate:
        """What the account of the table is charged: against as many others as the owner counts."""
        return self.prepared.forecast(judged(self.run, self.site.file.budget.colluding), self.budget.delta)

    def gaps(self) -> list[str]:
        """Conditions of the paper's theorems that this site's own schedules do not meet."""
        if self.site.job.masked:
            return []
        rounds = self.run.rounds - self.run.moments
        nondecreasing, above, *_ = convergence(_method(self.site), 1, rounds).hypotheses
        return [f"{gap.name}: {gap.detail}" for gap in (nondecreasing, above) if not gap.holds]


@about_files
def make_ready(site: Site) -> PreparedSite:
    """Load keys and data of a site, and check everything that can be wrong with them."""
    keys, job = site.file.keys, site.job
    trust = site_trust(site)
    identity = load_identity(site.path(keys.private), site.path(keys.certificate), site.name, trust)
    budget = SiteBudget(site.file.budget.epsilon, site.file.budget.delta)
    rows, prepared = _load(site), prepare_run(site)
    marks = () if job.kind == TRAIN else job.asking.marks
    run = prepared.run_facts(simulated=job.simulated, where=job.where, marks=marks)
    return PreparedSite(site, prepared, rows, identity, trust, run, prepared.site_facts()[0], budget)


def _load(site: Site) -> Any:
    """The objective of this site, or the rows for its private half."""
    job = site.job
    if job.kind != TRAIN:
        return job.asking.rows(load_table(site))
    X, y, weights = load_weighted_rows(site)
    weighted: dict[str, Any] = {} if weights is None else {"weights": weights, "count": site.samples}
    loss = job.public_facts.loss if job.masked else job.loss
    if isinstance(loss, Softmax):
        return SoftmaxObjective(X, y, loss=loss, name=site.name, **weighted)
    return LocalObjective(
        X,
        y,
        loss=job.loss,
        C=job.C,
        regularization=job.regularization,
        sites=len(job.sites),
        name=site.name,
        **weighted,
    )


def prepare_run(site: Site) -> PreparedMethod:
    """Every number of the run, checked, as this site knows it: of schedules its own alone."""
    job = site.job
    network = job.network.part(range(site.number, site.number + 1))
    if job.masked:
        return PreparedSums(network, job.sums)
    moments = 0 if job.moments is None else job.moments.rounds
    options = RunOptions(tol=job.penalty.tol, strict=False)
    prepared = _method(site).prepare(network, job.rounds - moments, options)
    if job.whiten is not None:
        prepared = PreparedWhitened.of(prepared, job.whiten, job.network)
    _check_scales(prepared)
    if not job.simulated:
        _check_reach(site, prepared)
    return replace(prepared, refresh=1)


def _check_scales(prepared: PreparedADMM) -> None:
    """Refuse an impossible penalty or noise before anything is computed from it."""
    tables = prepared.tables
    for name, values in (
        ("penalty", tables.eta),
        ("noise", tables.scale),
        ("output_noise", tables.output_scale),
    ):
        for value in () if values is None else (values.min(), values.max()):
            checks.magnitude(name, float(value))


def _check_reach(site: Site, prepared: PreparedADMM) -> None:
    """Refuse settings under which a neighbour could make the solver fail."""
    penalty = site.job.penalty
    least = least_tol(prepared.tables.site(0), prepared.network, 0, penalty.clip)
    check_reach(penalty.tol, least, clip=penalty.clip, where=site.name)


def _method(site: Site) -> PenaltyPerturbation:
    file, job = site.file, site.job
    own: dict[str, Any] = {"penalty": file.penalty, "noise": file.noise}  # both are there: `load_site`
    return PenaltyPerturbation(
        **own,
        dual_step=job.penalty.dual_step,
        output_noise=file.output_noise,
        grid=job.penalty.grid,
        clip=job.penalty.clip,
    )
