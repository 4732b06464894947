"""LoadedModel: what `load_model` gives: encoder, model and certificate, as one scikit-learn pipeline."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from .. import checks
from ..errors import CertificateError, DataError, TaciturnWarning
from ..privacy.certificate.certificate import Certificate

UNREADABLE = ("nan", "raise", "zeros")


Answer = Callable[..., Any]


def _can(name: str) -> Callable[[Answer], Answer]:
    """A method that is there only if the estimator has it."""
    made: Callable[[Answer], Answer] = available_if(lambda self: hasattr(self[-1], name))
    return made


class LoadedModel(Pipeline):  # type: ignore[misc]
    """The table that `taciturn predict` takes -> predictions: an encoder, then the fitted estimator.

    A record with a value that is missing or cannot be read says nothing, and what the model would say of it
    is what it says of nobody. `unreadable` says what is given for such a record:

    - "nan": no answer, None for a class, NaN for a number, a score or a probability;
    - "raise": an error that says how many there are;
    - "zeros": what the model says of a row of zeros, as in training.

    `unreadable_rows(X)` is the mask of these records, `unread_columns(X)` names the columns that could
    not be read, of each record. `certificate_` is the certificate of the fit, verified; None where
    the file has none.
    """

    certificate_: Certificate | None = None

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        *,
        unreadable: str = "nan",
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.unreadable = unreadable

    def unreadable_rows(self, X: Any) -> NDArray[np.bool_]:
        """Which records have a value that is missing or cannot be read, and so say nothing."""
        return np.asarray(self[0].unreadable(X))

    def unread_columns(self, X: Any) -> list[tuple[str, ...]]:
        """Of each record the columns that are missing, cannot be read or hold an undeclared category."""
        names = self[0].column_names
        cells = self[0].unread_cells(X)
        read = ~cells.any(axis=1)
        return [
            () if whole else tuple(name for name, bad in zip(names, row, strict=True) if bad)
            for whole, row in zip(read.tolist(), cells.tolist(), strict=True)
        ]

    def predict(self, X: Any, **params: Any) -> Any:
        """The class or the number of every record."""
        return self._answered(X, super().predict(X, **params))

    @_can("predict_proba")
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """The probability of every class, (records, classes)."""
        return self._answered(X, super().predict_proba(X, **params))

    @_can("predict_proba")
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """The logarithm of the probability of every class, (records, classes)."""
        return self._answered(X, np.log(super().predict_proba(X, **params)))

    @_can("decision_function")
    def decision_function(self, X: Any, **params: Any) -> Any:
        """The score of every record; of every class where there are more than two."""
        return self._answered(X, super().decision_function(X, **params))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Accuracy, or R squared; records that cannot be read are left out, with a warning."""
        bad = self._unanswered(X)
        if bad.any():
            warnings.warn(
                f"{int(bad.sum())} of {len(bad)} records cannot be read and are left out of the score.",
                TaciturnWarning,
                stacklevel=2,
            )
        weight = np.ones(len(bad)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return float(super().score(X, y, sample_weight=np.where(bad, 0.0, weight), **params))

    def _answered(self, X: Any, found: Any) -> Any:
        bad = self._unanswered(X)
        if not bad.any():
            return found
        if found.dtype.kind == "f":
            found = found.copy()
            found[bad] = np.nan
            return found
        given = found.astype(object)
        given[bad] = None
        return given

    def _unanswered(self, X: Any) -> NDArray[np.bool_]:
        """The records that get no answer."""
        checks.choice("unreadable", self.unreadable, UNREADABLE)
        bad = self.unreadable_rows(X)
        if self.unreadable == "raise" and bad.any():
            raise DataError(
                f"{int(bad.sum())} of {len(bad)} records have a value that is missing or cannot be read; "
                '`unreadable_rows(X)` says which. unreadable="nan" gives no answer for them.'
            )
        return np.zeros_like(bad) if self.unreadable == "zeros" else bad


def find_certificate(path: Path, stated: dict[str, Any] | str | None) -> Certificate | None:
    """The certificate in a model file, or in certificate.json beside it if it is this model's; verified."""
    if isinstance(stated, dict):
        return _verified(json.dumps(stated), path)
    beside = path.with_name("certificate.json")
    if not beside.is_file():
        return None
    data = beside.read_bytes()
    named = stated if stated is not None else _signed_for(path)
    if named != hashlib.sha256(data).hexdigest():
        warnings.warn(
            f"{beside}: is not the certificate that {path.name} names, and is left out.",
            TaciturnWarning,
            stacklevel=3,
        )
        return None
    return _verified(data.decode("utf-8", "replace"), beside)


def _signed_for(path: Path) -> str | None:
    """In the folder of a network's site: the certificate that the site signed together with this model."""
    try:
        files = json.loads(path.with_name("statement.json").read_text(encoding="utf-8"))["statement"]["files"]
        same = files[path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
        return str(files["certificate.json"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _verified(text: str, path: Path) -> Certificate:
    try:
        certificate = Certificate.from_json(text)
        certificate.verify()
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from error
    return certificate
