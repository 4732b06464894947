"""Every contender on every case: rivals tuned first, then ten seeds each, dealt and drawn anew.

A rival is tuned twice: on the test rows, which nobody may do, and on the planner's public rows, as blindly as
`taciturn` itself.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

import taciturn as tt

from .rivals import Case, Rival, Setting
from .tasks import Array, stand_in

OURS = "taciturn (planned, never tuned)"
_TUNING = (1001, 1002)  # seeds that no result uses


@dataclass(frozen=True)
class Result:
    """Test loss and accuracy of one contender on one case: mean and standard deviation over seeds."""

    data: str
    sites: int
    epsilon: float
    contender: str
    decentralised: bool
    loss: float
    loss_std: float
    accuracy: float
    accuracy_std: float
    seeds: int
    setting: Setting
    spent: float | None = None
    blind: bool = False  # whether the setting was chosen on public rows, as ours is

    def to_dict(self) -> dict[str, object]:
        """As plain JSON."""
        return asdict(self)


def ours(case: Case, seed: int) -> tuple[Array, float]:
    """What the estimator gives a user who sets the budget and nothing else; and what it certifies."""
    task = case.task
    model = tt.PrivateLogisticRegression(
        epsilon=case.epsilon, delta=case.delta, sites=case.sites, random_state=seed
    ).fit(task.X, task.y)
    f = np.append(model.coef_[0] / task.ball.share, model.intercept_ / task.ball.constant)
    return f, model.certificate_.epsilon


def contest(
    case: Case, rivals: Sequence[Rival], seeds: int, done: Container[tuple[str, bool]]
) -> Iterator[Result]:
    """One result after another, but for those that are done."""
    if (OURS, True) not in done:
        fits = [ours(case, seed) for seed in range(seeds)]
        scores = [case.task.score(f) for f, _ in fits]
        yield _result(case, OURS, scores, decentralised=True, spent=max(cost for _, cost in fits), blind=True)
    public = replace(case, task=stand_in(case.task))
    for rival in rivals:
        for blind in (False, True) if rival.blind and case.epsilon == 1.0 else (False,):
            if (rival.name, blind) in done:
                continue
            best = _tuned(public if blind else case, rival)
            if best is None:
                print(f"{rival.name}: no setting is private enough", file=sys.stderr)
                continue
            few = 1 if rival.name.startswith("no privacy") else seeds
            scores = _scores(case, rival, best, range(few))
            yield _result(
                case, rival.name, scores, decentralised=rival.decentralised, setting=best, blind=blind
            )


def _tuned(case: Case, rival: Rival) -> Setting | None:
    """The setting with the least loss on the rows set aside."""
    if len(rival.grid) == 1:
        return rival.grid[0]
    best, least = None, np.inf
    for setting in rival.grid:
        scores = _scores(case, rival, setting, _TUNING[:1])
        if scores and scores[0][0] < 1.05 * least:
            loss = float(np.mean([loss for loss, _ in scores + _scores(case, rival, setting, _TUNING[1:])]))
            if loss < least:
                best, least = setting, loss
    return best


def _scores(case: Case, rival: Rival, setting: Setting, seeds: Sequence[int]) -> list[tuple[float, float]]:
    found = []
    for seed in seeds:
        f = rival.fit(case, case.task.hands(case.sites, seed), setting, seed)
        if f is None:
            return []
        found.append(case.task.score(f))
    return found


def _result(
    case: Case,
    name: str,
    scores: Sequence[tuple[float, float]],
    *,
    decentralised: bool,
    blind: bool,
    setting: Setting = (),
    spent: float | None = None,
) -> Result:
    (loss, accuracy), (loss_std, accuracy_std) = np.mean(scores, axis=0), np.std(scores, axis=0)
    return Result(
        data=case.task.name,
        sites=case.sites,
        epsilon=case.epsilon,
        contender=name,
        decentralised=decentralised,
        loss=float(loss),
        loss_std=float(loss_std),
        accuracy=float(accuracy),
        accuracy_std=float(accuracy_std),
        seeds=len(scores),
        setting=tuple(setting),
        spent=spent,
        blind=blind,
    )
