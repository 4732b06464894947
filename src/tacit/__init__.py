"""Private decentralised learning: sites that may not share data agree on one model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import data
    from .admm.methods import ADMM, MADMM, DualPerturbation, PenaltyPerturbation, PrimalPerturbation
    from .engines.simulate import simulate
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

# Where each public name lives. It is imported when first used, so that `import tacit` answers at once.
_HOMES = {
    "ADMM": "admm.methods",
    "L2": "objective",
    "MADMM": "admm.methods",
    "Constant": "schedules",
    "DualPerturbation": "admm.methods",
    "GaussianNoise": "privacy.noise",
    "Geometric": "schedules",
    "Graph": "graph",
    "LogCosh": "objective",
    "Logistic": "objective",
    "NormNoise": "privacy.noise",
    "PenaltyPerturbation": "admm.methods",
    "PrimalPerturbation": "admm.methods",
    "Problem": "objective",
    "SmoothHinge": "objective",
    "Table": "schedules",
    "data": "data",
    "simulate": "engines.simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    home = import_module(f".{_HOMES[name]}", __name__)
    value = home if name == _HOMES[name] else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
