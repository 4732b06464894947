"""Assign every row of a table to a site: by a column of site labels, or at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import DataError
from ..graph import Graph
from ..rng import streams_of


@dataclass(frozen=True)
class SiteAssignment:
    """The site of every row, the names and the graph of the sites, and the person of every row, if given."""

    site: NDArray[np.int64]
    names: tuple[str, ...]
    graph: Graph
    person: NDArray[np.int64] | None = None

    @property
    def samples(self) -> list[int]:
        """B_i: the number of rows of every site, or of persons if `person` is given."""
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

    Without a seed the random assignment is secret. All rows of a person go to one site; `labels` that put
    them at different sites are refused.
    """
    whose = None if person is None else _persons_by_id(rows, person)
    if labels is None:
        units = rows if whose is None else int(whose.max()) + 1
        site, names = _deal_rows(units, checks.whole("sites", sites, least=least), seed)
        site = site if whose is None else site[whose]
    else:
        site, names = _sites_by_label(rows, labels)
        if whose is not None and len(np.unique(np.stack([whose, site]), axis=1).T) > whose.max() + 1:
            raise DataError("`person` and `site` must agree: all rows of a person must be at one site.")
    return SiteAssignment(site, names, Graph.of(graph, len(names)), whose)


def _persons_by_id(rows: int, person: Any) -> NDArray[np.int64]:
    """The number of each row's person."""
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


def _deal_rows(rows: int, sites: int, seed: int | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if rows < sites:
        raise DataError(
            f"`sites` must be at most the number of rows or persons; got {sites} with n_samples = {rows}."
        )
    draw = streams_of(seed).generator(repeat=0, site=0, purpose="deal", t=0)
    site = draw.permutation(np.arange(rows, dtype=np.int64) % sites)
    return np.asarray(site), tuple(f"site {i}" for i in range(sites))


def _sites_by_label(rows: int, labels: Any) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    given = _one_per_row("site", labels, rows, "the site")
    found, numbers = np.unique(given, return_inverse=True)
    words = given.dtype.kind in "OU"
    names = tuple(str(name) if words else f"site {name}" for name in found.tolist())
    return np.asarray(numbers, dtype=np.int64), names
