"""The objective that each site minimises (rows, a loss and a regulariser), and the solvers for it."""

from .checking import check_loss, check_regularizer
from .local import LocalObjective, Objective
from .losses import LogCosh, Logistic, Loss, SmoothHinge, Squared
from .problem import Problem
from .regularizers import L2, Regularizer
from .solver.general import Solution, SolverState
from .solver.many import minimise
from .solver.threads import one_blas_thread
from .sources import SourcedProblem, save_site

__all__ = [
    "L2",
    "LocalObjective",
    "LogCosh",
    "Logistic",
    "Loss",
    "Objective",
    "Problem",
    "Regularizer",
    "SmoothHinge",
    "Solution",
    "SolverState",
    "SourcedProblem",
    "Squared",
    "check_loss",
    "check_regularizer",
    "minimise",
    "one_blas_thread",
    "save_site",
]
