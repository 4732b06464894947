"""The preparation of a site: load and check everything that it needs before round 1, and price the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...jobfile.job_format import TRAIN
from ...jobfile.toml_files import about_files
from ...methods.base import SitesMethod
from ...objective.local import LocalObjective
from ...objective.softmax import SoftmaxObjective
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
    prepared: SitesMethod
    rows: Any
    identity: Identity
    trust: Trust
    run: RunFacts
    facts: SiteFacts
    budget: SiteBudget

    def charge_of(self, t: int) -> Charge:
        """The cost of the release of round t."""
        return next(self.prepared.charges(t).each())

    def forecast(self) -> Certificate:
        """The cost of all rounds together at this site's delta, if every round is released."""
        return self.prepared.forecast(self.run, self.budget.delta)

    def planned(self) -> Certificate:
        """The cost that is charged to the table's account, with as many colluders as the owner assumes."""
        return self.prepared.forecast(judged(self.run, self.site.file.budget.colluding), self.budget.delta)

    def gaps(self) -> list[str]:
        """Conditions of the paper's theorems that this site's own schedules do not meet."""
        return self.site.job.settings.gaps(self.site.settings)


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
    """The objective that this site minimises; for questions, the rows from which their sums are computed."""
    job = site.job
    if job.kind != TRAIN:
        return job.asking.rows(load_table(site))
    X, y, weights = load_weighted_rows(site)
    weighted: dict[str, Any] = {} if weights is None else {"weights": weights, "count": site.samples}
    if job.several:
        return SoftmaxObjective(X, y, loss=job.training_loss, name=site.name, **weighted)
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


def prepare_run(site: Site) -> SitesMethod:
    """Every number of the run that this site knows, checked. It does not know the others' schedules."""
    return site.job.settings.prepare(site.number, site.settings, real=not site.job.simulated)
