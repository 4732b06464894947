"""Data sets, tables with public bounds, and dealing rows to sites."""

from .adult import load_adult
from .credit import load_credit
from .dataset import Dataset
from .dealing import deal, deal_by, deal_evenly, deal_unevenly
from .encoder import BoundedEncoder
from .schema import Category, Number, Schema
from .support import load_support

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
    "load_credit",
    "load_support",
]
