"""Private decentralised learning: sites that may not share data agree on one model."""

from . import data
from .graph import Graph
from .objective import L2, LogCosh, Logistic, Problem, SmoothHinge
from .privacy.noise import GaussianNoise, NormNoise
from .schedules import Constant, Geometric, Table

__version__ = "0.1.0"

__all__ = [
    "L2",
    "Constant",
    "GaussianNoise",
    "Geometric",
    "Graph",
    "LogCosh",
    "Logistic",
    "NormNoise",
    "Problem",
    "SmoothHinge",
    "Table",
    "data",
]
