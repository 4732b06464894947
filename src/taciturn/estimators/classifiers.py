"""PrivateLogisticRegression, PrivateLinearSVC: private classifiers with the scikit-learn interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ..core.errors import DataError
from ..core.types import Array
from ..objective.losses import Logistic, Loss, SmoothHinge
from .base import PrivateLinearModel
from .labels import class_weights, places, plain_labels, public_labels, weights_mark

READ_OFF = "the list of classes was taken from the labels, and is assumed to be public"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """A linear classifier: one linear model for two classes; for more classes, one for each class."""

    classes: Sequence[Any] | None = None
    class_weight: str | Mapping[Any, float] | None = None
    class_shares: Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any, site: Any = None, person: Any = None) -> Self:
        """Train across sites. There is no `sample_weight`: a row with a larger weight would cost more
        privacy.

        Parameters
        ----------
        X : (rows, features), dense or sparse; rows with a norm above `data_norm` are clipped to it.
        y : the labels; a row whose label is not in `classes` counts as a row of zeros.
        site : the site of every row. If it is left out, rows are assigned at random to `sites` sites.
        person : the id of every row's person. All rows of a person are then weighted so that together they
            count as one row, and the certificate protects persons. Without `person` the certificate protects
            single rows. All rows of a person must be at one site.
        """
        if self.classes is None:
            X, known, index = self._read_off(X, y)
        else:
            known = public_labels(self.classes)
            X, index = self._validated(X, places(known, y))
        by_class = class_weights(known, self.class_weight, self.class_shares)
        told = () if by_class is None else (weights_mark(known, by_class),)
        self._fit_targets(
            X,
            _one_vs_rest(known, index),
            site,
            person=person,
            keep=None if self.classes is None else index >= 0,
            marks=(*((READ_OFF,) if self.classes is None else ()), *told),
            weights=None if by_class is None else by_class[np.maximum(index, 0)],
        )
        self.classes_ = known
        return self

    def _read_off(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[np.int64]]:
        """X, the classes that occur in y, and the index of each row's class."""
        X, y = self._validated(X, plain_labels(y))
        check_classification_targets(y)
        known = np.unique(y)
        if len(known) < 2:
            raise DataError(f"`y` must contain at least 2 classes; got {len(known)} class.")
        return X, known, np.searchsorted(known, y)

    def _own_targets(self, y: Any) -> tuple[Array, NDArray[np.bool_], Array, float]:
        index = places(self.classes_, y)
        by_class = class_weights(self.classes_, self.class_weight, self.class_shares)
        weights = np.ones(len(index)) if by_class is None else by_class[np.maximum(index, 0)]
        return _one_vs_rest(self.classes_, index), index >= 0, weights, 1.0

    def decision_function(self, X: Any) -> Array:
        """coef.x + intercept: (rows,) for two classes, (rows, classes) for more."""
        scores = self._decide(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        scores = self._decide(X)
        best = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks have few rows, and epsilon is 1: the scores are poor
        tags.classifier_tags.poor_score = True
        return tags


def _one_vs_rest(known: NDArray[Any], index: NDArray[np.int64]) -> Array:
    """The targets, (outputs, rows): 1 for rows of the output's class, else -1. With more than two classes,
    each class has an output; with two classes, only the second class has one."""
    outputs = range(1, 2) if len(known) == 2 else range(len(known))
    return np.stack([np.where(index == k, 1.0, -1.0) for k in outputs])


class PrivateLogisticRegression(PrivateLinearClassifier):
    """Logistic regression across sites that may not share rows, under one (epsilon, delta) for the whole fit.

    Before anything is spent, `taciturn.check` shows the owner of the rows how many of them would be clipped
    or count as zeros.

    Parameters
    ----------
    epsilon, delta : the privacy budget of the whole fit, with all rounds, sites and classes, for any one
        record. Each further fit on the same records, such as a fit in a cross-validation or in a grid
        search, spends this budget again.
        epsilon = float("inf") trains without privacy; delta, colluding, noise and effort then have no effect.
        delta = 0 gives a pure guarantee. delta = None, the default, is 0.1 / (number of records or persons),
        and at most 1e-5.
    sites : the number of sites that the rows are assigned to if `fit` gets no `site`.
    graph : the links between sites: "complete", "ring", "star", "path", or a `taciturn.Graph` or networkx
        graph whose nodes are the sites in the order of their sorted names.
    data_norm : a PUBLIC bound on the norm of a row; rows with a larger norm are clipped to it. With
        "from data" the bound is computed from the rows, which is not private: the fit warns, and the
        certificate says so.
    colluding : the number of other sites that may collude with an attacker. With `colluding=None` no other
        site is trusted: the guarantee holds whatever the other sites do. The planner then chooses a method,
        and `plan_` says which and why. If you give `noise` or `effort`, or set method="penalty" or
        whiten=False, the planner always chooses the paper's method. If `colluding` is a number, the noise of
        all honest sites jointly protects each record (`MaskedDescent`), and the model is about as good as if
        one trusted party held all rows. The certificate also states the epsilon if more than `colluding`
        sites collude.
    fit_intercept : whether the model has an intercept. Its constant column counts towards the norm bound, and
        the intercept is regularised.
    intercept_scaling : the value of the constant column of the intercept, as a multiple of data_norm. A
        smaller value leaves more of the norm bound to the features, and keeps the intercept closer to 0.
    classes : the PUBLIC list of labels. If it is left out, the list is taken from y, and the certificate says
        so.
    class_weight, class_shares : class_weight="balanced" gives rare classes as much weight as common ones; it
        needs class_shares={label: share}, the PUBLIC share of each class. Or class_weight={label: weight},
        with public weights. The weights are scaled so that the largest is 1, so the privacy cost does not
        change.
    C, regularization, noise, rounds : settings of the run. The planner chooses each of these that is left at
        its default. Leave `noise` out if you give `colluding`: `MaskedDescent` always uses discrete Gaussian
        noise.
    max_rounds : the largest number of rounds that the planner may choose; do not give `rounds` as well.
    method : "penalty" for the paper's penalty perturbation; or a private method of your own, together with
        `rounds`. A method that costs more than epsilon is refused.
    effort : for the paper's method. With "full", the default, the planner first tests plans on synthetic
        rows, for some seconds; with "quick" it does not. `effort` is refused together with `colluding` or
        with a method of your own.
    whiten : True first learns better coordinates (whitening) from noisy moments of the rows; False does not.
        By default the fit whitens if public numbers suggest that this helps. With the paper's method, a
        whitened model shortens long rows before it predicts (`whitening_`).
    ledger : the path of a new SQLite file that records the privacy cost. Each charge is on disk before the
        charged message is released, so the record is complete even after a crash; see `SqliteLedger`. None
        keeps the record in memory.
    random_state : None draws secret noise. With a seed the fit can be reproduced, and the certificate says
        `simulated`.
    large_delta : True allows a delta above 1 / (number of records), and the certificate then says LARGE
        DELTA. By default, a fit refuses so large a delta.
    verbose : True shows the progress on a terminal; nothing is shown in a pipe or a log.

    Attributes
    ----------
    whitening_ : for a whitened model of the paper's method, the map x -> V x + v to whitened coordinates, as
        one matrix of shape (entries, features + 1): V, and v as its last column. The score of x is divided by
        ||V x + v|| if this norm is above 1. None for other models.
    coef_, intercept_, classes_ : the model. It is the average of the vectors that the sites released last;
        averaging costs no extra privacy.
    site_coef_, site_intercept_ : the vectors that each site released last: (sites, outputs, features) and
        (sites, outputs).
    certificate_ : the privacy cost of the fit; `certificate_.epsilon` never exceeds `epsilon`.
    plan_ : the settings of the run.
    trace_ : all released vectors.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 3))
    >>> clf = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, sites=4, random_state=0).fit(X, X[:, 0] > 0)
    >>> bool(clf.certificate_.epsilon <= 1.0), bool(clf.score(X, X[:, 0] > 0) > 0.8)
    (True, True)
    """

    def _loss(self) -> Loss:
        return Logistic()

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, (rows, classes).

        For more than two classes, the probabilities of each class against the rest are scaled to add up to 1,
        unless the model is a softmax model (`colluding` is given).
        """
        scores = self._decide(X)
        if self.softmax_:
            return np.asarray(softmax(scores, axis=1))
        chance = expit(scores)
        if chance.shape[1] == 1:
            return np.hstack([1 - chance, chance])
        return np.asarray(chance / np.maximum(chance.sum(axis=1, keepdims=True), 1e-300))

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of the probability of each class, (rows, classes)."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearSVC(PrivateLinearClassifier):
    """A linear support vector classifier with the Huber hinge, under one (epsilon, delta) for the whole fit.

    Before anything is spent, `taciturn.check` shows the owner of the rows how many of them would be clipped
    or count as zeros.

    Parameters
    ----------
    smoothing : half the width of the parabola that replaces the corner of the hinge. The corner has to be
        rounded off because the privacy proof needs a loss with bounded curvature.
    others : as for `PrivateLogisticRegression`. The attributes are the same too.
    """

    smoothing: float = 0.5

    def _loss(self) -> Loss:
        return SmoothHinge(self.smoothing)
