"""PlainColumns: an encoder that turns named numeric columns into rows, for models that have no schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from .clipping import is_sparse
from .column_parsing import read_numbers
from .table_inputs import take_columns


@dataclass(eq=False, repr=False)
class PlainColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The columns `names` of a table as numbers, in the order of `names`. An array is returned unchanged.

    A cell that is not numeric becomes 0 (`unread_cells` finds such cells), and infinity becomes 1e300.

    >>> columns = PlainColumns(["a", "b"])
    >>> columns.transform({"b": ["2", "?"], "a": [1, 3]})
    array([[1., 2.],
           [3., 0.]])
    """

    names: Sequence[str]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing: the encoder needs only the names of its columns."""
        return self

    def transform(self, X: Any) -> Any:
        """The rows of the table as numbers."""
        return np.nan_to_num(self._numbers(X), nan=0.0, posinf=1e300, neginf=-1e300) if _is_table(X) else X

    def unread_cells(self, X: Any) -> NDArray[np.bool_]:
        """A mask, (rows, columns), of the cells that are not numeric; all False for an array."""
        if not _is_table(X):
            shape = X.shape if is_sparse(X) else np.shape(X)
            return np.zeros((shape[0] if shape else 0, len(self.names)), dtype=bool)
        return np.isnan(self._numbers(X))

    def unreadable(self, X: Any) -> NDArray[np.bool_]:
        """A mask of the rows in which at least one cell is not numeric."""
        return np.asarray(self.unread_cells(X).any(axis=1))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return tuple(self.names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns."""
        return np.array(list(self.names), dtype=object)

    def _numbers(self, X: Any) -> NDArray[np.float64]:
        names = tuple(self.names)
        raw = take_columns(names, X)
        return np.column_stack([read_numbers(raw[name]) for name in names])

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _is_table(X: Any) -> bool:
    """Whether X has named columns."""
    if isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names"):
        return True
    if isinstance(X, np.ndarray):
        return X.dtype.names is not None
    return isinstance(X, Sequence) and len(X) > 0 and isinstance(X[0], Mapping)
