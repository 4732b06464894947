"""The scikit-learn face: private linear models in five lines."""

from .classifiers import PrivateLinearSVC, PrivateLogisticRegression
from .regressor import PrivateHuberRegressor

__all__ = ["PrivateHuberRegressor", "PrivateLinearSVC", "PrivateLogisticRegression"]
