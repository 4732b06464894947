"""The scikit-learn face: private linear models in five lines."""

from .classifiers import PrivateLinearSVC, PrivateLogisticRegression
from .intervals import CoefIntervals, coef_intervals
from .model_file import load_model, save_model
from .regressor import PrivateHuberRegressor

__all__ = [
    "CoefIntervals",
    "PrivateHuberRegressor",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "coef_intervals",
    "load_model",
    "save_model",
]
