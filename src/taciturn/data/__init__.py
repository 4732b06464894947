"""Public data sets, encoders for tables with public bounds, and functions that distribute rows over sites."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` tells type checkers that the name is public
    from .datasets.adult import load_adult as load_adult
    from .datasets.credit import load_credit as load_credit
    from .datasets.dataset import Dataset as Dataset
    from .datasets.support import load_support as load_support
    from .features.feature_map import FeatureMap as FeatureMap
    from .tables.clipping import RowClipper as RowClipper
    from .tables.column_types import Boolean as Boolean
    from .tables.column_types import Category as Category
    from .tables.column_types import Date as Date
    from .tables.column_types import Number as Number
    from .tables.dealing import deal as deal
    from .tables.dealing import deal_by as deal_by
    from .tables.dealing import deal_evenly as deal_evenly
    from .tables.dealing import deal_unevenly as deal_unevenly
    from .tables.encoder import BoundedEncoder as BoundedEncoder
    from .tables.schema import Schema as Schema

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
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that a site that needs only a schema loads no scikit-learn."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__
