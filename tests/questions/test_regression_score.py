"""The score of a regression, for all and by group."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from taciturn.data import Boolean, Schema
from taciturn.questions.question import NoisyCounts, PublicTable
from taciturn.questions.shipped.evaluate import Evaluate
from taciturn.questions.shipped.regression_score import regression_cells

PUBLIC = PublicTable(Schema((Boolean("treated"),)))


class OfNumbers(Evaluate):
    """A model that predicts a number."""

    def loaded(self, public):
        return SimpleNamespace(classes=None)


def test_each_group_has_a_score_of_its_own():
    rng = np.random.default_rng(0)
    x, group = rng.uniform(-6, 6, 4000), rng.integers(0, 2, 4000)
    y = x + rng.normal(0, 1, 4000) * np.where(group == 1, 0.3, 2.0)
    question = OfNumbers(model={"file": "m", "sha256": "0" * 64}, by="treated", range=(-12, 12), bins=48)
    lengths = question.lengths(PUBLIC)
    cells = regression_cells(y, x, (-12.0, 12.0), 48) + group[:, None] * (np.array(lengths) // 3)
    tables = tuple(np.bincount(cells[:, k], minlength=n).astype(float) for k, n in enumerate(lengths))
    found = question.estimate(PUBLIC, NoisyCounts(tables, 0.5, 4000))
    assert set(found.groups) == {"no", "yes"} and set(found.facts()["groups"]) == {"no", "yes"}
    for name, size in (("no", 2.0), ("yes", 0.3)):
        one = found.groups[name]
        assert one.rmse.low <= size <= one.rmse.high and one.rmse.value == pytest.approx(size, abs=0.15)
    assert found.groups["no"].rmse.value > found.rmse.value > found.groups["yes"].rmse.value
    assert "RMSE, yes" in found.text()


def test_regression_that_is_worse_than_a_constant_prediction_is_reported():
    """One group has reversed predictions; its R squared is about -3, and the interval decides."""
    rng = np.random.default_rng(1)
    y, group = rng.normal(0, 2, 4000), rng.integers(0, 2, 4000)
    predicted = np.where(group == 1, y, -y) + rng.normal(0, 0.3, 4000)
    question = OfNumbers(model={"file": "m", "sha256": "0" * 64}, by="treated", range=(-12, 12), bins=48)
    lengths = question.lengths(PUBLIC)
    cells = regression_cells(y, predicted, (-12.0, 12.0), 48) + group[:, None] * (np.array(lengths) // 3)
    tables = tuple(np.bincount(cells[:, k], minlength=n).astype(float) for k, n in enumerate(lengths))
    found = question.estimate(PUBLIC, NoisyCounts(tables, 0.5, 4000))
    bad, good = found.groups["no"], found.groups["yes"]
    assert bad.r2.low <= -3.0 <= bad.r2.high < 0.0 < good.r2.low
    assert bad.worse_than_constant and not good.worse_than_constant
    assert "worse than a constant prediction, no" in found.text() and "prediction, yes" not in found.text()
    assert [found.facts()["groups"][name]["worse_than_constant"] for name in ("no", "yes")] == [True, False]
    drowned = question.estimate(PUBLIC, NoisyCounts(tables, 90.0, 4000))
    assert drowned.groups["no"].r2.value < 0.0
    assert not drowned.groups["no"].worse_than_constant, "the noise leaves it open"
