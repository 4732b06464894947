"""Released: a digest of the result of a run, which ties a certificate to this result and to no other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...core import checks
from ...core.canonical import canonical
from ...core.errors import CertificateError
from ..facts import RunFacts
from ..sums import planned_rounds

KINDS = ("model", "vectors", "counts", "totals")
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Released:
    """The SHA-256 of the kind, the shapes and the values of a release; values are little-endian float64.

    kind : "model" (coefficients and intercepts), "vectors" (the last vector of every site), "counts", or
        "totals" (all sums that a program received).
    shape : (outputs, features) of a model; (repeats, sites, entries) of vectors; (cells,) of counts;
        (numbers,) of totals.
    """

    kind: str
    shape: tuple[int, ...]
    sha256: str

    def __post_init__(self) -> None:
        checks.choice("released.kind", self.kind, KINDS)
        shape = tuple(checks.whole("released.shape", entry, least=1) for entry in self.shape)
        object.__setattr__(self, "shape", shape)
        if not isinstance(self.sha256, str) or not _SHA256.fullmatch(self.sha256):
            raise CertificateError("the certificate's `released` has no valid SHA-256.")

    @classmethod
    def of(cls, kind: str, *parts: ArrayLike) -> Self:
        """The digest of these values; the first part gives the shape."""
        arrays = [np.ascontiguousarray(part, dtype="<f8") for part in parts]
        sha256 = hashlib.sha256(canonical([kind, [array.shape for array in arrays]]).encode())
        for array in arrays:
            sha256.update(array.tobytes())
        return cls(kind, arrays[0].shape, sha256.hexdigest())

    @classmethod
    def model(cls, coef: ArrayLike, intercept: ArrayLike, whitening: ArrayLike | None = None) -> Self:
        """The digest of a model: `coef` (outputs, features), `intercept` (outputs,), `whitening` or None."""
        more = () if whitening is None else (whitening,)
        return cls.of("model", np.atleast_2d(coef), np.atleast_1d(intercept), *more)

    @classmethod
    def counts(cls, tables: Sequence[ArrayLike]) -> Self:
        """The digest of noisy counts: all tables, one after the other."""
        return cls.of("counts", np.concatenate([np.ravel(table) for table in tables]))

    def to_plain(self) -> dict[str, Any]:
        """The digest as JSON values."""
        return {"kind": self.kind, "shape": list(self.shape), "sha256": self.sha256}


def check_fits(run: RunFacts, rounds: int, released: Released | None) -> None:
    """Raise if a run with these facts cannot release this kind and shape of result after this many rounds."""
    if released is None:
        return
    d, rows = run.dimension // run.loss.classes, run.outputs * run.loss.classes
    if released.kind == "vectors":
        fits = len(released.shape) == 3 and released.shape[1:] == (run.sites, run.dimension)
    elif released.kind == "model":
        fits = released.shape in ((rows, d), (rows, d - 1))  # d - 1 features with an intercept
    else:
        last = dict(zip(planned_rounds(run.sums, run.attempts), run.sums, strict=True))
        fits = not run.moments and released.shape == (sum(entry.length for entry in last.values()),)
    inside = fits and (released.kind == "counts") == run.loss.counting
    inside = inside and (released.kind == "totals") == run.loss.programmed
    if not inside or rounds <= run.moments or run.planned:  # the moments alone do not give a model
        raise CertificateError(
            f"`released` states {released.kind!r} of shape {released.shape}; a release of this kind and "
            "shape does not fit the facts of the run."
        )
