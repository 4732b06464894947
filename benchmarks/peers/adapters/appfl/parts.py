"""The model and the rows, which APPFL loads by name."""

import numpy as np
import torch
from appfl.algorithm.trainer.sklearn_trainer import SklearnModelWrapper
from sklearn.linear_model import LogisticRegression

FEATURES = 106


def sklearn_model(C, max_iter):
    """scikit-learn's logistic regression, fitted to two rows so that it has weights to send.

    APPFL sends numbers of 32 bits. With a solver that stops early, every run would give a different model.
    """
    model = LogisticRegression(
        C=C, solver="newton-cholesky", max_iter=max_iter, warm_start=True, fit_intercept=False
    )
    model.fit(np.eye(2, FEATURES), np.array([0, 1]))
    model.coef_ = np.zeros((1, FEATURES))
    return SklearnModelWrapper(model)


def rows(path):
    """The rows of one site, without validation rows."""
    found = np.load(path)
    X = torch.tensor(found["X"], dtype=torch.float32)
    y = torch.tensor((found["y"] > 0).astype(np.int64))
    return torch.utils.data.TensorDataset(X, y), None
