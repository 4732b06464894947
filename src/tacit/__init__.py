"""Private decentralised learning: sites that may not share data agree on one model."""

from . import data
from .admm.methods import ADMM, MADMM, DualPerturbation, PenaltyPerturbation, PrimalPerturbation
from .engines import simulate
from .graph import Graph
from .objective import L2, LogCosh, Logistic, Problem, SmoothHinge
from .privacy.noise import GaussianNoise, NormNoise
from .schedules import Constant, Geometric, Table

__version__ = "0.1.0"

__all__ = [
    "ADMM",
    "L2",
    "MADMM",
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
    "Problem",
    "SmoothHinge",
    "Table",
    "data",
    "simulate",
]
