"""Private decentralised learning: several sites train one model together without sharing their records.

The module of a public name is loaded when the name is first used, so that the command line starts quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.ancestors import remember_ancestors as _remember_ancestors
from .core.versions import VERSION

if TYPE_CHECKING:  # `as` tells type checkers that the name is public
    from . import data as data
    from . import report as report
    from .auditing.audit import audit as audit
    from .core import errors as errors
    from .estimators import EffectCurve as EffectCurve
    from .estimators import PrivateAdditiveClassifier as PrivateAdditiveClassifier
    from .estimators import PrivateAdditiveRegressor as PrivateAdditiveRegressor
    from .estimators import PrivateHuberRegressor as PrivateHuberRegressor
    from .estimators import PrivateLinearSVC as PrivateLinearSVC
    from .estimators import PrivateLogisticRegression as PrivateLogisticRegression
    from .estimators import load_model as load_model
    from .estimators import save_model as save_model
    from .graph import Graph as Graph
    from .jobs.train_job import train_job as train_job
    from .methods.admm.perturbations import ADMM as ADMM
    from .methods.admm.perturbations import MADMM as MADMM
    from .methods.admm.perturbations import DualPerturbation as DualPerturbation
    from .methods.admm.perturbations import PenaltyPerturbation as PenaltyPerturbation
    from .methods.admm.perturbations import PrimalPerturbation as PrimalPerturbation
    from .methods.own_method import OwnMethod as OwnMethod
    from .methods.programs.masked_descent import MaskedDescent as MaskedDescent
    from .methods.programs.own_program import Program as Program
    from .methods.programs.own_program import Query as Query
    from .methods.programs.own_program import Step as Step
    from .methods.run import Run as Run
    from .methods.sums import expressions as expressions
    from .objective import L2 as L2
    from .objective import LogCosh as LogCosh
    from .objective import Logistic as Logistic
    from .objective import Problem as Problem
    from .objective import SmoothHinge as SmoothHinge
    from .objective import Squared as Squared
    from .objective.softmax import SoftmaxProblem as SoftmaxProblem
    from .planning.plan import plan as plan
    from .privacy.certificate.certificate import Certificate as Certificate
    from .privacy.facts import SiteBudget as SiteBudget
    from .privacy.ledger.budget import Budget as Budget
    from .privacy.ledger.disk import SqliteLedger as SqliteLedger
    from .privacy.noise import GaussianNoise as GaussianNoise
    from .privacy.noise import NormNoise as NormNoise
    from .privacy.stated_cost import StatedCost as StatedCost
    from .questions.shipped.correlations import PrivateCorrelations as PrivateCorrelations
    from .questions.shipped.description import PrivateDescription as PrivateDescription
    from .questions.shipped.own import ProgramResult as ProgramResult
    from .questions.shipped.score import PrivateScore as PrivateScore
    from .questions.shipped.survival_curves import PrivateSurvival as PrivateSurvival
    from .runtime.simulate import simulate as simulate
    from .runtime.train import train as train
    from .schedules import Constant as Constant
    from .schedules import Geometric as Geometric
    from .schedules import Table as Table
    from .statistics.descriptions import private_correlations as private_correlations
    from .statistics.descriptions import private_description as private_description
    from .statistics.descriptions import private_survival as private_survival
    from .statistics.glm import PrivateGLM as PrivateGLM
    from .statistics.run_program import check_purity as check_purity
    from .statistics.run_program import run_program as run_program
    from .statistics.scores import private_score as private_score
    from .statistics.table_check import TableCheck as TableCheck
    from .statistics.table_check import check as check

__version__ = VERSION

_MODULES = {
    "data": ".data",
    "errors": ".core.errors",
    "expressions": ".methods.sums.expressions",
    "report": ".report",
}
_HOMES = {  # module: the public names that it defines
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
    "statistics.descriptions": "private_correlations private_description private_survival",
    "questions.shipped.own": "ProgramResult",
    "statistics.glm": "PrivateGLM",
    "statistics.run_program": "check_purity run_program",
    "statistics.scores": "private_score",
    "statistics.table_check": "TableCheck check",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted([*_MODULES, *_HOME])
_remember_ancestors()  # at import: a worker must know which process started it, even if that one ends


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
