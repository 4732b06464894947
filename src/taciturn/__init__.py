"""Private decentralised learning: sites that may not share data agree on one model.

The module of a public name is loaded when the name is first used, so that the command line starts quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.ancestors import remember_ancestors as _remember_ancestors
from .core.versions import VERSION

if TYPE_CHECKING:
    from . import data, report
    from .auditing.audit import audit
    from .core import errors
    from .estimators import (
        EffectCurve,
        PrivateAdditiveClassifier,
        PrivateAdditiveRegressor,
        PrivateHuberRegressor,
        PrivateLinearSVC,
        PrivateLogisticRegression,
        load_model,
        save_model,
    )
    from .graph import Graph
    from .jobs.train_job import train_job
    from .methods.admm.perturbations import (
        ADMM,
        MADMM,
        DualPerturbation,
        PenaltyPerturbation,
        PrimalPerturbation,
    )
    from .methods.own_method import OwnMethod
    from .methods.programs.masked_descent import MaskedDescent
    from .methods.programs.own_program import Program, Query, Step
    from .methods.run import Run
    from .methods.sums import expressions
    from .objective import L2, LogCosh, Logistic, Problem, SmoothHinge, Squared
    from .objective.softmax import SoftmaxProblem
    from .planning.plan import plan
    from .privacy.certificate.certificate import Certificate
    from .privacy.facts import SiteBudget
    from .privacy.ledger.budget import Budget
    from .privacy.ledger.disk import SqliteLedger
    from .privacy.noise import GaussianNoise, NormNoise
    from .privacy.stated_cost import StatedCost
    from .questions.shipped.correlations import PrivateCorrelations
    from .questions.shipped.description import PrivateDescription
    from .questions.shipped.own import ProgramResult
    from .questions.shipped.score import PrivateScore
    from .questions.shipped.survival_curves import PrivateSurvival
    from .runtime.simulate import simulate
    from .runtime.train import train
    from .schedules import Constant, Geometric, Table
    from .statistics.descriptions import private_description
    from .statistics.glm import PrivateGLM
    from .statistics.purity import check_purity
    from .statistics.run_program import run_program
    from .statistics.scores import private_score
    from .statistics.survival import private_correlations, private_survival
    from .statistics.table_check import TableCheck, check

__version__ = VERSION

__all__ = [
    "ADMM",
    "L2",
    "MADMM",
    "Budget",
    "Certificate",
    "Constant",
    "DualPerturbation",
    "EffectCurve",
    "GaussianNoise",
    "Geometric",
    "Graph",
    "LogCosh",
    "Logistic",
    "MaskedDescent",
    "NormNoise",
    "OwnMethod",
    "PenaltyPerturbation",
    "PrimalPerturbation",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateCorrelations",
    "PrivateDescription",
    "PrivateGLM",
    "PrivateHuberRegressor",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateScore",
    "PrivateSurvival",
    "Problem",
    "Program",
    "ProgramResult",
    "Query",
    "Run",
    "SiteBudget",
    "SmoothHinge",
    "SoftmaxProblem",
    "SqliteLedger",
    "Squared",
    "StatedCost",
    "Step",
    "Table",
    "TableCheck",
    "audit",
    "check",
    "check_purity",
    "data",
    "errors",
    "expressions",
    "load_model",
    "plan",
    "private_correlations",
    "private_description",
    "private_score",
    "private_survival",
    "report",
    "run_program",
    "save_model",
    "simulate",
    "train",
    "train_job",
]

_MODULES = {
    "data": ".data",
    "errors": ".core.errors",
    "expressions": ".methods.sums.expressions",
    "report": ".report",
}
_HOMES = {
    "methods.admm.perturbations": "ADMM MADMM DualPerturbation PenaltyPerturbation PrimalPerturbation",
    "methods.own_method": "OwnMethod",
    "methods.programs.masked_descent": "MaskedDescent",
    "methods.programs.own_program": "Program Query Step",
    "methods.run": "Run",
    "auditing.audit": "audit",
    "runtime.simulate": "simulate",
    "runtime.train": "train",
    "estimators": "EffectCurve PrivateAdditiveClassifier PrivateAdditiveRegressor"
    " PrivateHuberRegressor PrivateLinearSVC PrivateLogisticRegression load_model save_model",
    "graph": "Graph",
    "jobs.train_job": "train_job",
    "objective": "L2 LogCosh Logistic Problem SmoothHinge Squared",
    "objective.softmax": "SoftmaxProblem",
    "planning.plan": "plan",
    "privacy.certificate.certificate": "Certificate",
    "privacy.facts": "SiteBudget",
    "privacy.ledger.budget": "Budget",
    "privacy.ledger.disk": "SqliteLedger",
    "privacy.noise": "GaussianNoise NormNoise",
    "privacy.stated_cost": "StatedCost",
    "schedules": "Constant Geometric Table",
    "questions.shipped.description": "PrivateDescription",
    "questions.shipped.correlations": "PrivateCorrelations",
    "questions.shipped.score": "PrivateScore",
    "questions.shipped.survival_curves": "PrivateSurvival",
    "statistics.descriptions": "private_description",
    "questions.shipped.own": "ProgramResult",
    "statistics.purity": "check_purity",
    "statistics.glm": "PrivateGLM",
    "statistics.run_program": "run_program",
    "statistics.scores": "private_score",
    "statistics.survival": "private_correlations private_survival",
    "statistics.table_check": "TableCheck check",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_remember_ancestors()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name], __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'taciturn' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
