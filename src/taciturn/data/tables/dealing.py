"""Distribute rows over sites: every row goes to exactly one site, at random or by the value of a column.

The `assign_` functions return the site number of each row. The `deal_` functions return the rows of every
site as a list of pairs (X_i, y_i), the input of `taciturn.Problem`. The seed determines a random assignment.
The number of rows of each site is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import checks
from ...core.errors import DataError
from ...rng import SeededStreams

Site = NDArray[np.int64]
Hands = list[tuple[Any, NDArray[Any]]]


def assign_evenly(rows: int, sites: int, *, seed: int) -> Site:
    """A random site for each row; the sizes of the sites differ by at most one."""
    _check_sizes(rows, sites, 1)
    return _shuffle(np.arange(rows, dtype=np.int64) % sites, seed)


def assign_unevenly(rows: int, sites: int, *, seed: int, concentration: float = 1.0, least: int = 1) -> Site:
    """A random site for each row: every site gets `least` rows, and a random share of the remaining rows.

    The shares have the distribution Dirichlet(concentration). A small concentration gives a few large sites
    and many small sites; a large concentration gives sites of almost equal size.
    """
    _check_sizes(rows, sites, checks.whole("least", least, least=1))
    concentration = min(checks.positive("concentration", concentration), 1e12)  # at 1e12 all shares are equal
    draw = SeededStreams(seed).generator(repeat=0, site=0, purpose="deal", t=1)
    sizes = least + _apportion(rows - sites * least, draw.dirichlet(np.full(sites, concentration)))
    return _shuffle(np.repeat(np.arange(sites, dtype=np.int64), sizes), seed)


def assign_by(values: ArrayLike, sites: int | None = None) -> Site:
    """A site for each row, by the value of the row: all rows with the same value go to one site.

    By default there is one site per distinct value, in sorted order. With fewer `sites` than values, the
    values are assigned one after the other, the value with the most rows first. Each goes to the site that
    has the fewest rows at that point.
    """
    column = np.asarray(values)
    if column.ndim != 1 or len(column) == 0:
        raise DataError(f"`values` must be one column with at least one row; got shape {column.shape}.")
    distinct, group, counts = np.unique(column, return_inverse=True, return_counts=True)
    sites = len(distinct) if sites is None else checks.whole("sites", sites, least=1)
    if len(distinct) < sites:
        raise DataError(
            f"`sites` must be at most the number of distinct values, {len(distinct)}; got {sites}: "
            "a site would be left without rows."
        )
    if sites == len(distinct):
        return group.astype(np.int64)
    site_of, load = np.empty(len(distinct), dtype=np.int64), np.zeros(sites, dtype=np.int64)
    for k in np.argsort(-counts, kind="stable"):
        site_of[k] = np.argmin(load)
        load[site_of[k]] += counts[k]
    return site_of[group]


def deal(X: Any, y: ArrayLike, site: ArrayLike, *, sites: int | None = None) -> Hands:
    """[(X_0, y_0), (X_1, y_1), ...]: the rows of each site, in their original order; X is dense or CSR.

    >>> import numpy as np
    >>> hands = deal(np.eye(3), np.array([1.0, -1.0, 1.0]), site=[1, 0, 1])
    >>> [len(y) for X, y in hands]
    [1, 2]
    """
    order = row_numbers(X.shape[0], site, sites)
    target = np.asarray(y)
    if target.shape[:1] != (X.shape[0],):
        raise DataError(f"`y` must have {X.shape[0]} entries, one per row; got shape {target.shape}.")
    return [(X[rows], target[rows]) for rows in order]


def row_numbers(count: int, site: ArrayLike, sites: int | None = None) -> list[NDArray[np.intp]]:
    """For each site, the numbers of its rows, in increasing order."""
    label = np.asarray(site)
    if not label.size or label.dtype.kind not in "iu" or label.shape != (count,) or label.min() < 0:
        raise DataError(f"`site` must give a whole number of at least 0 for each of the {count} rows.")
    sizes = np.bincount(label, minlength=0 if sites is None else checks.whole("sites", sites, least=1))
    if sites is not None and len(sizes) > sites:
        raise DataError(f"`site` must stay below `sites` = {sites}; got {len(sizes) - 1}.")
    if not sizes.all():
        raise DataError(f"every site must have at least one row; site {int(np.argmin(sizes))} has none.")
    return np.split(np.argsort(label, kind="stable"), np.cumsum(sizes)[:-1])


def deal_evenly(X: Any, y: ArrayLike, sites: int, *, seed: int) -> Hands:
    """Distribute the rows at random; the sizes of the sites differ by at most one."""
    return deal(X, y, assign_evenly(X.shape[0], sites, seed=seed))


def deal_unevenly(
    X: Any, y: ArrayLike, sites: int, *, seed: int, concentration: float = 1.0, least: int = 1
) -> Hands:
    """Distribute the rows at random, in unequal numbers; `assign_unevenly` explains the parameters."""
    site = assign_unevenly(X.shape[0], sites, seed=seed, concentration=concentration, least=least)
    return deal(X, y, site)


def deal_by(X: Any, y: ArrayLike, values: ArrayLike, sites: int | None = None) -> Hands:
    """Distribute the rows by the values of a column (not IID): rows with the same value go to one site."""
    return deal(X, y, assign_by(values, sites))


def _check_sizes(rows: int, sites: int, least: int) -> None:
    rows, sites = checks.whole("rows", rows, least=1), checks.whole("sites", sites, least=1)
    if sites * least > rows:
        raise DataError(
            f"`sites` must be at most {rows // least}: {rows} rows, at least {least} per site; got {sites}."
        )


def _shuffle(site: Site, seed: int) -> Site:
    draw = SeededStreams(seed).generator(repeat=0, site=0, purpose="deal", t=0)
    return np.asarray(site[draw.permutation(len(site))])


def _apportion(rows: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers that are about proportional to the shares and add up to `rows` (largest remainders)."""
    exact = rows * shares / shares.sum()
    sizes: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    left = rows - int(sizes.sum())
    sizes[np.argsort(sizes - exact, kind="stable")[:left]] += 1
    return sizes
