"""Every contender on every case: rivals tuned first, then ten seeds each, dealt and drawn anew."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

import tacit

from .rivals import Case, Rival, Setting
from .tasks import Array

OURS = "tacit (planned, never tuned)"
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

    def to_dict(self) -> dict[str, object]:
        """As plain JSON."""
        return asdict(self)


def ours(case: Case, seed: int) -> tuple[Array, float]:
    """What the estimator gives a user who sets the budget and nothing else; and what it certifies."""
    task = case.task
    model = tacit.PrivateLogisticRegression(
        epsilon=case.epsilon, delta=case.delta, sites=case.sites, random_state=seed
    ).fit(task.X, task.y)
    f = np.append(model.coef_[0], model.intercept_) * np.sqrt(2)
    return f, model.certificate_.epsilon


def contest(case: Case, rivals: Sequence[Rival], seeds: int, done: Container[str]) -> Iterator[Result]:
    """One result after another, but for those that are done."""
    if OURS not in done:
        fits = [ours(case, seed) for seed in range(seeds)]
        scores = [case.task.score(f) for f, _ in fits]
        yield _result(case, OURS, True, scores, (), max(cost for _, cost in fits))
    for rival in rivals:
        if rival.name in done:
            continue
        best = _tuned(case, rival)
        if best is None:
            print(f"{rival.name}: no setting is private enough", file=sys.stderr)
            continue
        few = 1 if rival.name.startswith("no privacy") else seeds
        yield _result(case, rival.name, rival.decentralised, _scores(case, rival, best, range(few)), best)


def _tuned(case: Case, rival: Rival) -> Setting | None:
    """The setting with the least test loss."""
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
    decentralised: bool,
    scores: Sequence[tuple[float, float]],
    setting: Setting,
    spent: float | None = None,
) -> Result:
    (loss, accuracy), (loss_std, accuracy_std) = np.mean(scores, axis=0), np.std(scores, axis=0)
    return Result(
        case.task.name,
        case.sites,
        case.epsilon,
        name,
        decentralised,
        float(loss),
        float(loss_std),
        float(accuracy),
        float(accuracy_std),
        len(scores),
        tuple(setting),
        spent,
    )
