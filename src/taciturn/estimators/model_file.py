"""save_model, load_model: write a fitted estimator and its certificate to a JSON file, and read it back."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..core import checks
from ..core.errors import CertificateError, ParameterError
from ..core.files import write_whole
from ..data.model_file import FORMAT, Encoding, ModelFile, read_as
from ..data.tables.encoder import BoundedEncoder
from ..data.tables.numeric_columns import PlainColumns
from ..data.tables.schema import Schema, public_columns
from ..privacy.certificate.released import Released
from .additive.models import AdditiveModel
from .base import PrivateLinearModel
from .classifiers import PrivateLinearSVC, PrivateLogisticRegression
from .loaded import UNREADABLE, LoadedModel, find_certificate
from .personal import PERSONAL
from .regressor import PrivateHuberRegressor

_ESTIMATORS: dict[str, type[PrivateLinearModel]] = {
    "logistic": PrivateLogisticRegression,
    "smooth-hinge": PrivateLinearSVC,
    "log-cosh": PrivateHuberRegressor,
}
_SETTINGS = (
    "epsilon",
    "delta",
    "data_norm",
    "colluding",
    "fit_intercept",
    "intercept_scaling",
    "smoothing",
    "scale",
    "target_scale",
)


class Model(ModelFile):
    """The content of a model file, made from an estimator (`of`) and turned back into one (`estimator`)."""

    @classmethod
    def of(
        cls,
        fitted: PrivateLinearModel,
        *,
        schema: Schema | BoundedEncoder | None = None,
        label: str | None = None,
        whole: bool = False,
    ) -> Model:
        """The model of a fitted estimator.

        schema : the schema or the encoder that made the rows, if the estimator was fitted to a table.
        whole : whether the model contains the whole certificate; otherwise only the certificate's SHA-256.
        """
        loss = next((name for name, kind in _ESTIMATORS.items() if isinstance(fitted, kind)), None)
        if loss is None:
            raise ParameterError(
                f"`fitted` must be an estimator of taciturn; got {type(fitted).__name__}. For a pipeline "
                "other than a `BoundedEncoder` and an estimator, give the last step, model[-1], and `schema`."
            )
        check_is_fitted(fitted)
        personal = hasattr(fitted, "strength_")
        if not personal:
            if not hasattr(fitted, "trace_"):
                raise ParameterError(
                    "`fitted` was read from a model file, so it cannot be saved again; copy the file."
                )
            _check_unchanged(fitted)
        if isinstance(fitted, AdditiveModel):
            if schema is not None:
                raise ParameterError("`schema` must be left out: an additive model has its own schema.")
            schema = fitted.encoder_
        encoder = BoundedEncoder(schema) if isinstance(schema, Schema) else schema
        coef, classes = np.atleast_2d(fitted.coef_), getattr(fitted, "classes_", None)
        entries = {
            "format": FORMAT,
            "loss": "softmax" if fitted.softmax_ else loss,
            "features": _feature_names(fitted, encoder, coef.shape[1]),
            "coef": coef.tolist(),
            "intercept": np.atleast_1d(fitted.intercept_).tolist(),
            "classes": None if classes is None else classes.tolist(),
            "label": label,
            **_encoding_entries(encoder),
            "data_norm": fitted.data_norm_,
            "whitening": None if fitted.whitening_ is None else fitted.whitening_.tolist(),
            "settings": _settings(fitted),
            **({"personal": PERSONAL} if personal else _origin(fitted, whole=whole)),
        }
        return cls.model_validate(entries)

    def estimator(self) -> Any:
        """The fitted estimator. It predicts as the original did, but has no `plan_` and no `trace_`."""
        known = {name: value for name, value in self.settings.items() if name in _SETTINGS}
        if known.get("epsilon", 1.0) is None:
            known["epsilon"] = math.inf
        made: Any = _ESTIMATORS["logistic" if self.loss == "softmax" else self.loss](**known)
        made.coef_, made.intercept_ = np.array(self.coef), np.array(self.intercept)
        made.n_features_in_ = made.coef_.shape[1]
        made.data_norm_, made.softmax_ = self.data_norm, self.loss == "softmax"
        made.whitening_ = None if self.whitening is None else np.array(self.whitening)
        if self.personal is not None:
            made.strength_ = None
        if self.classes is None:
            made.coef_, made.intercept_ = made.coef_[0], float(made.intercept_[0])
        else:
            made.classes_ = np.array(self.classes)
        return made

    def pipeline(self, *, unreadable: str = "nan") -> LoadedModel:
        """Encoder and estimator as one pipeline, which accepts the same tables as `taciturn predict`."""
        checks.choice("unreadable", unreadable, UNREADABLE)
        steps = [("encoder", self.encoder()), ("model", self.estimator())]
        return LoadedModel(steps, unreadable=unreadable)


def save_model(
    fitted: PrivateLinearModel | Pipeline, path: str | Path, *, schema: Schema | BoundedEncoder | None = None
) -> None:
    """Write a fitted estimator and its certificate to a JSON file.

    `schema` is the schema of the rows, or the encoder that made the rows. It is not needed for a pipeline of
    a `BoundedEncoder` and an estimator.
    """
    if schema is None and isinstance(fitted, Pipeline) and [*map(type, fitted)][:-1] == [BoundedEncoder]:
        fitted, schema = fitted[-1], fitted[0]
    elif isinstance(fitted, LoadedModel) and isinstance(fitted[0], PlainColumns):
        fitted = fitted[-1]
    write_whole(Path(path), Model.of(fitted, schema=schema, whole=True).to_json())


def load_model(path: str | Path, *, unreadable: str = "nan") -> LoadedModel:
    """Read a model from a file that `save_model`, `taciturn train` or a site of a network wrote.

    The model is a scikit-learn pipeline: an encoder, which accepts the same tables as `taciturn predict`, and
    the fitted estimator, `model[-1]`. `certificate_` is the certificate in the file, or in certificate.json
    in the same folder, if it belongs to this model; else None. `unreadable` sets the result for a record that
    cannot be read: "nan" (no prediction; None for a class), "raise" (an error), or "zeros" (the prediction
    for a row of zeros).
    """
    path = Path(path)
    found = read_model(path)
    loaded = found.pipeline(unreadable=unreadable)
    loaded.certificate_ = find_certificate(path, found)
    return loaded


def read_model(path: Path) -> Model:
    """The file as a `Model`. If the file is not valid, a one-line error says why."""
    return read_as(Model, path)


def _check_unchanged(fitted: PrivateLinearModel) -> None:
    try:
        found = Released.model(fitted.coef_, fitted.intercept_, fitted.whitening_)
        fitted.certificate_.check_released(found)
    except CertificateError as error:
        raise ParameterError(f"`fitted` was changed after its fit: {error}") from error


def _origin(fitted: PrivateLinearModel, *, whole: bool) -> dict[str, Any]:
    """The certificate of a model, and facts about the run that produced it."""
    sites, certificate = fitted.trace_.settings["names"], fitted.certificate_.to_json()
    return {
        "certificate": json.loads(certificate) if whole else hashlib.sha256(certificate.encode()).hexdigest(),
        "simulated": fitted.certificate_.run.simulated,
        "run": {"sites": sites, "rounds": fitted.n_iter_, "weights": [*fitted.plan_.weights]},
    }


def _feature_names(fitted: PrivateLinearModel, encoder: BoundedEncoder | None, features: int) -> list[str]:
    if encoder is None:
        given = getattr(fitted, "feature_names_in_", [f"x{k}" for k in range(features)])
        return [str(name) for name in given]
    names: list[str] = encoder.get_feature_names_out().tolist()
    if len(names) != features:
        raise ParameterError(
            f"`schema` must give the {features} features that the model was fitted to; it gives {len(names)}."
        )
    return names


def _encoding_entries(encoder: BoundedEncoder | None) -> dict[str, Any]:
    if encoder is None:
        return {}
    encoding = Encoding.of(encoder).model_dump(exclude_none=True)
    return {"schema": public_columns(encoder.schema).to_dict(), "encoding": encoding}


def _settings(fitted: PrivateLinearModel) -> dict[str, Any]:
    """The estimator's parameters as JSON values; an infinite epsilon is null."""
    given = {name: getattr(fitted, name) for name in _SETTINGS if hasattr(fitted, name)}
    given |= {name: float(one) for name, one in given.items() if isinstance(one, np.floating | np.integer)}
    return given | ({"epsilon": None} if math.isinf(given["epsilon"]) else {})
