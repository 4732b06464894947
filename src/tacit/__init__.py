"""Private decentralised learning: sites that may not share data agree on one model."""

from .graph import Graph
from .schedules import Constant, Geometric, Table

__version__ = "0.1.0"

__all__ = ["Constant", "Geometric", "Graph", "Table"]
