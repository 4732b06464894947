"""The models that may be scored on private rows, and their predictions for each row.

The privacy cost of a score is valid if one record changes only one prediction. This is true if a prediction
depends on its own row only, and if the fit of the model was charged separately or did not use these rows.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.pipeline import Pipeline

from ..core.errors import CertificateError, DataError, ParameterError
from ..core.types import Array
from ..data.features.feature_map import FeatureMap
from ..data.tables.clipping import RowClipper
from ..data.tables.encoder import BoundedEncoder
from ..data.tables.numeric_columns import PlainColumns
from ..estimators.additive.models import PrivateAdditiveClassifier
from ..estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from ..estimators.loaded import LoadedModel
from ..privacy.certificate.certificate import Certificate
from ..privacy.certificate.released import Released
from ..privacy.ledger.pricing import check_proof

PUBLIC = "the user declared that the scored model is public; how it was made was not checked"
_OURS = (PrivateLogisticRegression, PrivateLinearSVC, PrivateAdditiveClassifier)
_STEPS = (BoundedEncoder, FeatureMap, PlainColumns, RowClipper)


def model_marks(clf: Any, *, public: bool, simulated: bool) -> tuple[str, ...]:
    """Warnings about the model, for the certificate of its score. Raises if the model must not be scored."""
    if hasattr(clf[-1] if isinstance(clf, Pipeline) else clf, "strength_"):
        raise ParameterError(
            "`clf` was adapted to the rows of one site without noise (`personalise`); the model and its "
            "scores must not leave the site."
        )
    if public:
        return (PUBLIC,)
    certificate = _certificate(clf) if _is_ours(clf) else None
    if certificate is None:
        raise ParameterError(
            f"`clf` must be an estimator of taciturn with its certificate, or `public` must be True; got "
            f"{type(clf).__name__}. If a model was fitted to these rows without noise, its score "
            "reveals facts about them."
        )
    try:
        certificate.check()
        model = clf[-1] if isinstance(clf, Pipeline) else clf
        certificate.check_released(Released.model(model.coef_, model.intercept_, model.whitening_))
        if not simulated:
            check_proof(certificate.run)
    except (CertificateError, ParameterError) as error:
        raise ParameterError(f"`clf` has a certificate that does not cover its model: {error}") from error
    if not (simulated or math.isfinite(certificate.epsilon)):
        raise ParameterError("`clf` was fitted without noise; if it saw no private row, pass `public=True`.")
    return ()


def row_scores(clf: Any, X: Any, rows: int, classes: int) -> Array:
    """Scores from 0 to 1, (rows, classes); with two classes, only of the second class, (rows, 1).

    The scores of a row are NaN if the model fails on the row. The models of taciturn compute each row
    separately, so they get all rows at once. Any other model gets one row at a time, and must not change
    while it predicts.
    """
    given = _length(X)
    if given != rows:
        raise DataError(f"`X` and `y` must have one entry per row; got {given} and {rows}.")
    if _is_ours(clf):
        return np.asarray(np.clip(_ask(clf, X, classes), 0.0, 1.0))
    found = np.full((rows, 1 if classes == 2 else classes), np.nan)
    failed: Exception | None = None
    before = _digest(clf)
    for k in range(rows):
        try:
            found[k] = _ask(clf, _row(X, k), classes)
        except Exception as error:
            failed = error  # the scores stay NaN: raising could reveal facts about the private row
    if failed is not None and np.isnan(found).all():
        raise ParameterError(
            f"`clf` fails for every row, with {type(failed).__name__}; no noise was drawn and nothing was "
            "charged."
        )
    if before is not None and _digest(clf) != before:
        raise ParameterError(
            "`clf` changes while it predicts, so a prediction may depend on the rows before it; no noise was "
            "drawn and nothing was charged. If only its first call changes it, call it once on a "
            "made-up row."
        )
    return np.asarray(np.clip(found, 0.0, 1.0))


def _digest(clf: Any) -> bytes | None:
    """A hash of the pickled model; None if the model cannot be pickled."""
    try:
        return hashlib.sha256(pickle.dumps(clf)).digest()
    except Exception:  # pickling runs the model's own code
        return None


def _is_ours(clf: Any) -> bool:
    """Whether all steps of the model are classes of taciturn, which treat every row independently.

    False for a subclass, or if a method of an object was replaced: the new code may use other rows too.
    """
    steps = [step for _, step in clf.steps] if type(clf) in (Pipeline, LoadedModel) else [clf]
    encoders = [*steps[:-1]]
    if hasattr(steps[-1], "encoder_"):  # an additive model has its own encoder
        encoders.append(steps[-1].encoder_)
    known = type(steps[-1]) in _OURS and all(type(step) in _STEPS for step in encoders)
    every = (clf, *steps, *encoders)
    return known and not any(callable(getattr(type(one), name, None)) for one in every for name in vars(one))


def _certificate(clf: Any) -> Certificate | None:
    holder = clf[-1] if type(clf) is Pipeline else clf
    found = getattr(holder, "certificate_", None)
    return found if isinstance(found, Certificate) else None


def _ask(clf: Any, X: Any, classes: int) -> Array:
    if hasattr(clf, "predict_proba"):
        found = np.asarray(clf.predict_proba(X), dtype=np.float64)
        found = found[:, 1:] if classes == 2 else found
    else:
        found = expit(np.asarray(clf.decision_function(X), dtype=np.float64))
    return found.reshape(len(found), 1 if classes == 2 else classes)


def _length(X: Any) -> int:
    if isinstance(X, Mapping):
        return len(next(iter(X.values()), ()))
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _row(X: Any, k: int) -> Any:
    """Row k as a table with one row, of the same type as X."""
    if isinstance(X, Mapping):
        return {name: values[k : k + 1] for name, values in X.items()}
    return getattr(X, "iloc", X)[k : k + 1]
