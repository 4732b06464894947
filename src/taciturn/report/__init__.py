"""Reports: one or more training runs with their privacy cost, as one self-contained HTML page."""

from .certificates import from_certificates
from .data import (
    Accounting,
    Chart,
    Curve,
    Illustration,
    KeyNumber,
    Mark,
    NetworkMap,
    ReportData,
    SiteCosts,
    Statement,
)
from .html.page import render, write
from .runs import from_runs

__all__ = [
    "Accounting",
    "Chart",
    "Curve",
    "Illustration",
    "KeyNumber",
    "Mark",
    "NetworkMap",
    "ReportData",
    "SiteCosts",
    "Statement",
    "from_certificates",
    "from_runs",
    "render",
    "write",
]
