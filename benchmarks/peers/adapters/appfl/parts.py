"""What APPFL loads by name: the model and the rows."""

import numpy as np
import torch
from appfl.algorithm.trainer.sklearn_trainer import SklearnModelWrapper
from sklearn.linear_model import LogisticRegression

FEATURES = 106


def sklearn_model(C, max_iter):
    """scikit-learn's logistic regression, fitted to two rows so that it has weights to send.

    APPFL sends 32 bits of a number; a solver that stops early would make another model of it in every run.
    """
    model = LogisticRegression(
        C=C, solver="newton-cholesky", max_iter=max_iter, warm_start=True, fit_intercept=False
    )
    model.fit(np.eye(2, FEATURES), np.array([0, 1]))
    model.coef_ = np.zeros((1, FEATURES))
    return SklearnModelWrapper(model)


def rows(path):
    """One site's rows, and nothing to validate on."""
    found = np.load(path)
    X = torch.tensor(found["X"], dtype=torch.float32)
    y = torch.tensor((found["y"] > 0).astype(np.int64))
    return torch.utils.data.TensorDataset(X, y), None
