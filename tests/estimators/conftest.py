"""Two linearly separable classes, and the settings of a quick fit."""

from __future__ import annotations

import numpy as np
import pytest

QUICK = {"noise": "gaussian", "max_rounds": 4, "effort": "quick"}  # the planner looks at less


@pytest.fixture(scope="session")
def quick():
    return QUICK


@pytest.fixture(scope="session")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 4)) / 2
    return X, np.where(X @ [3.0, -2.0, 0.0, 0.0] + 0.2 + 0.2 * rng.standard_normal(3000) > 0, "yes", "no")
