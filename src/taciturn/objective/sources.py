"""SourcedProblem: a problem in which each site has its own source of rows, a file or a function.

The process that works for a site loads the rows of this site.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property
from os import PathLike, fspath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core import checks
from ..core.errors import DataError
from ..core.files import DAMAGED_NPZ
from .local import LocalObjective
from .losses import Logistic, Loss
from .persons import Persons
from .problem import Problem, check_unit_rows, common_dimension
from .regularizers import L2, Regularizer

Source = str | PathLike[str] | Callable[[], tuple[Any, Any]]
"""The path of an .npz file that `save_site` wrote, or a function () -> (X, y)."""


class Size(NamedTuple):
    """Facts about a site's rows: B_i, d, max ||x||, and the SHA-256 of the rows if requested."""

    samples: int
    dimension: int
    largest_norm: float
    digest: str = ""


class SourcedProblem:
    """Regularised empirical risk over several sites; each site's rows are loaded from its source.

    Only the process that calls `site(i)` holds the rows of site i. On a cluster, this is the worker that runs
    the site, so the memory of the driver does not grow with the rows.

    Parameters
    ----------
    sources : for each site the path of an .npz file that `save_site` wrote, or a function () -> (X, y)
    C, regularization, loss, regularizer : as in `Problem`

    >>> import numpy as np
    >>> def rows():
    ...     return np.eye(2), np.array([1.0, -1.0])
    >>> problem = SourcedProblem([rows, rows], C=1.0, regularization=0.1)
    >>> problem.n, problem.site(1).samples
    (2, 2)
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        C: float,
        regularization: float,
        loss: Loss | None = None,
        regularizer: Regularizer | None = None,
    ) -> None:
        self.sources = tuple(sources)
        if not self.sources:
            raise DataError("`sources` must contain one source per site; got none.")
        self.loss: Loss = Logistic() if loss is None else loss
        self.regularizer: Regularizer = L2() if regularizer is None else regularizer
        self.C = checks.positive("C", C)
        self.regularization = checks.positive("regularization", regularization)
        self._sizes: tuple[Size, ...] = ()
        self.persons: Persons | None = None  # sources have no persons' ids

    @property
    def n(self) -> int:
        """N, the number of sites."""
        return len(self.sources)

    @cached_property
    def samples(self) -> NDArray[np.int64]:
        """B_i, the number of samples of every site."""
        samples = np.array([size.samples for size in self.sizes], dtype=np.int64)
        samples.flags.writeable = False
        return samples

    @property
    def dimension(self) -> int:
        """d, the number of features."""
        return self.sizes[0].dimension

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The size of every site. Raise an error if the sources have not been read."""
        if not self._sizes:
            raise DataError("the sources have not been read yet; `taciturn.simulate` reads them.")
        return self._sizes

    @property
    def unread(self) -> bool:
        """Whether the sources have not been read yet."""
        return not self._sizes

    @property
    def terms(self) -> dict[str, Any]:
        """The parameters that all sites have in common, as arguments of `LocalObjective`."""
        names = ("loss", "C", "regularization", "regularizer")
        return {"sites": self.n} | {name: getattr(self, name) for name in names}

    def site(self, i: int) -> LocalObjective:
        """Load the rows of site i and return its objective O_i."""
        return open_site(self.sources[i], i, **self.terms)

    def with_sizes(self, sizes: Sequence[Size]) -> SourcedProblem:
        """A copy of the problem with the sizes of its sites, as `survey` returns them."""
        common_dimension([size.dimension for size in sizes])
        problem = copy(self)
        problem.__dict__.pop("samples", None)
        problem._sizes = tuple(sizes)
        return problem

    def load(self) -> Problem:
        """Load all rows into this process, and return the problem as a `Problem`."""
        sites = [_read(source, i) for i, source in enumerate(self.sources)]
        return Problem(**(self.terms | {"sites": sites}))

    def require_unit_rows(self) -> None:
        """Raise an error unless every row has ||x|| <= 1, which the privacy bounds need."""
        check_unit_rows([size.largest_norm for size in self.sizes])

    def __repr__(self) -> str:
        return f"SourcedProblem({self.n} sites, {self.loss!r}, C={self.C:g})"


def open_site(source: Source, i: int, **terms: Any) -> LocalObjective:
    """Load the rows of site i and return its objective O_i; `terms` comes from `SourcedProblem.terms`."""
    X, y = _read(source, i)
    return LocalObjective(X, y, name=f"site {i}", **terms)


def survey(objectives: Iterable[LocalObjective], *, digest: bool = False) -> list[Size]:
    """The `Size` of every loaded site; with `digest`, it includes the SHA-256 of the site's rows."""
    return [Size(o.samples, o.dimension, o.largest_norm, _digest(o) if digest else "") for o in objectives]


def save_site(path: str | PathLike[str], X: Any, y: Any) -> None:
    """Write a site's rows, dense or sparse, as an .npz file (without pickle) that `SourcedProblem` reads."""
    if sparse.issparse(X):
        matrix: Any = X
        csr = sparse.csr_array(matrix)
        shape = np.array(csr.shape)
        np.savez(path, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=shape, y=np.asarray(y))
    else:
        np.savez(path, X=np.asarray(X), y=np.asarray(y))


def _read(source: Source, i: int) -> tuple[Any, Any]:
    if callable(source):
        pair = source()
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise DataError(f"`sources[{i}]` must return a pair (X, y); got {type(pair).__name__}.")
        return pair
    try:
        with open(source, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            if "X" in file:
                return file["X"], file["y"]
            shape = tuple(file["shape"].tolist())
            return sparse.csr_array((file["data"], file["indices"], file["indptr"]), shape=shape), file["y"]
    except (OSError, TypeError, *DAMAGED_NPZ) as error:
        raise DataError(
            f"`sources[{i}]` must be an .npz file with X and y, or data, indices, indptr, shape and y; "
            f"got {fspath(source)!r} ({type(error).__name__})."
        ) from error


def _digest(objective: LocalObjective) -> str:
    """The SHA-256 of the arrays in which a site's rows are stored."""
    digest = hashlib.sha256()
    for part in objective.parts:
        Z, offset = part.rows.matrix, part.rows.offset
        arrays = [Z] if isinstance(Z, np.ndarray) else [Z.data, Z.indices, Z.indptr]
        for array in arrays if offset is None else [*arrays, offset]:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
