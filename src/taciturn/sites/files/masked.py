"""A masked job: its public facts, and every number that follows from them, the same at every site."""

from __future__ import annotations

from ...errors import SiteError
from ...masked.method import MaskedDescent, MaskedTables, PublicFacts
from .job import NetworkJob


def public_facts(job: NetworkJob) -> PublicFacts:
    """What everybody knows of the rows: the job says it all."""
    samples = [site.samples for site in job.sites]
    return PublicFacts(
        sites=len(samples),
        total=sum(samples),
        largest=max(samples),
        dimension=job.dimension,
        loss=job.loss,
        regularization=job.regularization / (job.C * len(samples)),
    )


def method_of(job: NetworkJob) -> MaskedDescent:
    """The method that the job names."""
    if job.epsilon is None or job.colluding is None:
        raise SiteError(f"the job {job.name} has no settings of method 'masked'.")
    return MaskedDescent(epsilon=job.epsilon, delta=job.delta, colluding=job.colluding)


def tables_of(job: NetworkJob) -> MaskedTables:
    """Each sum and its noise, who shares masks with whom, and the public maths."""
    return method_of(job).tables(public_facts(job), job.rounds)
