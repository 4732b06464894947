"""model.json of a network: the average that every site holds, in the form of every model file of taciturn."""

from __future__ import annotations

from typing import Any

from ...types import Array
from .job import NetworkJob

_KINDS = {"logistic": ("logistic", {}), "smooth-hinge": ("svc", {"h": "smoothing"})}
_KINDS["log-cosh"] = ("huber", {"scale": "scale"})


def model_facts(job: NetworkJob, coef: Array) -> dict[str, Any]:
    """The content of model.json, as `taciturn.data.model_file` reads it; the same bytes at every site.

    An intercept of the job is a constant inside x, so its weight is the last of `coef`.
    """
    kind, renamed = _KINDS[job.loss.name]
    settings = {renamed[name]: value for name, value in vars(job.loss).items() if name in renamed}
    facts: dict[str, Any] = {
        "format": "taciturn-model/1",
        "kind": kind,
        "features": list(job.feature_names),
        "coef": [coef.tolist()],
        "intercept": [0.0],
        "settings": {"delta": job.delta, "fit_intercept": False, **settings},
        "simulated": job.simulated,
        "run": {
            "job": job.name,
            "sha256": job.hash.hex(),
            "sites": list(job.names),
            "rounds": job.rounds,
        },
    }
    if kind != "huber":
        facts["classes"] = _classes(job)
    if job.label is not None:
        facts |= {"label": job.label.column, "schema": job.table, "encoding": {"intercept": job.intercept}}
    return facts


def _classes(job: NetworkJob) -> list[Any]:
    """-1 and +1, or the label that counts as +1 and everything else."""
    if job.label is None:
        return [-1, 1]
    return [f"not {job.label.positive}", job.label.positive]
