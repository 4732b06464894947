"""PrivateLogisticRegression, PrivateLinearSVC: the scikit-learn face of private classification."""

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
from .labels import class_weights, has_missing, places, public_labels, weights_mark

READ_OFF = "the list of classes was read off the labels, and is taken to be public"


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """One linear model for two classes, one against the rest for more, all under one budget."""

    classes: Sequence[Any] | None = None
    class_weight: str | Mapping[Any, float] | None = None
    class_shares: Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any, site: Any = None, person: Any = None) -> Self:
        """Train across sites. There is no `sample_weight`: a row that weighs more would cost more.

        Parameters
        ----------
        X : (rows, features), dense or sparse; rows longer than `data_norm` are clipped to it.
        y : the labels; a label that is not among `classes` turns its row into zeros.
        site : which site holds which row; dealt at random to `sites` sites where it is not given.
        person : an id of the person for every row. All rows of a person are then weighted to count as one,
            and the certificate covers the person; without it, one row. A person's rows must be at one site.
        """
        if self.classes is None:
            X, known, index = self._read_off(X, y)
        else:
            known = public_labels(self.classes)
            X, index = self._validated(X, places(known, y))
        outputs = range(1, 2) if len(known) == 2 else range(len(known))
        by_class = class_weights(known, self.class_weight, self.class_shares)
        told = () if by_class is None else (weights_mark(known, by_class),)
        self._fit_targets(
            X,
            np.stack([np.where(index == k, 1.0, -1.0) for k in outputs]),
            site,
            person=person,
            keep=None if self.classes is None else index >= 0,
            marks=(*((READ_OFF,) if self.classes is None else ()), *told),
            weights=None if by_class is None else by_class[np.maximum(index, 0)],
        )
        self.classes_ = known
        return self

    def _read_off(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[np.int64]]:
        """X, the classes that y holds, and which of them each row has."""
        if has_missing(y):
            raise DataError(
                "`y` must have a label for every row; some are missing. If you declare `classes`, a row "
                "without a label counts as zeros."
            )
        X, y = self._validated(X, y)
        check_classification_targets(y)
        known = np.unique(y)
        if len(known) < 2:
            raise DataError(f"`y` must contain at least 2 classes; got {len(known)} class.")
        return X, known, np.searchsorted(known, y)

    def _own_targets(self, y: Any) -> tuple[Array, NDArray[np.bool_], Array, float]:
        index = places(self.classes_, y)
        outputs = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        by_class = class_weights(self.classes_, self.class_weight, self.class_shares)
        weights = np.ones(len(index)) if by_class is None else by_class[np.maximum(index, 0)]
        return np.stack([np.where(index == k, 1.0, -1.0) for k in outputs]), index >= 0, weights, 1.0

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
        tags.classifier_tags.poor_score = (
            True  # on the few rows of scikit-learn's checks, within a budget of 1
        )
        return tags


class PrivateLogisticRegression(PrivateLinearClassifier):
    """Logistic regression across sites that may not share rows, under one (epsilon, delta) for the whole fit.

    `taciturn.check` shows the owner of the rows, before anything is spent, which values do not fit.

    Parameters
    ----------
    epsilon, delta : the budget of any one record: all rounds, sites and classes together, in one fit. Another
        fit on the same records, such as a fold or a point of a grid, spends it again. `float("inf")` trains
        without privacy, and overrules delta, colluding, noise and effort; delta = 0 asks for a pure
        guarantee, and None, the default, for a tenth of one over the number of records or persons, and at
        most 1e-5.
    sites : the number of sites that the rows are assigned to if `fit` gets no `site`.
    graph : the links between sites: "complete", "ring", "star", "path", or a `taciturn.Graph` or networkx
        graph whose nodes are the sites in the order of their sorted names.
    data_norm : a PUBLIC bound on the norm of a row; longer rows are clipped. "from data" takes it from the
        data, warns, and marks the certificate.
    colluding : None trusts no other site: the promise holds whatever they do. `plan_` says which method
        was chosen for that, and why; method="penalty" asks for the paper's. A number trusts all but so
        many of them: the noise of all honest sites protects each record together (`MaskedDescent`), and the
        model is about as good as a trusted centre's. The certificate says what is left if more collude.
    fit_intercept : whether the model has an intercept, inside the clipped and regularised vector.
    intercept_scaling : the constant that carries the intercept, in units of data_norm. A smaller one leaves
        more of the bound to the features, and holds the intercept closer to 0.
    classes : the PUBLIC list of labels. Where it is left out it is read off y, and the certificate says so.
    class_weight, class_shares : "balanced" with the PUBLIC share of each class, {label: share}, lets rare
        classes count as much as common ones; or a mapping of public weights. The heaviest class counts 1 and
        the others less, so that the cost stays what it is.
    C, regularization, noise, rounds : chosen by the planner ("auto", "best", None) or given. `noise`
        is not for `colluding`, whose noise is discrete.
    max_rounds : the most rounds that the planner may choose; not together with `rounds`.
    method : "penalty" for the paper's penalty perturbation; or a private method of your own, with `rounds`,
        which is refused if it costs more than epsilon.
    effort : "full", the default, lets the planner rehearse on made-up rows first, for some seconds; "quick"
        does without. With `colluding` or `method` there is nothing to rehearse, and it is refused.
    whiten : True learns better coordinates from noisy moments of the rows first, False does not; by default
        where that should pay. A model of the paper's method in such coordinates shortens long rows before it
        predicts: `whitening_`.
    ledger : a new file for a durable record: SQLite, each charge on disk before its release, so that a crash
        leaves a true account; see `SqliteLedger`. None keeps it in memory.
    random_state : None draws secret noise. A seed makes the fit replayable, and the certificate says
        `simulated`.
    large_delta : allows a delta above one over the number of records, which is refused otherwise: the
        certificate then says what it is worth.
    verbose : True shows on a terminal how far the run is; in a pipe or a log it stays silent.

    Attributes
    ----------
    whitening_ : None, or V and v side by side, (entries, features + 1): scores are divided by ||V x + v||
        where that is above 1.
    coef_, intercept_, classes_ : the model: the average of what the sites released last, which costs nothing.
    site_coef_, site_intercept_ : what each site released last, (sites, outputs, features).
    certificate_ : what the fit cost; `certificate_.epsilon` never exceeds `epsilon`.
    plan_ : the settings of the run.
    trace_ : every released vector.

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
        """P(class) of each row.

        For more than two classes each against the rest, scaled to add up to 1; with `colluding`, softmax.
        """
        scores = self._decide(X)
        if self.softmax_:
            return np.asarray(softmax(scores, axis=1))
        chance = expit(scores)
        if chance.shape[1] == 1:
            return np.hstack([1 - chance, chance])
        return np.asarray(chance / np.maximum(chance.sum(axis=1, keepdims=True), 1e-300))

    def predict_log_proba(self, X: Any) -> Array:
        """log P(class) of each row."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearSVC(PrivateLinearClassifier):
    """A linear support vector classifier with the Huber hinge, under one (epsilon, delta) for the whole fit.

    `taciturn.check` shows the owner of the rows, before anything is spent, which values do not fit.

    Parameters
    ----------
    smoothing : half the width of the parabola that rounds the hinge off: the proof needs bounded curvature.
    others : as for `PrivateLogisticRegression`, and so are the attributes.
    """

    smoothing: float = 0.5

    def _loss(self) -> Loss:
        return SmoothHinge(self.smoothing)
