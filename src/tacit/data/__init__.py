"""Data sets, tables with public bounds, and dealing rows to sites."""

from .adult import load_adult
from .dataset import Dataset
from .dealing import deal, deal_by, deal_evenly, deal_unevenly
from .encoder import BoundedEncoder
from .schema import Category, Number, Schema

__all__ = [
    "BoundedEncoder",
    "Category",
    "Dataset",
    "Number",
    "Schema",
    "deal",
    "deal_by",
    "deal_evenly",
    "deal_unevenly",
    "load_adult",
]
