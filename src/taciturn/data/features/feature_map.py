"""FeatureMap: a scikit-learn transformer that turns the columns of an array into curves and surfaces.

A curve is a flexible function of one numeric column, and surfaces are random cosines of all numeric columns
(see expansion.py). The map depends on public ranges alone, never on the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ...core.errors import DataError, ParameterError
from ...core.types import Array, LazyRows
from ..tables.column_parsing import read_numbers
from ..tables.column_types import Number
from ..tables.encoder import bound_rows, unit_numbers
from ..tables.table_inputs import take_columns
from .blind_choice import choose_map
from .expansion import Expansion
from .mapped_rows import Columns, MappedRows

AUTO = "auto"


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureMap(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Maps a row x to curves and surfaces, with norm at most 1; a linear model of them is nonlinear in x.

    The public parameters determine the map, and `fit` learns nothing from rows. So the privacy bounds of a
    model that is trained on the mapped rows do not change. Values outside their range are clipped to the
    range. A missing number (NaN) is marked in an extra column, so no row is lost.

    Parameters
    ----------
    ranges : the PUBLIC range (low, high) of each numeric column, keyed by the column's index, or by its name
        if X is a table; (low, high, "log") for a column in which most values are near low.
    groups : lists of columns that together are a one-hot encoding, such as [[3, 4, 5]]; a 0/1 column is a
        group of one.
    curves : the number of knots of the curve of each numeric column. A curve consists of the column itself
        and hat functions at equally spaced knots. 0 gives straight lines; "auto" chooses the number from `n`,
        `epsilon`, `delta` and the number of columns.
    surfaces : the number of cosines of all numeric columns together, which represent interactions. 0 gives no
        surfaces; "auto" chooses the number.
    seed : the public seed of the surfaces.
    lazy : True lets `transform` return the rows as a `LazyRows`, which the estimators of this package expand
        a few rows at a time. Then a fit of many rows takes less memory and more time, and gives the same
        model.
    n, epsilon, delta : for "auto": the number of records (or persons) in the WHOLE network, and the budget of
        the fit. These numbers are public, so every site makes the same choice.

    Examples
    --------
    >>> FeatureMap(ranges={0: (0, 10)}, curves=3, surfaces=0).transform([[5.0], [np.nan]]).round(3)
    array([[0.   , 0.   , 0.837, 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.   , 1.   ]])
    >>> FeatureMap(ranges={0: (0, 10)}, n=50_000, epsilon=1.0).chosen
    (9, 100)
    """

    ranges: Mapping[Any, tuple[Any, ...]] | None = None
    groups: Sequence[Sequence[Any]] = ()
    curves: int | str = AUTO
    surfaces: int | str = AUTO
    seed: int = 0
    n: int | None = None
    epsilon: float | None = None
    delta: float = 1e-5
    lazy: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and the columns; no value of X is read."""
        numbers, groups = self._numbers(), self._groups()
        found = self._columns(X, [*numbers, *(key for group in groups for key in group)])
        self._expansion()
        self.n_features_in_ = len(found)
        return self

    def transform(self, X: Any) -> Any:
        """One expanded row for each row of X, in the order of X: as an array, or as `LazyRows` if `lazy`."""
        rows = self.lazy_rows(X)
        return rows if self.lazy else np.asarray(rows)

    def lazy_rows(self, X: Any) -> LazyRows:
        """The expanded rows, computed when they are needed."""
        numbers, groups, expansion = self._numbers(), self._groups(), self._expansion()
        found = self._columns(X, [*numbers, *(key for group in groups for key in group)])
        width = expansion.width(len(numbers)) + sum(map(len, groups))
        expand = partial(_expand, numbers, groups, expansion)
        return MappedRows(found, expand, (len(next(iter(found.values()))), width))

    @property
    def chosen(self) -> tuple[int, int]:
        """(curves, surfaces): as given, or chosen from `n`, `epsilon`, `delta` and the number of columns."""
        given = self.curves, self.surfaces
        if AUTO not in given:
            return given  # type: ignore[return-value]
        if self.n is None or self.epsilon is None:
            lacks = "n" if self.n is None else "epsilon"
            raise ParameterError(
                f'`{lacks}` must be given for curves or surfaces = "auto": the choice depends on n, the '
                "number of records in the whole network, and on epsilon. Or give `curves` and `surfaces` as "
                "numbers."
            )
        numbers, others = len(self._numbers()), sum(map(len, self._groups()))
        auto = choose_map(self.n, self.epsilon, self.delta, numbers=numbers, others=others)
        curves, surfaces = (b if a == AUTO else a for a, b in zip(given, auto, strict=True))
        return curves, surfaces  # type: ignore[return-value]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of all columns: `x0`, `x0@1` (its first knot), `x0?` (missing), groups, `surface 1`."""
        names = [self._name(key, input_features) for key in self._numbers()]
        groups = [[self._name(key, input_features) for key in group] for group in self._groups()]
        return np.array(self._expansion().names(names, groups), dtype=object)

    def _name(self, key: Any, given: Any) -> str:
        if isinstance(key, str):
            return key
        return f"x{key}" if given is None else str(given[key])

    def _expansion(self) -> Expansion:
        curves, surfaces = self.chosen
        return Expansion(curves, surfaces, self.seed)

    def _numbers(self) -> dict[Any, Number]:
        """The numeric columns with their public ranges."""
        if not isinstance(self.ranges, Mapping):
            raise ParameterError(
                "`ranges` must give the public range of each numeric column, such as {0: (0, 1)}."
            )
        return {key: _field(key, entry) for key, entry in self.ranges.items()}

    def _groups(self) -> list[list[Any]]:
        if not isinstance(self.groups, list | tuple) or not all(
            isinstance(group, list | tuple) and group for group in self.groups
        ):
            raise ParameterError(
                "`groups` must list the columns of each one-hot encoding, such as [[3, 4, 5]]."
            )
        return [list(group) for group in self.groups]

    def _columns(self, X: Any, keys: list[Any]) -> dict[Any, Array]:
        """All columns of X as floats, NaN if not numeric. Raise an error unless `keys` names every column."""
        if not keys or len(set(keys)) < len(keys):
            found = f"{max(keys, key=keys.count)!r} is in them twice" if keys else "both are empty"
            raise ParameterError(f"`ranges` and `groups` must contain each column of X once; {found}.")
        named = hasattr(X, "columns") or isinstance(X, Mapping)
        names = [str(name) for name in (X if isinstance(X, Mapping) else X.columns)] if named else []
        if named and all(isinstance(key, str) for key in keys):
            _check_covered(keys, names)
            return {key: read_numbers(column) for key, column in take_columns(tuple(keys), X).items()}
        if hasattr(X, "toarray"):
            raise DataError("`X` must be dense; got a sparse matrix.")
        table = X.to_numpy() if named and hasattr(X, "to_numpy") else np.asarray(X)
        if table.ndim != 2:
            raise DataError(f"`X` must be two-dimensional; got {table.ndim} dimension(s). Reshape your data.")
        _check_covered(keys, list(range(table.shape[1])))
        return {key: read_numbers(table[:, key]) for key in keys}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # only the parameters are needed
        tags.input_tags.allow_nan = True
        return tags


