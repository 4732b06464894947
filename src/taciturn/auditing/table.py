"""An audit as a table: what was measured from below beside what is certified from above, and their ratio."""

from __future__ import annotations

from ..core.formatting import format_at_least, format_cost, format_delta
from .audit import AuditReport, AuditResult

CLOSE = 1.15
"""A certificate of Gaussian noise above this many times what was measured would be too loose."""

_HEAD = (
    "| release | rounds | runs | δ | ε measured, at least | ε certified | times | μ measured, at least | "
    "μ certified | times |"
)


def markdown(report: AuditReport) -> str:
    """One row for each case."""
    return "\n".join([_HEAD, "|---" * 10 + "|", *(_row(result) for result in report.results)]) + "\n"


def looseness(result: AuditResult) -> float:
    """Certified over measured: by mu where the promise is a Gaussian trade-off, else by epsilon at delta."""
    if result.mu is not None and result.certified_mu is not None:
        return result.certified_mu / max(result.mu, 1e-9)
    return result.certified / max(result.measured.epsilon, 1e-9)


def _row(result: AuditResult) -> str:
    cells = [
        result.case,
        str(result.rounds),
        f"{2 * result.runs:,}",
        format_delta(result.measured.delta),
        format_at_least(result.measured.epsilon),
        format_cost(result.certified),
        format_cost(result.certified / max(result.measured.epsilon, 1e-9)),
    ]
    if result.mu is None or result.certified_mu is None:
        cells += ["", "", ""]
    else:
        cells += [
            format_at_least(result.mu),
            format_cost(result.certified_mu),
            format_cost(looseness(result)),
        ]
    return "| " + " | ".join(cells) + " |"
