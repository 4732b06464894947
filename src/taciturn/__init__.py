"""Private decentralised learning: sites that may not share data agree on one model.

The public names are loaded when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .versions import VERSION

if TYPE_CHECKING:
    from . import data, report
    from .admm.averaging import gossip, network_average
    from .admm.methods import ADMM, MADMM, DualPerturbation, PenaltyPerturbation, PrimalPerturbation
    from .admm.run import Run
    from .auditing.attack import run_attack
    from .auditing.audit import audit
    from .engines.ray import RayEngine
    from .engines.simulate import simulate
    from .engines.train import train
    from .estimators import (
        CoefIntervals,
        PrivateHuberRegressor,
        PrivateLinearSVC,
        PrivateLogisticRegression,
        coef_intervals,
        load_model,
        save_model,
    )
    from .graph import Graph
    from .jobs.train import TrainedJob, train_job
    from .masked.method import MaskedDescent
    from .objective import L2, LogCosh, Logistic, Problem, SmoothHinge, SourcedProblem
    from .objective.softmax import SoftmaxProblem
    from .planning.plan import plan
    from .privacy.certificate.certificate import Certificate
    from .privacy.facts import SiteBudget
    from .privacy.ledger.budget import Budget
    from .privacy.ledger.disk import SqliteLedger
    from .privacy.ledger.memory import MemoryLedger
    from .privacy.noise import GaussianNoise, NormNoise
    from .schedules import Constant, Geometric, Table
    from .statistics.descriptions import PrivateDescription, private_description
    from .statistics.scores import PrivateScore, private_score

__version__ = VERSION

__all__ = [
    "ADMM",
    "L2",
    "MADMM",
    "Budget",
    "Certificate",
    "CoefIntervals",
    "Constant",
    "DualPerturbation",
    "GaussianNoise",
    "Geometric",
    "Graph",
    "LogCosh",
    "Logistic",
    "MaskedDescent",
    "MemoryLedger",
    "NormNoise",
    "PenaltyPerturbation",
    "PrimalPerturbation",
    "PrivateDescription",
    "PrivateHuberRegressor",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateScore",
    "Problem",
    "RayEngine",
    "Run",
    "SiteBudget",
    "SmoothHinge",
    "SoftmaxProblem",
    "SourcedProblem",
    "SqliteLedger",
    "Table",
    "TrainedJob",
    "audit",
    "coef_intervals",
    "data",
    "gossip",
    "load_model",
    "network_average",
    "plan",
    "private_description",
    "private_score",
    "report",
    "run_attack",
    "save_model",
    "simulate",
    "train",
    "train_job",
]

_HOMES = {
    "admm.averaging": ("gossip", "network_average"),
    "admm.methods": (
        "ADMM",
        "DualPerturbation",
        "MADMM",
        "PenaltyPerturbation",
        "PrimalPerturbation",
    ),
    "admm.run": ("Run",),
    "auditing.attack": ("run_attack",),
    "auditing.audit": ("audit",),
    "engines.ray": ("RayEngine",),
    "engines.simulate": ("simulate",),
    "engines.train": ("train",),
    "estimators": (
        "CoefIntervals",
        "PrivateHuberRegressor",
        "PrivateLinearSVC",
        "PrivateLogisticRegression",
        "coef_intervals",
        "load_model",
        "save_model",
    ),
    "graph": ("Graph",),
    "jobs.train": ("TrainedJob", "train_job"),
    "masked.method": ("MaskedDescent",),
    "objective": (
        "L2",
        "LogCosh",
        "Logistic",
        "Problem",
        "SmoothHinge",
        "SourcedProblem",
    ),
    "objective.softmax": ("SoftmaxProblem",),
    "planning.plan": ("plan",),
    "privacy.certificate.certificate": ("Certificate",),
    "privacy.facts": ("SiteBudget",),
    "privacy.ledger.budget": ("Budget",),
    "privacy.ledger.disk": ("SqliteLedger",),
    "privacy.ledger.memory": ("MemoryLedger",),
    "privacy.noise": (
        "GaussianNoise",
        "NormNoise",
    ),
    "schedules": (
        "Constant",
        "Geometric",
        "Table",
    ),
    "statistics.descriptions": ("PrivateDescription", "private_description"),
    "statistics.scores": ("PrivateScore", "private_score"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("data", "report"):
        return importlib.import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'taciturn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
