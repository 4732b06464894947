"""Rows and the model, as in Flower's scikit-learn quickstart."""

import numpy as np
from sklearn.linear_model import LogisticRegression

FEATURES = 106


def load_rows(path):
    """X and y of one site."""
    with np.load(path) as rows:
        return rows["X"], rows["y"]


def make_model(C, max_iter):
    """A classifier that continues from given weights."""
    model = LogisticRegression(
        C=C, solver="newton-cholesky", max_iter=max_iter, warm_start=True, fit_intercept=False
    )
    model.classes_ = np.array([-1.0, 1.0])
    return model
