"""What one site minimises."""

from .checking import check_loss, check_regularizer
from .local import LocalObjective, Objective
from .losses import LogCosh, Logistic, Loss, SmoothHinge
from .problem import Problem
from .regularizers import L2, Regularizer

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
    "check_loss",
    "check_regularizer",
]
