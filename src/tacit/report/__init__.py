"""A run as one self-contained HTML page."""

from .data import Accounting, Chart, Curve, KeyNumber, Mark, Network, ReportData, SiteCosts, Statement
from .page import render, write

__all__ = [
    "Accounting",
    "Chart",
    "Curve",
    "KeyNumber",
    "Mark",
    "Network",
    "ReportData",
    "SiteCosts",
    "Statement",
    "render",
    "write",
]
