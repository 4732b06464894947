"""A model file used with scikit-learn alone, without our estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import HuberRegressor, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC

from taciturn.data import RowClipper
from taciturn.estimators.model_file import Model, read_model


def bare_model(path: Path) -> Any:
    """A step that clips rows, then a bare estimator."""
    model = read_model(path)
    assert model.whitening is None, "only a model that is linear in its rows"
    return make_pipeline(RowClipper(model.data_norm), _bare(model))


def _bare(model: Model) -> Any:
    coef, intercept, features = np.array(model.coef), np.array(model.intercept), len(model.features)
    if model.loss == "log-cosh":
        return _filled(HuberRegressor(), features, coef[0], float(intercept[0]))
    classes = np.array(model.classes)
    if model.loss == "smooth-hinge":
        return _filled(LinearSVC(), features, coef, intercept, classes)
    if len(coef) == 1 or model.loss == "softmax":
        return _filled(LogisticRegression(), features, coef, intercept, classes)
    each = OneVsRestClassifier(LogisticRegression())
    each.classes_, each.n_features_in_ = classes, features
    each.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    each.estimators_ = [
        _filled(LogisticRegression(), features, coef[k : k + 1], intercept[k : k + 1], np.array([0, 1]))
        for k in range(len(coef))
    ]
    return each


def _filled(bare: Any, features: int, coef: Any, intercept: Any, classes: Any = None) -> Any:
    bare.n_features_in_, bare.coef_, bare.intercept_ = features, coef, intercept
    if classes is not None:
        bare.classes_ = classes
    return bare
