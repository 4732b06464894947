"""Public data sets, encoders for tables with public bounds, and functions that distribute rows over sites."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .datasets.adult import load_adult
    from .datasets.credit import load_credit
    from .datasets.dataset import Dataset
    from .datasets.support import load_support
    from .features.feature_map import FeatureMap
    from .tables.clipping import RowClipper
    from .tables.column_types import Boolean, Category, Date, Number
    from .tables.dealing import deal, deal_by, deal_evenly, deal_unevenly
    from .tables.encoder import BoundedEncoder
    from .tables.schema import Schema

__all__ = [
    "Boolean",
    "BoundedEncoder",
    "Category",
    "Dataset",
    "Date",
    "FeatureMap",
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

_HOMES = {
    "datasets.adult": "load_adult",
    "datasets.credit": "load_credit",
    "datasets.dataset": "Dataset",
    "datasets.support": "load_support",
    "features.feature_map": "FeatureMap",
    "tables.clipping": "RowClipper",
    "tables.column_types": "Boolean Category Date Number",
    "tables.dealing": "deal deal_by deal_evenly deal_unevenly",
    "tables.encoder": "BoundedEncoder",
    "tables.schema": "Schema",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a site that needs only a schema does not load scikit-learn."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
