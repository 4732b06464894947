"""Prepare a site before round 1: check its files, compute the cost of the run, load compiled code."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...core.errors import TaciturnError
from ...jobfile.job_format import TRAIN
from ...jobfile.toml_files import about_files
from ...methods.base import SitesMethod
from ...objective.local import LocalObjective
from ...objective.softmax import SoftmaxObjective
from ...privacy.certificate.certificate import Certificate
from ...privacy.facts import RunFacts, SiteBudget, SiteFacts
from ..files.rows import load_table, load_weighted_rows
from ..files.site import Site
from ..protocol.core import SiteSetup
from ..protocol.frames import FrameRefused, SignedFrame
from ..state.account import judged
from ..wire.config import largest_payload
from ..wire.refusals import Refusals
from ..wire.trust import Identity, Trust, load_identity, site_trust

GATHER = 5.0  # seconds to wait for more hellos after the first; a hello is a site's request to take part


@dataclass(frozen=True)
class PreparedSite:
    """A site that may start: its method (`prepared`), its rows and keys, and the facts for its ledger."""

    site: Site
    prepared: SitesMethod
    rows: Any
    identity: Identity
    trust: Trust
    run: RunFacts
    facts: SiteFacts
    budget: SiteBudget

    def forecast(self) -> Certificate:
        """The cost of all rounds together at this site's delta, if every round is released."""
        return self.prepared.forecast(self.run, self.budget.delta)

    def planned(self) -> Certificate:
        """The cost that is charged to the account, under the owner's assumption about colluding sites."""
        return self.prepared.forecast(judged(self.run, self.site.file.budget.colluding), self.budget.delta)

    def method(self) -> Any:
        """What this site computes with its rows in the run."""
        job = self.site.job
        return self.prepared.at_site(self.rows, job.network.samples, job.near, job.seed)

    def setup(self, refusals: Refusals, *, mark: int, paid: bool = False) -> SiteSetup:
        """The setup of this site's protocol; without a `quorum` in the job, no site may drop out.

        mark : the newest round that this site may have sent, according to its state and the high-water mark
            (the newest round that is recorded outside of the state folder).
        paid : whether the high-water mark or the account shows that the state is not the newest.
        """
        site, job, method = self.site, self.site.job, self.method()

        def believe(frame: SignedFrame) -> None:
            name = job.names[frame.sender]
            try:
                self.trust.check(frame, name)
            except FrameRefused as error:
                refusals.refuse(name, error.kind, str(error))
                raise

        return SiteSetup(
            job=job.hash,
            names=job.names,
            own=site.number,
            links=job.near,
            quorum=job.quorum or len(job.names),
            patience=site.file.patience,
            method=method,
            seal=self.identity.seal,
            believe=believe,
            largest=largest_payload(job),
            mark=0 if method.common else mark,
            paid=paid,
            gather=min(GATHER, site.file.patience / 4),
        )

    def warm_up(self) -> None:
        """Load what the first round needs before the site connects, so that no other site waits for it.

        Compiled code is loaded from disk at its first use, which takes about a second. So this method
        computes a round with made-up rows and keys. It reads no row of the site and keeps nothing. It
        ignores a failure, because the real round will report it.
        """
        with suppress(TaciturnError, ArithmeticError, ValueError):
            self.prepared.warm_up(self.rows, self.site.job.seed)


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
    """The objective that this site minimises; in a job that trains no model, the rows for its sums."""
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
    """The checked method, with all numbers that this site knows: all except the noise of other sites."""
    return site.job.settings.prepare(site.number, site.settings, real=not site.job.simulated)