def _expand(
    numbers: Mapping[Any, Number], groups: list[list[Any]], expansion: Expansion, found: Columns
) -> Array:
    """Expand some records, given as columns, into rows."""
    units = [unit_numbers(field, found[key]) for key, field in numbers.items()]
    rows = len(next(iter(found.values())))
    flags = [np.column_stack([np.clip(np.nan_to_num(found[key]), 0.0, 1.0) for key in g]) for g in groups]
    blocks = [bound_rows(block, bound=1.0, how="clip", worst=1.0) for block in flags]
    Z = expansion.rows(np.column_stack(units) if units else np.zeros((rows, 0)), blocks)
    return bound_rows(Z, bound=1.0, how="clip", worst=1.0)


def _field(key: Any, entry: Any) -> Number:
    """The field for an entry of `ranges`. An entry that is not a range raises an error."""
    listed = list(entry) if isinstance(entry, list | tuple) else []
    if len(listed) not in (2, 3) or listed[2:] not in ([], ["log"]):
        raise ParameterError(f'`ranges[{key!r}]` must be (low, high) or (low, high, "log").')
    return Number(f"ranges[{key!r}]", listed[0], listed[1], log=len(listed) == 3)


def _check_covered(keys: Sequence[Any], columns: Sequence[Any]) -> None:
    """Raise an error unless `ranges` and `groups` together name every column of X, and no other column."""
    for key in columns:
        if key not in keys:
            raise ParameterError(
                f"`ranges` and `groups` must cover every column of X; column {key!r} is in neither."
            )
    for key in keys:
        if key not in columns:
            raise ParameterError(f"`ranges` and `groups` name the column {key!r}, which X does not have.")
