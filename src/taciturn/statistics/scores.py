"""private_score: accuracy, confusion matrix, AUC and calibration of a classifier, from one masked sum."""

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
    """Labels and scores that are known already, as columns `truth` and `scores`."""

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
    """Accuracy, confusion matrix, AUC and calibration on private rows, under one (epsilon, delta) in all.

    Everything comes from one masked sum of counts. It is charged to the `Budget` it is in, if it is in one.

    Parameters
    ----------
    clf : a fitted classifier of taciturn, or a pipeline of `BoundedEncoder` and one, whose certificate says
        what the fit cost; or any classifier with `public`. It must score a row by that row alone.
    X, y : the rows and their labels; `clf.classes_` is taken to be public.
    epsilon, delta, site, person, sites, colluding, large_delta : as in the fit of an estimator.
    bins : cells of a score between 0 and 1, an even number; more of them tell more and are noisier.
    level : of all intervals.
    public : insists that no private row was used to make `clf`; the certificate says so. Such a model is
        asked row by row, which takes a while.
    ledger : a new file for a durable record, or None.
    random_state : a seed makes it replayable, and the certificate says `simulated`.
    engine : "local", this process; or, with a seed, "ray" or a `taciturn.runtime.RayEngine`: the same bits.

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
        raise ParameterError(f"`bins` must be even, so that 1/2 lies between two of them; got {bins}.")
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
