"""All that a site needs before its first round, checked; and what the whole run will cost it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ... import checks
from ...admm.accounts import run_facts
from ...admm.methods import PenaltyPerturbation
from ...admm.node import Node, NodeState
from ...admm.reach import check_reach, least_tol
from ...admm.theory import convergence
from ...errors import BudgetExceeded, WrongFiles
from ...objective.local import LocalObjective
from ...privacy.certificate.certificate import Certificate
from ...privacy.facts import RunFacts, SiteBudget, SiteFacts
from ...privacy.ledger.memory import MemoryLedger
from ...rng import SecureStreams, SeededStreams
from ..files.rows import load_rows, load_weights
from ..files.site import Site
from ..files.toml import about_files
from ..wire.form import Form, form_of
from ..wire.frame import NOTHING, Frame, decode, encode
from ..wire.trust import Identity, Trust, intact, load_identity, load_trust
from .masked.part import MaskedPart, masked_facts, masked_part
from .masked.store import MaskedMemory, MaskedState
from .store import NodeMemory


@dataclass(frozen=True)
class Ready:
    """A site that may start: its node, its keys, and the facts that its ledger will be begun with."""

    site: Site
    node: Node | MaskedPart
    identity: Identity
    trust: Trust
    run: RunFacts
    facts: SiteFacts
    budget: SiteBudget

    @cached_property
    def memory(self) -> NodeMemory | MaskedMemory:
        """How the state of the job's method is kept."""
        if isinstance(self.node, MaskedPart):
            return MaskedMemory(self.site.number, self.node.tables)
        return NodeMemory(self.site.job.dimension)

    def start(self) -> NodeState | MaskedState:
        """t = 0: the same at every site."""
        return self.memory.start()

    @cached_property
    def form(self) -> Form:
        """What the frames of the job look like."""
        return form_of(self.site.job)

    def seal(
        self,
        t: int,
        message: bytes = b"",
        *,
        before: bytes = NOTHING,
        common: bytes = NOTHING,
        attempt: int = 0,
    ) -> bytes:
        """The signed frame of round t."""
        content = encode(
            job=self.site.job.hash,
            attempt=attempt,
            t=t,
            sender=self.site.number,
            before=before,
            common=common,
            message=message,
        )
        return self.identity.seal(content)

    def open_frame(self, data: bytes) -> Frame:
        """A frame that this site holds, taken apart."""
        return decode(data, largest=self.form.cap)

    def reseal(self, data: bytes) -> bytes:
        """A stored frame of this site under the certificate it has now: the same frame, as good as new."""
        frame = self.open_frame(data)
        if frame.certificate == self.identity.certificate:
            return data
        if not intact(frame):
            raise WrongFiles(
                f"{self.site.database}: is damaged: a frame of round {frame.t} is not as it was."
            )
        return self.identity.seal(frame.content)

    def forecast(self) -> Certificate:
        """What all rounds together will have cost at this site's delta, if every one is released."""
        ledger = MemoryLedger(self.run, [self.facts])
        for t in range(1, self.run.rounds + 1):
            ledger.charge(self.node.charge_of(t))
        return Certificate.from_ledger(ledger, delta=self.budget.delta)

    def affordable(self) -> int:
        """How many rounds the budget pays for; the site stops before the next one."""
        ledger = MemoryLedger(self.run, [self.facts], self.budget)
        for t in range(1, self.run.rounds + 1):
            try:
                ledger.charge(self.node.charge_of(t))
            except BudgetExceeded:
                return t - 1
        return self.run.rounds

    def gaps(self) -> list[str]:
        """Conditions of the paper's theorems that this site's own schedules do not meet."""
        if self.site.job.masked:
            return []
        nondecreasing, above, *_ = convergence(_method(self.site), 1, self.run.rounds).hypotheses
        return [f"{gap.name}: {gap.detail}" for gap in (nondecreasing, above) if not gap.holds]


@about_files
def make_ready(site: Site) -> Ready:
    """Load keys and data of a site, and check everything that can be wrong with them."""
    keys, job = site.file.keys, site.job
    trust = load_trust(site.path(keys.authority), keys.revoked)
    identity = load_identity(site.path(keys.private), site.path(keys.certificate), site.name, trust)
    X, y = load_rows(site)
    weights = load_weights(site)
    weighted: dict[str, Any] = {} if weights is None else {"weights": weights, "count": site.samples}
    budget = SiteBudget(site.file.budget.epsilon, site.file.budget.delta)
    if job.masked:
        part = masked_part(site, X, y, weighted)
        return Ready(site, part, identity, trust, *masked_facts(site), budget)
    objective = LocalObjective(
        X,
        y,
        loss=job.loss,
        C=job.C,
        regularization=job.regularization,
        sites=len(job.sites),
        name=site.name,
        **weighted,
    )
    node = _node(site, objective)
    _check_scales(node)
    if not job.simulated:
        _check_reach(site, node)
    return Ready(site, node, identity, trust, *_penalty_facts(site, node), budget)


def _penalty_facts(site: Site, node: Node) -> tuple[RunFacts, SiteFacts]:
    """What the accountant must know of the run, and of this site."""
    job = site.job
    facts = SiteFacts(
        site=site.number,
        samples=site.samples,
        degree=node.degree,
        dual_step=tuple(node.tables.theta.tolist()),
        name=site.name,
    )
    run = run_facts(
        node.tables,
        job.loss,
        dimension=job.dimension,
        C=job.C,
        regularization=job.regularization,
        tol=job.penalty.tol,
        simulated=job.simulated,
        where=job.where,
        sites=len(job.sites),
        persons=job.persons,
    )
    return run, facts


def _check_scales(node: Node) -> None:
    """Refuse a penalty or a noise that no charge can have, before anything is worked out with it."""
    tables = node.tables
    for name, values in (
        ("penalty", tables.eta),
        ("noise", tables.scale),
        ("output_noise", tables.output_scale),
    ):
        for value in () if values is None else (values.min(), values.max()):
            checks.magnitude(name, float(value))


def _check_reach(site: Site, node: Node) -> None:
    """Refuse settings under which a neighbour could make the solver give up."""
    job = site.job
    rho = node.objective.rho
    least = least_tol(
        node.tables,
        job.loss,
        C=job.C,
        strong=rho,
        smooth=rho,
        samples=site.samples,
        degree=node.degree,
        dimension=job.dimension,
        clip=job.penalty.clip,
    )
    check_reach(job.penalty.tol, least, clip=job.penalty.clip, where=site.name)


def _method(site: Site) -> PenaltyPerturbation:
    file, job = site.file, site.job
    own: dict[str, Any] = {
        "penalty": file.penalty,
        "noise": file.noise,
    }  # load_site saw to it: both are there
    return PenaltyPerturbation(
        **own,
        dual_step=job.penalty.dual_step,
        output_noise=file.output_noise,
        grid=job.penalty.grid,
        clip=job.penalty.clip,
    )


def _node(site: Site, objective: LocalObjective) -> Node:
    job = site.job
    return Node(
        site=site.number,
        objective=objective,
        degree=len(site.neighbours),
        tables=_method(site).tables(1, job.rounds).site(0),
        tol=job.penalty.tol,
        streams=SecureStreams() if job.seed is None else SeededStreams(job.seed),
        refresh=1,
    )
