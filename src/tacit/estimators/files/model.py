"""model.json: a fitted model as plain JSON; back into its estimator, or into a bare scikit-learn one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...data.columns import parse_column
from ...data.encoder import BoundedEncoder
from ...data.schema import Number, Schema
from ...errors import DataError, ParameterError
from ..base import PrivateLinearModel
from ..classifiers import PrivateLinearSVC, PrivateLogisticRegression
from ..regressor import PrivateHuberRegressor

Array = NDArray[np.float64]

FORMAT = "tacit-estimator/1"
_KINDS: dict[str, type[PrivateLinearModel]] = {
    "logistic": PrivateLogisticRegression,
    "svc": PrivateLinearSVC,
    "huber": PrivateHuberRegressor,
}
_SETTINGS = ("epsilon", "delta", "data_norm", "fit_intercept")


class Model(BaseModel):
    """score = coef.x + intercept: (outputs, features) and (outputs,); one output, or one per class.

    features : the names of x's entries.
    table : the schema by which a record becomes x, for models of tables; `missing` as for `BoundedEncoder`.
    settings : epsilon, delta and what else the estimator was made with.
    certificate : SHA-256 of the certificate's JSON, which says what the model cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["tacit-estimator/1"]
    kind: Literal["logistic", "svc", "huber"]
    features: list[str] = Field(min_length=1)
    coef: list[list[float]] = Field(min_length=1)
    intercept: list[float]
    classes: list[bool | int | float | str] | None = None
    label: str | None = None
    table: dict[str, Any] | None = Field(default=None, alias="schema")
    missing: Literal["row", "field"] = "row"
    settings: dict[str, Any] = Field(default_factory=dict)
    certificate: str | None = None

    @classmethod
    def of(
        cls,
        fitted: PrivateLinearModel,
        *,
        schema: Schema | None = None,
        missing: str = "row",
        label: str | None = None,
    ) -> Model:
        """The model of a fitted estimator; `schema` where its rows were encoded from a table."""
        kind = next(name for name, kind in _KINDS.items() if isinstance(fitted, kind))
        names = getattr(fitted, "feature_names_in_", None)
        if schema is not None:
            names = schema.feature_names
        coef = np.atleast_2d(fitted.coef_)
        classes = getattr(fitted, "classes_", None)
        return cls.model_validate(
            {
                "format": FORMAT,
                "kind": kind,
                "features": [f"x{k}" for k in range(coef.shape[1])]
                if names is None
                else [str(n) for n in names],
                "coef": coef.tolist(),
                "intercept": np.atleast_1d(fitted.intercept_).tolist(),
                "classes": None if classes is None else classes.tolist(),
                "label": label,
                "schema": None if schema is None else schema.to_dict(),
                "missing": missing,
                "settings": {name: getattr(fitted, name) for name in _SETTINGS},
                "certificate": hashlib.sha256(fitted.certificate_.to_json().encode()).hexdigest(),
            }
        )

    def to_json(self) -> str:
        """One key a line, as text."""
        entries = self.model_dump(by_alias=True, exclude_none=True)
        lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in entries.items())
        return f"{{\n{lines}\n}}\n"

    def estimator(self) -> Any:
        """The estimator it came from, fitted: it predicts as before, and knows nothing of the fit."""
        return self._filled(_KINDS[self.kind](**self.settings))

    def scikit_learn(self) -> Any:
        """A bare scikit-learn estimator with the same predictions."""
        from sklearn.linear_model import HuberRegressor, LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        if self.kind == "huber":
            return self._filled(HuberRegressor())
        if self.kind == "svc":
            return self._filled(LinearSVC())
        if len(self.coef) == 1:
            return self._filled(LogisticRegression())
        each = OneVsRestClassifier(LogisticRegression())
        each.classes_ = np.array(self.classes)
        each.n_features_in_ = len(self.features)
        each.label_binarizer_ = _binarizer(each.classes_)
        each.estimators_ = [self._one(k) for k in range(len(self.coef))]
        return each

    def rows(self, table: Any) -> Array:
        """x of every record of a table."""
        if self.table is not None:
            schema = Schema.from_dict(self.table)
            return BoundedEncoder(schema, missing=self.missing).transform(table)
        columns = [parse_column(Number(name, -1e300, 1e300, fill=0.0), table[name]) for name in self.features]
        return np.column_stack(columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """What a table must have for a prediction."""
        return tuple(self.features) if self.table is None else Schema.from_dict(self.table).names

    def _filled(self, bare: Any) -> Any:
        coef, intercept = np.array(self.coef), np.array(self.intercept)
        bare.n_features_in_ = coef.shape[1]
        if self.kind == "huber":
            bare.coef_, bare.intercept_ = coef[0], float(intercept[0])
            return bare
        bare.coef_, bare.intercept_, bare.classes_ = coef, intercept, np.array(self.classes)
        return bare

    def _one(self, k: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        one = LogisticRegression()
        one.coef_, one.intercept_ = np.array(self.coef[k : k + 1]), np.array(self.intercept[k : k + 1])
        one.classes_, one.n_features_in_ = np.array([0, 1]), len(self.features)
        return one


def save_model(fitted: PrivateLinearModel, path: str | Path, *, schema: Schema | None = None) -> None:
    """Write a fitted estimator as plain JSON."""
    Path(path).write_text(Model.of(fitted, schema=schema).to_json(), encoding="utf-8")


def load_model(path: str | Path) -> Any:
    """The estimator in a file that `save_model` or `tacit train` wrote, ready to predict."""
    return read_model(Path(path)).estimator()


def read_model(path: Path) -> Model:
    """The file as a `Model`, or one line that says what is wrong with it."""
    try:
        model = Model.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not a model of tacit{_reason(error)}.") from error
    shapes = {len(row) for row in model.coef}
    outputs = 1 if model.classes is None or len(model.classes) == 2 else len(model.classes)
    if shapes != {len(model.features)} or not outputs == len(model.coef) == len(model.intercept):
        raise DataError(f"{path}: `coef`, `intercept`, `features` and `classes` do not fit together.")
    if (model.classes is None) != (model.kind == "huber"):
        raise DataError(f"{path}: a classifier has `classes`, a regression has none.")
    if model.table is not None:
        try:
            names = Schema.from_dict(model.table).feature_names
        except ParameterError as error:
            raise DataError(f"{path}: `schema`: {error}") from error
        if list(names) != model.features:
            raise DataError(f"{path}: `features` must be those of the `schema`.")
    return model


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return ""
    problem = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(map(str, problem["loc"]))
    return f": `{key}`: {problem['msg']}" if key else ""


def _binarizer(classes: Any) -> Any:
    from sklearn.preprocessing import LabelBinarizer

    return LabelBinarizer(sparse_output=True).fit(classes)
