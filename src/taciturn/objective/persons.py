"""Row weights for a privacy guarantee about persons: the weights of all rows of a person add up to 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import DataError
from ..core.types import Array


@dataclass(frozen=True, eq=False)
class Persons:
    """The persons to whom the rows of all sites belong.

    weights : for each site, one number per row: 1/m, where m counts the rows of the same person at all sites.
    counts : for each site, the public number of persons who have rows at the site.
    total : the number of persons at all sites together.
    most_rows, most_sites : public upper bounds on the number of rows of a person, and on the number of sites
        at which a person has rows. most_rows = None allows any number of rows.
    """

    weights: tuple[Array, ...]
    counts: NDArray[np.int64]
    total: int
    most_rows: int | None = None
    most_sites: int = 1


def persons_of(ids: Sequence[Any], *, most_rows: int | None = None, most_sites: int = 1) -> Persons:
    """The persons of the rows. `ids` has one array per site, with a person's id for each row of the site.

    Equal ids mean the same person.

    >>> persons_of([["ann", "bob", "ann"], ["cem"]]).weights[0].tolist()
    [0.5, 1.0, 0.5]
    """
    columns = [_column(values, i) for i, values in enumerate(ids)]
    if not columns:
        raise DataError("`persons` must contain one array of ids per site; got none.")
    if len({column.dtype.kind in "iu" for column in columns}) > 1:
        raise DataError("`persons` must be numbers at every site, or texts at every site.")
    everyone, number = np.unique(np.concatenate(columns), return_inverse=True)
    rows = np.bincount(number, minlength=len(everyone))
    pieces = np.split(number, np.cumsum([len(column) for column in columns])[:-1])
    places = np.zeros(len(everyone), dtype=np.int64)
    for piece in pieces:
        places[np.unique(piece)] += 1
    _check_most("rows_per_person", most_rows, int(rows.max()), "rows")
    _check_most("sites_per_person", most_sites, int(places.max()), "sites")
    return Persons(
        weights=tuple(1.0 / rows[piece] for piece in pieces),
        counts=np.array([len(np.unique(piece)) for piece in pieces], dtype=np.int64),
        total=len(everyone),
        most_rows=most_rows,
        most_sites=most_sites,
    )


def _column(values: Any, i: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.ndim != 1 or column.size == 0:
        raise DataError(f"`persons` of site {i} must be one id per row; got shape {column.shape}.")
    if column.dtype.kind == "O":
        if len({str if isinstance(one, str) else type(one) for one in column}) > 1:
            raise DataError(
                f"`persons` of site {i} must be ids of one type; some are missing or differ in type."
            )
        column = column.astype(str)
    if column.dtype.kind not in "iuUS":
        raise DataError(f"`persons` of site {i} must be whole numbers or texts; got dtype {column.dtype}.")
    return column


def _check_most(name: str, most: int | None, found: int, what: str) -> None:
    if most is not None and found > checks.whole(name, most, least=1):
        raise DataError(
            f"`{name}` must be at least the largest number of {what} of a person; {most} is too small."
        )
