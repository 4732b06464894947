"""Distribute rows over sites: every row goes to exactly one site, at random or by the value of a column.

The `assign_` functions return the site of each row; `assign_sites` also returns the names and the graph of
the sites. The `deal_` functions return the rows of every site as a list of pairs (X_i, y_i), the input of
`taciturn.Problem`. The seed determines a random assignment. The number of rows of each site is public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core import checks
from ...core.errors import DataError
from ...graph import Graph
from ...rng import SeededStreams, streams_of

Site = NDArray[np.int64]
Hands = list[tuple[Any, NDArray[Any]]]  # the rows (X_i, y_i) of every site


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
        raise DataError(f"`site` must contain numbers below `sites` = {sites}; got {len(sizes) - 1}.")
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
    """Distribute the rows by the values of a column, not at random: equal values go to the same site."""
    return deal(X, y, assign_by(values, sites))


@dataclass(frozen=True)
class SiteAssignment:
    """The site of every row, the names and the graph of the sites, and the person of every row, if given."""

    site: NDArray[np.int64]
    names: tuple[str, ...]
    graph: Graph
    person: NDArray[np.int64] | None = None

    @property
    def samples(self) -> list[int]:
        """B_i for every site: the number of its rows, or of its persons if `person` is given."""
        if self.person is not None:
            return [len(np.unique(ids)) for ids in self.ids or ()]
        return [int(count) for count in np.bincount(self.site, minlength=self.graph.n)]

    @property
    def ids(self) -> list[NDArray[np.int64]] | None:
        """For each site, the person of each of its rows; None if persons are not given."""
        return self.by_site(self.person)

    def by_site(self, values: NDArray[Any] | None) -> list[NDArray[Any]] | None:
        """Values with one entry per row, split into one array for each site, in the order of the rows."""
        return None if values is None else [values[self.site == i] for i in range(self.graph.n)]


def assign_sites(
    rows: int, labels: Any, sites: Any, graph: Any, seed: int | None, person: Any = None, least: int = 2
) -> SiteAssignment:
    """Assign rows to sites: by `labels` if given, else at random to `sites` sites.

    Without a seed the random assignment is secret. All rows of a person go to one site; if the labels name
    different sites for a person, an error is raised. `least` is the smallest allowed number of sites.
    """
    whose = None if person is None else _persons_by_id(rows, person)
    if labels is None:
        units = rows if whose is None else int(whose.max()) + 1
        if units < checks.whole("sites", sites, least=least):
            raise DataError(
                "`sites` must be at most the number of rows or persons; "
                f"got {sites} with n_samples = {units}."
            )
        site = _shuffle(np.arange(units, dtype=np.int64) % sites, seed)
        site, names = site if whose is None else site[whose], tuple(f"site {i}" for i in range(sites))
    else:
        site, names = _sites_by_label(rows, labels)
        if whose is not None and len(np.unique(np.stack([whose, site]), axis=1).T) > whose.max() + 1:
            raise DataError("`person` and `site` must agree: all rows of a person must be at one site.")
    return SiteAssignment(site, names, Graph.of(graph, len(names)), whose)


def _persons_by_id(rows: int, person: Any) -> NDArray[np.int64]:
    """For each row, the number of its person: 0, 1, ..., in the order of the sorted ids."""
    given = _one_per_row("person", person, rows, "a person's id")
    return np.asarray(np.unique(given, return_inverse=True)[1], dtype=np.int64)


def _one_per_row(name: str, values: Any, rows: int, what: str) -> NDArray[Any]:
    """The values as an array with one entry per row, all of one type; other values raise an error."""
    given = np.asarray(values)
    if given.shape != (rows,):
        raise DataError(f"`{name}` must give {what} for each of {rows} rows; got shape {given.shape}.")
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise DataError(f"`{name}` must give {what} for every row; some entries are missing.")
    if given.dtype.kind == "O" and len({type(one) for one in given}) > 1:
        raise DataError(f"`{name}` must contain values of one type; got several types, or missing values.")
    return given


def _sites_by_label(rows: int, labels: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    given = _one_per_row("site", labels, rows, "the site")
    found, numbers = np.unique(given, return_inverse=True)
    words = given.dtype.kind in "OU"
    names = tuple(str(name) if words else f"site {name}" for name in found.tolist())
    return np.asarray(numbers, dtype=np.int64), names


def _check_sizes(rows: int, sites: int, least: int) -> None:
    rows, sites = checks.whole("rows", rows, least=1), checks.whole("sites", sites, least=1)
    if sites * least > rows:
        raise DataError(
            f"`sites` must be at most {rows // least}, so that each site gets at least {least} of the {rows} "
            f"rows; got {sites}."
        )


def _shuffle(site: Site, seed: int | None) -> Site:
    """The sites in random order: reproducible with a seed, and secret without a seed."""
    draw = streams_of(seed).generator(repeat=0, site=0, purpose="deal", t=0)
    return np.asarray(site[draw.permutation(len(site))])


def _apportion(rows: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers that are about proportional to the shares and add up to `rows` (largest remainders)."""
    exact = rows * shares / shares.sum()
    sizes: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    left = rows - int(sizes.sum())
    sizes[np.argsort(sizes - exact, kind="stable")[:left]] += 1
    return sizes
