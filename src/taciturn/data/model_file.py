"""model.json: a linear model as JSON. Estimators, `taciturn train` and real sites write the same format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..core.errors import DataError, ParameterError
from ..core.toml import complaint
from .tables.encoder import BoundedEncoder
from .tables.numeric_columns import PlainColumns
from .tables.schema import Schema

FORMAT = "taciturn-model/1"


class Encoding(BaseModel):
    """How a record becomes the row x: the parameters of `BoundedEncoder` except `schema` and `lazy`.

    With `intercept`, the last entry of x is a constant, which counts towards the norm bound. The last entry
    of `coef` is then the weight of this constant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    data_norm: float = Field(default=1.0, gt=0)
    intercept: bool = False
    rows: Literal["clip", "scale"] = "clip"
    missing: Literal["row", "field", "indicator"] = "row"
    curves: int | None = None
    surfaces: int | None = None
    seed: int | None = None

    @classmethod
    def of(cls, encoder: BoundedEncoder) -> Encoding:
        """The settings of an encoder; without curves and surfaces, the last three settings are None."""
        mapped = encoder.expansion
        names = () if mapped is None else ("curves", "surfaces", "seed")
        more = {name: getattr(mapped, name) for name in names}
        given = {"intercept": encoder.intercept, "rows": encoder.rows, "missing": encoder.missing_as}
        return cls.model_validate({"data_norm": float(encoder.data_norm), **given, **more})

    def encoder(self, schema: Schema) -> BoundedEncoder:
        """The encoder with these settings for a table with this schema."""
        return BoundedEncoder(schema, **self.model_dump(exclude_none=True))


class ModelFile(BaseModel):
    """score = coef.x + intercept. `coef` is (outputs, features) and `intercept` is (outputs,).

    There is one output for a regression or two classes, and otherwise one output for each class.

    loss : "logistic", "softmax" (all classes at once), "smooth-hinge" (a support vector classifier) or
        "log-cosh" (a regression).
    features : the names of the entries of x.
    classes : one class for each output. A model with one output has two classes: first the class for scores
        up to 0, then the class for scores above 0.
    label : the column that the model predicts.
    table, encoding : for models of tables, the schema and the settings with which a record becomes x.
    data_norm : the bound on the norm of x; an x with a larger norm is clipped to the bound, as in the fit.
    whitening : for a model that was trained on whitened rows V x + v, the matrix V with the vector v as its
        last column. The score is divided by max(1, ||V x + v||).
    settings : other parameters of the estimator; an epsilon of null means no privacy.
    certificate : the certificate of the model, or the SHA-256 of the file with the certificate.
    simulated : True if the noise came from a seed and can be reproduced. Then the model is not private.
    run : the run that produced the model: the job and its hash, the sites, the rounds.
    personal : a warning not to share the model, if it was adapted to one site. It then has no certificate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal["taciturn-model/1"]
    loss: Literal["logistic", "softmax", "smooth-hinge", "log-cosh"]
    features: list[str] = Field(min_length=1)
    coef: list[list[float]] = Field(min_length=1)
    intercept: list[float]
    classes: list[bool | int | float | str] | None = None
    label: str | None = None
    table: dict[str, Any] | None = Field(default=None, alias="schema")
    encoding: Encoding = Encoding()
    data_norm: float = Field(default=1.0, gt=0)
    whitening: list[list[float]] | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    certificate: dict[str, Any] | str | None = None
    simulated: bool = False
    run: dict[str, Any] = Field(default_factory=dict)
    personal: str | None = None

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        shapes = {len(row) for row in self.coef}
        outputs = 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)
        if shapes != {len(self.features)} or not outputs == len(self.coef) == len(self.intercept):
            raise ValueError("`coef`, `intercept`, `features` and `classes` must have matching lengths")
        if self.whitening is not None and {len(row) for row in self.whitening} != {len(self.features) + 1}:
            raise ValueError("`whitening` must have one column more than there are features")
        if (self.classes is None) != (self.loss == "log-cosh"):
            raise ValueError("a classifier needs `classes`, and a regression must not have them")
        if self.table is not None and self.encoder().get_feature_names_out().tolist() != self.features:
            raise ValueError("`features` must be the features that `schema` and `encoding` give")
        return self

    def to_json(self) -> str:
        """The model as JSON text, with one key per line."""
        entries = self.model_dump(by_alias=True, exclude_none=True)
        lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in entries.items())
        return f"{{\n{lines}\n}}\n"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table needs for a prediction."""
        return tuple(self.features) if self.table is None else Schema.from_dict(self.table).names

    def encoder(self) -> BoundedEncoder | PlainColumns:
        """The encoder that turns a record into x."""
        if self.table is None:
            return PlainColumns(self.features)
        part = "schema"
        try:
            schema, part = Schema.from_dict(self.table), "encoding"
            found = self.encoding.encoder(schema)
            found.get_feature_names_out()
        except ParameterError as error:
            raise ValueError(f"`{part}`: {error}".rstrip(".")) from error
        return found


Kind = TypeVar("Kind", bound=ModelFile)


def read_as(kind: type[Kind], path: Path) -> Kind:
    """The model in a file. If the file is not a valid model, a one-line error says why."""
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8-sig"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a model of taciturn{_reason(error)}.") from error


def _reason(error: Exception) -> str:
    """A text that names the wrong key and the mistake; an empty text if the file is not a JSON object."""
    if not isinstance(error, ValidationError):
        return ""
    found = complaint(error)
    if not found.path and error.errors(include_url=False)[0]["type"] != "value_error":
        return ""
    return f": {found}".rstrip(".")
