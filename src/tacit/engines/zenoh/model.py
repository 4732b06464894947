"""model.json: the average that every site holds, as plain numbers, and what it says of new rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...errors import SiteError
from ...toml import Facts
from .job import Job, Label
from .parts import LossField, write_loss
from .rows import read_arrays, read_columns
from .toml import checked

Array = NDArray[np.float64]

KIND = "average of the last released vectors of all sites"


class Origin(Facts):
    """The job that a model came from."""

    name: str
    sha256: str


class SiteModel(Facts):
    """score(x) = coef . x; above 0 is the positive class, for classification.

    features : the names of x's entries.
    schema, intercept : how a record becomes x, for models of tables.
    simulated : made with noise that can be replayed, so not private.
    """

    format: Literal["tacit-model/1"]
    kind: str
    loss: LossField
    features: list[str] = Field(min_length=1)
    coef: list[float] = Field(min_length=1)
    label: Label | None = None
    table: dict[str, Any] | None = Field(default=None, alias="schema")
    intercept: bool = False
    job: Origin
    sites: list[str]
    rounds: int
    simulated: bool

    def scores(self, path: Path) -> Array:
        """coef . x for every row of an .npz (its X), .csv or .parquet file."""
        if path.suffix == ".npz":
            (X,) = read_arrays(path, "X")
        elif self.table is None:
            raise SiteError(f"{path}: this model knows no schema; give it an .npz with X.")
        else:
            from ...data.encoder import BoundedEncoder
            from ...data.schema import Schema

            schema = Schema.from_dict(self.table)
            X = BoundedEncoder(schema, intercept=self.intercept).transform(read_columns(path, schema.names))
        if X.ndim != 2 or X.shape[1] != len(self.coef):
            raise SiteError(f"{path}: the model has {len(self.coef)} features; the file has shape {X.shape}.")
        return np.asarray(X @ np.array(self.coef))


def model_facts(job: Job, coef: Array) -> dict[str, Any]:
    """The content of model.json."""
    return {
        "format": "tacit-model/1",
        "kind": KIND,
        "loss": write_loss(job.loss),
        "features": list(job.feature_names),
        "coef": coef.tolist(),
        "label": None if job.label is None else job.label.model_dump(),
        "schema": job.table,
        "intercept": job.intercept,
        "job": {"name": job.name, "sha256": job.hash.hex()},
        "sites": list(job.names),
        "rounds": job.rounds,
        "simulated": job.simulated,
    }


def load_model(path: Path) -> SiteModel:
    """The model in a file."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SiteError(f"{path}: not a model.json.") from error
    if not isinstance(entries, dict):
        raise SiteError(f"{path}: not a model.json.")
    return checked(path, SiteModel, entries)
