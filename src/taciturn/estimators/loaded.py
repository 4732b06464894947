"""LoadedModel, the result of `load_model`: a scikit-learn pipeline with the certificate of its training.

The pipeline consists of the encoder, which turns a table into rows of numbers, and the fitted estimator. The
certificate states the privacy cost of the training.
"""

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

from ..core import checks
from ..core.errors import CertificateError, DataError, ParameterError, TaciturnWarning
from ..core.notebook import Picture
from ..data.model_file import ModelFile
from ..data.tables.encoder import BoundedEncoder
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.released import Released
from .additive.curves import EffectCurve, curve_names, is_additive, plot_curves, read_curve

UNREADABLE = ("nan", "raise", "zeros")


Answer = Callable[..., Any]


def _can(name: str) -> Callable[[Answer], Answer]:
    """A decorator: the decorated method exists only if the pipeline's estimator has a method `name`."""
    made: Callable[[Answer], Answer] = available_if(lambda self: hasattr(self[-1], name))
    return made


class LoadedModel(Pipeline):  # type: ignore[misc]
    """A pipeline of an encoder and a fitted estimator. It accepts the same tables as `taciturn predict`.

    The setting `missing` of the encoder decides which records are unreadable. With "row", a record is
    unreadable if at least one value is missing or cannot be read. With any other setting, such as the default
    with curves, a record is unreadable only if all values are missing or cannot be read. The parameter
    `unreadable` sets what an unreadable record gets:

    - "nan": no prediction: None for a class, NaN for a number, a score or a probability;
    - "raise": an error with the number of such records;
    - "zeros": the prediction for a row of zeros, as in training.

    `unreadable_rows(X)` is a mask of these records. `unread_columns(X)` lists, for each record, the columns
    that could not be read. `certificate_` is the verified certificate of the fit; None if there is none.
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
        """A mask of the unreadable records, to which the parameter `unreadable` applies."""
        return np.asarray(self[0].unreadable(X))

    def unread_columns(self, X: Any) -> list[tuple[str, ...]]:
        """For each record, the columns that are missing, cannot be read or contain an undeclared category."""
        names = self[0].column_names
        cells = self[0].unread_cells(X)
        read = ~cells.any(axis=1)
        return [
            () if whole else tuple(name for name, bad in zip(names, row, strict=True) if bad)
            for whole, row in zip(read.tolist(), cells.tolist(), strict=True)
        ]

    def predict(self, X: Any, **params: Any) -> Any:
        """The predicted class or number of every record."""
        return self._answered(X, super().predict(X, **params))

    @_can("predict_proba")
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """The probability of every class, (records, classes)."""
        return self._answered(X, super().predict_proba(X, **params))

    @_can("predict_proba")
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """The logarithm of the probability of every class, (records, classes)."""
        return self._answered(X, super().predict_log_proba(X, **params))

    @_can("decision_function")
    def decision_function(self, X: Any, **params: Any) -> Any:
        """The score of every record; with more than two classes, the score of every record and class."""
        return self._answered(X, super().decision_function(X, **params))

    def personalise(self, X_own: Any, y_own: Any) -> LoadedModel:
        """This model, adapted to the rows of one site; see `PrivateLogisticRegression.personalise`.

        Keep the adapted model, and all its scores, at the site.
        """
        steps = [self.steps[0], (self.steps[-1][0], self[-1].personalise(self[0].transform(X_own), y_own))]
        return LoadedModel(steps, unreadable=self.unreadable)

    def curve(self, name: str) -> EffectCurve:
        """The effect of a column on the score. The model must consist of curves (`has_curves`)."""
        scale = "score" if hasattr(self[-1], "decision_function") else "target"
        scale = "log-odds" if hasattr(self[-1], "predict_proba") else scale
        return read_curve(self._encoder(), np.atleast_2d(self[-1].coef_), name, f"effect on the {scale}")

    def plot(self) -> Picture:
        """All curves of a model with curves, on one page of small panels."""
        curves = [self.curve(name) for name in curve_names(self._encoder())]
        return plot_curves(curves, getattr(self[-1], "classes_", ()), "")

    @property
    def has_curves(self) -> bool:
        """Whether the model consists of curves, so that `curve` and `plot` work."""
        encoder = self[0]
        return isinstance(encoder, BoundedEncoder) and is_additive(encoder)

    def _encoder(self) -> BoundedEncoder:
        if not isinstance(self[0], BoundedEncoder) or not self[0].curves:
            raise ParameterError("`curve` and `plot` need a model with curves; this model has none.")
        return self[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Accuracy (R squared for a regression). Records without a prediction are ignored, with a warning."""
        bad = self._unanswered(X)
        if bad.all():
            raise DataError(f"`X` must have at least one readable record; got {len(bad)} unreadable records.")
        if bad.any():
            warnings.warn(
                f"{int(bad.sum())} of {len(bad)} records cannot be read; the score ignores them.",
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
        """The records that get no prediction."""
        checks.choice("unreadable", self.unreadable, UNREADABLE)
        bad = self.unreadable_rows(X)
        if self.unreadable == "raise" and bad.any():
            raise DataError(
                f"{int(bad.sum())} of {len(bad)} records cannot be read; `unreadable_rows(X)` shows which. "
                'With unreadable="nan", these records get no prediction.'
            )
        return np.zeros_like(bad) if self.unreadable == "zeros" else bad


def find_certificate(path: Path, model: ModelFile) -> Certificate | None:
    """The verified certificate of a model: from the model file, or from certificate.json in its folder."""
    stated = model.certificate
    if model.personal is not None:
        return None
    if isinstance(stated, dict):
        return _verified(json.dumps(stated), path, model)
    beside = path.with_name("certificate.json")
    if not beside.is_file():
        return None
    data = beside.read_bytes()
    named = stated if stated is not None else _signed_for(path)
    if named != hashlib.sha256(data).hexdigest():
        warnings.warn(
            f"{beside}: this certificate is not the one that {path.name} names, so it is ignored.",
            TaciturnWarning,
            stacklevel=3,
        )
        return None
    return _verified(data.decode("utf-8", "replace"), beside, model)


def _signed_for(path: Path) -> str | None:
    """The SHA-256 of the certificate that a site signed together with this model; None if no site did."""
    try:
        files = json.loads(path.with_name("statement.json").read_text(encoding="utf-8"))["statement"]["files"]
        same = files[path.name] == hashlib.sha256(path.read_bytes()).hexdigest()
        return str(files["certificate.json"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _verified(text: str, path: Path, model: ModelFile) -> Certificate | None:
    """The certificate of a model; None if it is the certificate of a site that added nothing to the model."""
    try:
        certificate = Certificate.from_json(text)
        certificate.check()
        added = certificate.rounds > certificate.run.moments  # moments alone do not lead to a model
        if certificate.released is None and certificate.form > 1 and not added:
            warnings.warn(f"{path}: this site added nothing to the model.", TaciturnWarning, stacklevel=4)
            return None
        check_model(certificate, model)
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from error
    for note in certificate.notes:
        warnings.warn(f"{path}: {note}", TaciturnWarning, stacklevel=4)
    return certificate


def check_model(certificate: Certificate, model: ModelFile) -> None:
    """Raise `CertificateError` unless the certificate belongs to this model.

    Coefficients, loss, rounds and `simulated` must agree. A certificate of an earlier format has no digest of
    the coefficients; then only the other facts are compared. The number of rounds in the certificate of a
    single site may differ from that of the model: the site may have repeated rounds, or may have been away.
    """
    run = certificate.run
    if run.loss.counting:
        raise CertificateError("the certificate belongs to a score or a description, not to a model.")
    certificate.check_released(Released.model(model.coef, model.intercept, model.whitening))
    rounds, apart = model.run.get("rounds", certificate.rounds), run.where in ("folders", "network")
    if len(certificate.sites) < run.sites and certificate.form > 1:
        rounds = certificate.rounds
    facts = {
        "loss": (model.loss, run.loss.name.removeprefix("bounded-")),
        "simulated": (model.simulated, run.simulated),
        "rounds": (rounds, min(rounds, certificate.rounds) if apart else certificate.rounds),
    }
    for name, (here, there) in facts.items():
        if here != there:
            raise CertificateError(
                f"the certificate belongs to another run: its `{name}` is {there}, the model's is {here}."
            )
