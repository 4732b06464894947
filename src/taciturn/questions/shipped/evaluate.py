"""The kind of question "evaluate": how good a released model is on the private rows of all sites.

Each site compares predictions with labels and counts the results in tables. The sites release only the noisy
sum of these tables. The answer has a score for all rows and, if the job asks for it, for each group or site.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Key
from scipy.special import expit, softmax

from ...core.errors import DataError, ParameterError
from ...core.toml import Facts
from ...core.types import Array
from ...data.model_file import ModelFile, read_as
from ...data.tables.column_types import Boolean, Category
from ...jobfile.job_format import Text
from ...jobfile.job_rows import read_labels
from ...jobfile.toml_fields import LISTED
from ..answer import PrivateAnswer
from ..question import CountsQuestion, NoisyCounts, PublicTable, SiteTable
from .describe import cells_of, grouping, groups_of
from .regression_score import (
    RegressionScore,
    regression_cells,
    regression_lengths,
    summarise_regression,
)
from .score import PrivateScore, score_cells, score_lengths, summarise

SITE = "site"
"""The value of `by` that asks for a separate score of each site."""


class NamedModel(Facts):
    """The path of a model file, relative to the folder of the job, and the SHA-256 of its bytes."""

    file: Text
    sha256: str = Key(pattern="^[0-9a-f]{64}$")


class Evaluate(CountsQuestion):
    """The keys of a question of kind "evaluate" in a job file.

    model : a model.json from `taciturn train` or from a site. The privacy cost of this job does not
        include the cost of training the model.
    by : a category or boolean column of the schema, to add a score for each of its values; or "site", to add
        a score for each site.
    bins : the number of bins for predicted probabilities or, in a regression, for targets and residuals. It
        must be even. More bins show more detail, with more noise.
    range : for a regression, the public range of the target; values outside of the range are clipped to it.
    level : the confidence level of all intervals.
    """

    kind: ClassVar[str] = "evaluate"
    by_other_schema: ClassVar[bool] = True  # cells are read with the schema of the model
    model: NamedModel
    by: Text | None = None
    bins: int = Key(default=20, ge=2, le=10_000, multiple_of=2)
    range: Annotated[tuple[float, float], LISTED] | None = None
    level: float = Key(default=0.95, gt=0, lt=1)

    def loaded(self, public: PublicTable) -> ModelFile:
        """The model file, after a check that its SHA-256 is the one in the job."""
        return _load(public.folder / self.model.file, self.model.sha256)

    def marks(self, public: PublicTable) -> tuple[str, ...]:
        return ("the scored model is the file that the job names; how it was made was not checked",)

    @property
    def names_sites(self) -> bool:
        """Whether the answer contains a score for the rows of each single site."""
        return self.by == SITE

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        model = self.loaded(public)
        if public.label is None:
            raise ParameterError("`label` must be given in the job: predictions are compared with the label.")
        if (model.classes is None) != (public.label.told is None):
            raise ParameterError(
                "`label` must have `classes` or `positive` if the model predicts classes, otherwise neither."
            )
        if (model.classes is None) != (self.range is not None):
            raise ParameterError(
                "`range` of the target must be given for a regression, and left out for a classifier."
            )
        group = self._group(public)
        known = (*model.columns, public.label.column)
        return (*known, *([] if group is None or group.name in known else [group.name]))

    def _group(self, public: PublicTable) -> Category | Boolean | None:
        return None if self.names_sites else grouping(public, self.by)

    def groups(self, public: PublicTable) -> tuple[str, ...]:
        """The names of the groups; empty without `by`."""
        return public.sites if self.names_sites else groups_of(self._group(public))

    def lengths(self, public: PublicTable) -> tuple[int, ...]:
        classes = self.loaded(public).classes
        each = regression_lengths(self.bins) if classes is None else score_lengths(len(classes), self.bins)
        groups = len(self.groups(public)) + (not self.names_sites) if self.by else 1
        return tuple(groups * length for length in each)

    def cells(self, public: PublicTable, table: SiteTable) -> NDArray[np.int64]:
        model, label = self.loaded(public), public.label
        if label is None:
            raise ParameterError("`label` must be given in the job.")
        y, known = read_labels(label, table.columns[label.column])
        scores = model_scores(model, table.columns)
        if self.range is not None:
            each = regression_cells(np.where(known, y, np.nan), scores[:, 0], self.range, self.bins)
        else:
            silent = ~np.isfinite(scores).all(axis=1)
            truth = np.where(known & ~silent, y, len(model.classes or ())).astype(np.int64)
            each = score_cells(truth, np.nan_to_num(scores), self.bins)
        if self.by is None:
            return each
        group = self._group(public)
        place = table.site if group is None else cells_of(group, table.parsed([group])[group.name], self.bins)
        groups = len(self.groups(public)) + (group is not None)
        lengths = np.array(self.lengths(public)) // groups
        return np.asarray(each + np.broadcast_to(place, len(each))[:, None] * lengths)

    def estimate(self, public: PublicTable, found: NoisyCounts) -> PrivateAnswer:
        model, names = self.loaded(public), self.groups(public)
        folded = [
            table.reshape(len(names) + (not self.names_sites) if self.by else 1, -1) for table in found.tables
        ]
        sigma = found.sigma * float(np.sqrt(len(folded[0])))
        whole = NoisyCounts(tuple(table.sum(axis=0) for table in folded), sigma, found.units)
        if self.by is None:
            whole = found
        each = {name: self._one([table[k] for table in folded], found.sigma) for k, name in enumerate(names)}
        return self._summary(whole, model, each)

    def _one(self, tables: list[Array], sigma: float) -> NoisyCounts:
        """The counts of one group. The number of its records (or persons) is estimated from these counts."""
        units = max(round(float(np.mean([table.sum() for table in tables]))), 1)
        return NoisyCounts(tuple(tables), sigma, units)

    def _summary(
        self, whole: NoisyCounts, model: ModelFile, each: dict[str, NoisyCounts]
    ) -> PrivateScore | RegressionScore:
        """The score of all units, with the score of every group in `groups`."""
        if self.range is not None:
            of_numbers = partial(summarise_regression, span=self.range, bins=self.bins, level=self.level)
            numbers = {name: of_numbers(one, estimated=True) for name, one in each.items()}
            return replace(of_numbers(whole), groups=numbers)
        of_classes = partial(summarise, classes=tuple(model.classes or ()), bins=self.bins, level=self.level)
        classes = {name: of_classes(one, estimated=True) for name, one in each.items()}
        return replace(of_classes(whole), groups=classes)


def model_scores(model: ModelFile, columns: Any) -> Array:
    """The prediction for every row: probabilities or numbers; NaN for a row that cannot be read."""
    encoder = model.encoder()
    X = np.asarray(encoder.transform(columns), dtype=np.float64)
    margins = np.stack(
        [np.einsum("ij,j->i", X, np.array(w)) + b for w, b in zip(model.coef, model.intercept, strict=True)],
        axis=1,
    )
    if model.whitening is not None:
        squares = [
            np.square(np.einsum("ij,j->i", X, np.array(row[:-1])) + row[-1]) for row in model.whitening
        ]
        margins /= np.maximum(np.sqrt(np.sum(squares, axis=0)), 1.0)[:, None]
    if model.classes is not None:
        margins = softmax(margins, axis=1) if model.loss == "softmax" else expit(margins)
    margins[np.asarray(encoder.unreadable(columns))] = np.nan
    return np.asarray(margins)


@lru_cache(maxsize=8)
def _load(path: Path, sha256: str) -> ModelFile:
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from error
    if found != sha256:
        raise DataError(f"{path}: the file is not the model that the job names; its SHA-256 is {found}.")
    return read_as(ModelFile, path)
