"""Run every contender on a case. Rivals are tuned on the test rows first; taciturn uses its defaults."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

import taciturn as tt
from taciturn.data.features.blind_choice import schema_map
from taciturn.methods.programs.masked_descent import PublicFacts

from .anchors import Anchor
from .rivals import Rival
from .tasks import Array, Case, Setting

MASKED, ALONE, CENTRE = "masked descent", "taciturn, trusting nobody", "trusted centre, the same descent"
MAPPED, CURVES = "masked descent, mapped", "masked descent, curves"
PLAIN, PENALTY = "masked descent, not whitened", "taciturn, trusting nobody, not whitened"
WHITE_PENALTY = "taciturn, trusting nobody, the paper's method, whitened"
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
        """The key of the result; no key is measured twice."""
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
        """The result as plain JSON."""
        return asdict(self)


def measured(case: Case, name: str, models: Sequence[Array], **facts: object) -> Result:
    """The scores of a contender's models."""
    return _result(case, name, [case.task.score(f) for f in models], **facts)


def _result(case: Case, name: str, scores: Sequence[tuple[float, float]], **facts: object) -> Result:
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
    """Masked descent with its default settings, in whitened coordinates (`PLAIN`: in the original ones).

    `MAPPED` uses the feature map that the default rule chooses, `CURVES` only its curves.
    """
    task = case.task
    if name in (MAPPED, CURVES):
        curves, surfaces = schema_map(task.schema, len(task.y), case.epsilon, case.delta)
        task = task.mapped(curves, surfaces if name == MAPPED else 0)
        case = replace(case, task=task)
    method = tt.MaskedDescent(
        epsilon=case.epsilon,
        delta=case.delta,
        colluding=colluding,
        constant=task.ball.constant,
        whiten=False if name == PLAIN else None,
    )
    rows = len(task.y)
    facts = PublicFacts(case.sites, rows, rows, task.dimension, tt.Logistic(), 0.0)
    least, rounds = (1e-12 if method.whitens(facts) else 1e-6), method.usual_rounds(facts)
    problem = tt.Problem(task.hands(case.sites, split), C=1.0, regularization=least * case.sites)
    run = tt.simulate(problem, "ring", method, rounds=rounds, repeats=seeds, seed=0, progress=False)
    spent = run.certificate(case.delta).epsilon
    if spent > case.epsilon:
        raise ArithmeticError(f"epsilon {spent} was spent instead of {case.epsilon}")
    return measured(case, name, run.average(), split=split, colluding=colluding, spent=spent)


def anchored(case: Case, anchor: Anchor, seeds: int) -> Result:
    """An anchor with the setting that is best on the test rows."""
    setting, scores = anchor.scores(case, seeds)
    return _result(case, anchor.name, scores, setting=setting, decentralised=False)


def trusting_nobody(case: Case, seeds: int, name: str = ALONE) -> Result:
    """The estimator with `colluding=None` and only the budget set.

    `PENALTY` is the paper's method on the original rows, `WHITE_PENALTY` in whitened coordinates.
    """
    task, scores, spent = case.task, [], 0.0
    asked = {} if name == ALONE else {"method": "penalty", "whiten": name == WHITE_PENALTY}
    for seed in range(seeds):
        model = tt.PrivateLogisticRegression(
            epsilon=case.epsilon, delta=case.delta, sites=case.sites, random_state=seed, **asked
        ).fit(task.X, task.y)
        margins = task.y_test * model.decision_function(task.X_test)
        scores.append((float(np.logaddexp(0, -margins).mean()), float((margins > 0).mean())))
        spent = max(spent, model.certificate_.epsilon)
    return _result(case, name, scores, spent=spent)


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
    """The setting with the smallest loss on the test rows."""
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
    """The settings half a grid step to either side of the best one."""
    k = rival.refined or 0
    values = sorted({setting[k] for setting in rival.grid})
    half = (values[1] / values[0]) ** 0.5
    for factor in (1 / half, half):
        yield (*best[:k], best[k] * factor, *best[k + 1 :])
