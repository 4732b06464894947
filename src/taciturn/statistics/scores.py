"""private_score: accuracy, confusion matrix, AUC and calibration of a classifier, from one noisy sum."""

from __future__ import annotations

from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from ..core import checks
from ..core.errors import ParameterError
from ..estimators.labels import places
from ..privacy.ledger.active import join_budget, origin_of
from ..questions.question import CountsQuestion, NoisyCounts, PublicTable, SiteTable
from ..questions.shipped.score import PrivateScore, score_cells, score_lengths, summarise
from .counting import AskOptions, CountWishes, ask_here, spell_options
from .scored_models import model_marks, row_scores


class _Scored(CountsQuestion):
    """A question whose table has the columns `truth` (true labels) and `scores`, computed beforehand."""

    classes: tuple[Any, ...]
    bins: int
    level: float

    def reads(self, public: PublicTable) -> tuple[str, ...]:
        return ()

    def lengths(self, public: PublicTable) -> tuple[int, ...]:
        return score_lengths(len(self.classes), self.bins)

    def cells(self, public: PublicTable, table: SiteTable) -> NDArray[np.int64]:
        return score_cells(table.columns["truth"], table.columns["scores"], self.bins)

    def estimate(self, public: PublicTable, found: NoisyCounts) -> PrivateScore:
        return summarise(found, self.classes, self.bins, self.level)


@spell_options
def private_score(
    clf: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    bins: int = 20,
    level: float = 0.95,
    public: bool = False,
    **options: Unpack[AskOptions],
) -> PrivateScore:
    """Accuracy, confusion matrix, AUC and calibration on private rows, with one (epsilon, delta) in total.

    All answers come from one noisy sum of counts, which is charged to the active `Budget`, if there is one.

    Parameters
    ----------
    clf : a fitted classifier of taciturn with its certificate, or a pipeline of a `BoundedEncoder` and such a
        classifier. With `public=True`, any fitted classifier whose score of a row depends on that row only.
    X, y : the rows and their labels; `clf.classes_` is assumed to be public.
    epsilon, delta, site, person, sites, colluding, large_delta : as in the fit of an estimator.
    bins : the even number of bins into which scores from 0 to 1 are counted; more bins show more detail,
        with more noise.
    level : the confidence level of every interval.
    public : True declares that no private row was used to make `clf`; the certificate repeats this claim.
        Such a model gets one row at a time, which is slow.
    ledger : a new file in which the charge is recorded, or None.
    random_state : a seed makes the noise reproducible; the certificate is then marked `simulated`.
    engine : "local" runs in this process. With a seed, "ray" or a `taciturn.runtime.RayEngine` runs on a
        cluster, with equal results.

    Examples
    --------
    >>> import numpy as np, taciturn as tt
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (4000, 3))
    >>> clf = tt.PrivateLogisticRegression(sites=4, colluding=1, random_state=0).fit(X, X[:, 0] > 0)
    >>> score = tt.private_score(clf, X, X[:, 0] > 0, epsilon=0.5, colluding=1, random_state=0)
    >>> bool(score.accuracy.low < clf.score(X, X[:, 0] > 0) < score.accuracy.high)
    True
    """
    if checks.whole("bins", bins, least=2) % 2:
        raise ParameterError(f"`bins` must be even, so that 1/2 lies between two bins; got {bins}.")
    level = checks.probability("level", level)
    classes = np.asarray(getattr(clf, "classes_", ()))
    if len(classes) < 2:
        raise ParameterError("`clf` must be a fitted classifier with at least two `classes_`.")
    if not isinstance(public, bool):
        raise ParameterError(f"`public` must be True or False; got {public!r}.")
    marks = model_marks(clf, public=public, simulated=options.get("random_state") is not None)
    wishes = CountWishes(epsilon, marks=marks, **options)
    known = places(classes, y)
    with join_budget(origin_of(clf)):
        scores = row_scores(clf, X, len(known), len(classes))
        silent = ~np.isfinite(scores).all(axis=1)
        truth = np.where((known < 0) | silent, len(classes), known)
        columns = {"truth": truth, "scores": np.nan_to_num(scores)}
        question = _Scored(classes=tuple(classes.tolist()), bins=bins, level=level)
        (found,) = ask_here([question], PublicTable(), columns, len(truth), wishes, "private_score")
    return cast(PrivateScore, found)
