"""Every contender on a case: rivals tuned on the test rows first, then all seeds; ours as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

import taciturn as tt
from taciturn.masked.public import rule

from .rivals import Rival
from .tasks import Array, Case, Setting

MASKED, ALONE, CENTRE = "masked descent", "taciturn, trusting nobody", "trusted centre, the same descent"
_TUNING = (1001, 1002)  # seeds that no result uses


@dataclass(frozen=True)
class Result:
    """Test loss and accuracy of one contender on one case: mean and standard deviation over seeds."""

    data: str
    sites: int
    epsilon: float
    contender: str
    loss: float
    loss_std: float
    accuracy: float
    accuracy_std: float
    seeds: int
    split: str = "even"
    colluding: int | None = None
    topology: str = "complete"
    decentralised: bool = True
    setting: Setting = ()
    spent: float | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What was measured; nothing is measured twice."""
        return (
            self.data,
            self.sites,
            self.epsilon,
            self.contender,
            self.split,
            self.colluding,
            self.topology,
        )

    def to_dict(self) -> dict[str, object]:
        """As plain JSON."""
        return asdict(self)


def measured(case: Case, name: str, models: Sequence[Array], **facts: object) -> Result:
    """The scores of a contender's models."""
    scores = [case.task.score(f) for f in models]
    (loss, accuracy), (loss_std, accuracy_std) = np.mean(scores, axis=0), np.std(scores, axis=0)
    return Result(
        case.task.name,
        case.sites,
        case.epsilon,
        name,
        float(loss),
        float(loss_std),
        float(accuracy),
        float(accuracy_std),
        len(scores),
        **facts,  # type: ignore[arg-type]
    )


def masked(case: Case, colluding: int, split: str, seeds: int, name: str = MASKED) -> Result:
    """Masked descent by its blind rule; all seeds share each product of the rows."""
    task = case.task
    problem = tt.Problem(task.hands(case.sites, split), C=1.0, regularization=1e-6 * case.sites)
    method = tt.MaskedDescent(
        epsilon=case.epsilon, delta=case.delta, colluding=colluding, constant=task.ball.constant
    )
    rounds = rule.ROUNDS if task.dimension <= rule.FULL else rule.ROUNDS_WIDE
    run = tt.simulate(problem, "ring", method, rounds=rounds, repeats=seeds, seed=0, progress=False)
    spent = run.certificate(case.delta).epsilon
    if spent > case.epsilon:
        raise ArithmeticError(f"{spent} was spent of {case.epsilon}")
    return measured(case, name, run.average(), split=split, colluding=colluding, spent=spent)


def trusting_nobody(case: Case, seeds: int) -> Result:
    """What the estimator gives a user with `colluding=None` who sets the budget and nothing else."""
    task, models, spent = case.task, [], 0.0
    for seed in range(seeds):
        model = tt.PrivateLogisticRegression(
            epsilon=case.epsilon, delta=case.delta, sites=case.sites, random_state=seed
        ).fit(task.X, task.y)
        models.append(np.append(model.coef_[0] / task.ball.share, model.intercept_ / task.ball.constant))
        spent = max(spent, model.certificate_.epsilon)
    return measured(case, ALONE, models, spent=spent)


def contend(case: Case, rival: Rival, seeds: int) -> Result | None:
    """A rival with the setting that is best on the test rows."""
    best = tuned(case, rival)
    if best is None:
        print(f"{rival.name}: no setting is private enough", file=sys.stderr)
        return None
    models = rival.fit(case, [best], range(seeds))[0]
    if models is None:
        return None
    return measured(
        case,
        rival.name,
        models,
        setting=best,
        decentralised=rival.decentralised,
        topology=case.topology,
    )


def tuned(case: Case, rival: Rival) -> Setting | None:
    """The setting with the least loss on the rows set aside."""
    if len(rival.grid) == 1:
        return rival.grid[0]
    best, least = _best(case, rival, rival.grid, (None, np.inf))
    if best is not None and rival.refined is not None:
        best, least = _best(case, rival, list(_halfway(rival, best)), (best, least))
    return best


def _best(
    case: Case, rival: Rival, settings: Sequence[Setting], best: tuple[Setting | None, float]
) -> tuple[Setting | None, float]:
    for setting, models in zip(settings, rival.fit(case, settings, _TUNING), strict=True):
        if models is not None:
            loss = float(np.mean([case.task.score(f)[0] for f in models]))
            best = (setting, loss) if loss < best[1] else best
    return best


def _halfway(rival: Rival, best: Setting) -> Iterator[Setting]:
    """Half a step of the grid to either side."""
    k = rival.refined or 0
    values = sorted({setting[k] for setting in rival.grid})
    half = (values[1] / values[0]) ** 0.5
    for factor in (1 / half, half):
        yield (*best[:k], best[k] * factor, *best[k + 1 :])
