"""Private decentralised learning: sites that may not share data agree on one model.

The public names are loaded when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import data, report
    from .admm.methods import ADMM, MADMM, DualPerturbation, PenaltyPerturbation, PrimalPerturbation
    from .engines.simulate import simulate
    from .estimators import PrivateHuberRegressor, PrivateLinearSVC, PrivateLogisticRegression
    from .graph import Graph
    from .objective import L2, LogCosh, Logistic, Problem, SmoothHinge, SourcedProblem
    from .privacy.certificate import Certificate
    from .privacy.noise import GaussianNoise, NormNoise
    from .schedules import Constant, Geometric, Table
    from .trials.audit import audit
    from .trials.plan import plan

__version__ = "0.1.0"

__all__ = [
    "ADMM",
    "L2",
    "MADMM",
    "Certificate",
    "Constant",
    "DualPerturbation",
    "GaussianNoise",
    "Geometric",
    "Graph",
    "LogCosh",
    "Logistic",
    "NormNoise",
    "PenaltyPerturbation",
    "PrimalPerturbation",
    "PrivateHuberRegressor",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "Problem",
    "SmoothHinge",
    "SourcedProblem",
    "Table",
    "audit",
    "data",
    "plan",
    "report",
    "simulate",
]

_HOMES = {
    "admm.methods": ("ADMM", "MADMM", "DualPerturbation", "PenaltyPerturbation", "PrimalPerturbation"),
    "engines.simulate": ("simulate",),
    "estimators": ("PrivateHuberRegressor", "PrivateLinearSVC", "PrivateLogisticRegression"),
    "graph": ("Graph",),
    "objective": ("L2", "LogCosh", "Logistic", "Problem", "SmoothHinge", "SourcedProblem"),
    "privacy.certificate": ("Certificate",),
    "privacy.noise": ("GaussianNoise", "NormNoise"),
    "schedules": ("Constant", "Geometric", "Table"),
    "trials.audit": ("audit",),
    "trials.plan": ("plan",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("data", "report"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
