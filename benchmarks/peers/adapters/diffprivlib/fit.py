"""diffprivlib: scikit-learn's logistic regression with a privacy budget, on the rows of one trusted centre.

python fit.py ROWS_FOLDER EPSILON C SEEDS -> models.json
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import LogisticRegression

folder, epsilon, C, seeds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
sites = [np.load(path) for path in sorted(Path(folder).glob("site-*.npz"))]
X = np.vstack([site["X"] for site in sites])
y = np.concatenate([site["y"] for site in sites])

# The constant is a column of X, because the bound on the rows would not cover a separate intercept.
warnings.simplefilter("ignore")
models = []
for seed in range(seeds):
    model = LogisticRegression(
        epsilon=epsilon, data_norm=1.0, C=C, fit_intercept=False, max_iter=2000, random_state=seed
    )
    models.append(model.fit(X, y).coef_[0].tolist())

out = Path(os.environ["PEER_FOLDER"])
(out / "models.json").write_text(json.dumps(models))
(out / "model.json").write_text(json.dumps(models[0]))
