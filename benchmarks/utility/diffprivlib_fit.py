"""Fit with diffprivlib, in an interpreter that has it: FOLDER EPSILON C SEED... -> the models as JSON."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np


def main() -> None:
    """Fit the models and print them."""
    from diffprivlib.models import LogisticRegression

    folder, epsilon, C, *seeds = sys.argv[1:]
    with np.load(Path(folder) / "rows.npz") as rows:
        X, y = rows["X"], rows["y"]
    warnings.simplefilter("ignore")
    models = []
    for seed in seeds:
        model = LogisticRegression(
            epsilon=float(epsilon),
            data_norm=1.0,
            C=float(C),
            fit_intercept=False,
            max_iter=2000,
            random_state=int(seed),
        )
        models.append(model.fit(X, y).coef_[0].tolist())
    print(json.dumps(models))


main()
