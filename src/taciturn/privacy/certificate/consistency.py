"""The charges that a ledger can contain; certificates with other charges are neither written nor accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import checks
from ...core.errors import CertificateError
from ..facts import Columns, RunFacts, SiteBudget, SiteFacts
from ..ledger.chain import Head
from .site_costs import planned_charges

WHERE = {
    "process": "one process",
    "folders": "folders of one machine",
    "network": "a network",
}


def check_releases(run: RunFacts, site: SiteFacts, limit: SiteBudget | None, columns: Columns) -> None:
    """Every round up to the last was charged, with numbers that a charge may have."""
    rounds = columns.t.size
    if not np.array_equal(columns.t, np.arange(1, rounds + 1)) or rounds > run.rounds:
        gaps = np.setdiff1d(np.arange(1, run.rounds + 1), columns.t)
        raise CertificateError(
            f"{site.name} was charged for later rounds but not for round {gaps[0]}. What was released in "
            "that round was never charged, so nothing can be certified."
            if gaps.size
            else f"{site.name} was charged for {rounds} rounds of {run.rounds} planned."
        )
    sums = columns.t <= len(run.sums)
    needed: dict[str, Any] = {"eta": ~sums, "degree": run.sites > 1, "scale": run.noise != "none"}
    needed["output_scale"] = ~sums & (run.output_noise is not None)
    for name, positive in needed.items():
        column = getattr(columns, name)
        if name == "scale" and list(column[sums]) != [entry.std for entry in run.sums[: sums.sum()]]:
            raise CertificateError(
                f"{site.name} has charges with a `scale` that differs from the run's sums."
            )
        inside = np.where(positive, (column >= checks.LEAST) & (column <= checks.MOST), column == 0)
        if not np.all(inside):
            raise CertificateError(
                f"{site.name} has charges with a `{name}` that does not fit the run's facts."
            )
    _check_degree(run, site, limit, columns)
    if site.eta and (limit is None or limit.order is None):
        planned = planned_charges(run, site, rounds)
        for name in ("eta", "scale", "output_scale"):
            if not np.array_equal(getattr(columns, name), getattr(planned, name)):
                raise CertificateError(f"{site.name} has charges with a `{name}` that differs from the plan.")


def check_where(run: RunFacts, sites: Sequence[SiteFacts]) -> None:
    """One process knows what all its sites were charged; a site of a network knows that of itself alone."""
    expected = {"process": run.sites, "folders": 1, "network": 1}.get(run.where, len(sites))
    if len(sites) != expected:
        raise CertificateError(
            f"a run whose rows were in {WHERE[run.where]} has a certificate for {expected} of its "
            f"{run.sites} sites; this one is for {len(sites)}."
        )


def check_head(head: Head | None, releases: Sequence[Columns]) -> None:
    """A ledger holds one row of facts, and one for each charge."""
    rows = 1 + sum(columns.t.size for columns in releases)
    if head is not None and head.rows != rows:
        raise CertificateError(f"`ledger_head` states {head.rows} rows; the facts and charges make {rows}.")


def _check_degree(run: RunFacts, site: SiteFacts, limit: SiteBudget | None, columns: Columns) -> None:
    """The degree charged is the one stated; another only where a filter at a fixed order allowed for it."""
    other = columns.degree != site.degree
    reacting = limit is not None and limit.order is not None
    if np.any(other & ((columns.degree >= run.sites) | (not reacting))):
        raise CertificateError(
            f"{site.name} has {site.degree} neighbours, but was charged for another number in some round."
        )
