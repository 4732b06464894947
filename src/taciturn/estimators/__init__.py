"""Private linear and additive models with the scikit-learn interface."""

from .additive.curves import EffectCurve
from .additive.models import PrivateAdditiveClassifier, PrivateAdditiveRegressor
from .classifiers import PrivateLinearSVC, PrivateLogisticRegression
from .model_file import load_model, save_model
from .regressor import PrivateHuberRegressor

__all__ = [
    "EffectCurve",
    "PrivateAdditiveClassifier",
    "PrivateAdditiveRegressor",
    "PrivateHuberRegressor",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "load_model",
    "save_model",
]
