"""Data sets, tables with public bounds, and dealing rows to sites."""

from .datasets.adult import load_adult
from .datasets.credit import load_credit
from .datasets.dataset import Dataset
from .datasets.support import load_support
from .tables.clipping import RowClipper
from .tables.dealing import deal, deal_by, deal_evenly, deal_unevenly
from .tables.encoder import BoundedEncoder
from .tables.fields import Boolean, Category, Date, Number
from .tables.schema import Schema

__all__ = [
    "Boolean",
    "BoundedEncoder",
    "Category",
    "Dataset",
    "Date",
    "Number",
    "RowClipper",
    "Schema",
    "deal",
    "deal_by",
    "deal_evenly",
    "deal_unevenly",
    "load_adult",
    "load_credit",
    "load_support",
]
