"""Section 2, privacy: the quality of each model at (1, 1e-5) for the whole run, and the printed epsilon.

A peer uses the best settings of a small grid, chosen on the test rows. If our accountant needs less noise
than the peer does, the peer uses the smaller noise. Both favour the peer. The settings of
taciturn come from its planner and are never tuned.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import taciturn as tt

from .. import federations
from ..pins import Environment
from ..rows import DEAL, SITES, adult, write_rows
from ..running.sandbox import run
from .accounting import gaussian_epsilon, gaussian_noise
from .work import fresh, last_words

EPSILON, DELTA, SEEDS, FEWER, TRIES = 1.0, 1e-5, 10, 5, 2
MOMENTUM, PROCESSES = 0.9, 2
# Rounds -> steps. The best step is not the first or the last one; more rounds need smaller steps.
CENTRAL = {300: (2.0, 4.0, 8.0), 1000: (1.0, 2.0, 4.0)}
LOCAL = {300: (1.0, 2.0, 4.0), 1000: (0.25, 0.5, 1.0)}
OPACUS = {16: (8.0, 16.0, 32.0), 32: (4.0, 8.0, 16.0)}  # epochs, in batches of 256
SMALL = list(product((3, 10, 30), (0.25, 1.0, 4.0), (0.1, 0.3, 1.0)))  # rounds, step, clip, for large noise
WIDE = 10.0  # a clip, in steps, that no update reaches: gradients have a bound without it
CS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
_CLASSIC = math.sqrt(2 * math.log(1.25 / DELTA))  # for the classic Gaussian mechanism

Cases = list[dict[str, Any]]


def rows_of_smallest() -> int:
    """B, the number of rows, of the smallest site."""
    return min(len(y) for _, y in adult().hands(SITES, DEAL))


def summary(models: Any) -> dict[str, float]:
    """The mean test loss and accuracy over the seeds."""
    found = [adult().score(np.asarray(f)) for f in models]
    (loss, accuracy), (spread, _) = np.mean(found, axis=0), np.std(found, axis=0)
    return {"loss": float(loss), "accuracy": float(accuracy), "loss_std": float(spread), "seeds": len(found)}


def measure_ours() -> list[dict[str, Any]]:
    """Masked descent with one colluding site, and penalty perturbation."""
    (models, spent), (others, worst) = _fits(1), _fits(None)
    return [
        {"contender": "masked descent", "trusts": "all but one of the other sites", "prints": spent}
        | {"unit": "a record, whole run", "whole_run": spent}
        | summary(models),
        {"contender": "penalty perturbation", "trusts": "no other party", "prints": worst}
        | {"unit": "a record, whole run", "whole_run": worst}
        | summary(others),
    ]


def _fits(colluding: int | None) -> tuple[list[Any], float]:
    """The models of an estimator with only the budget set, and the largest certified epsilon."""
    task, models, spent = adult(), [], 0.0
    for seed in range(SEEDS):
        model = tt.PrivateLogisticRegression(
            epsilon=EPSILON, delta=DELTA, sites=SITES, colluding=colluding, random_state=seed
        ).fit(task.X, task.y)
        models.append(np.append(model.coef_[0] / task.ball.share, model.intercept_ / task.ball.constant))
        spent = max(spent, model.certificate_.epsilon)
    return models, spent


def measure_diffprivlib(env: Environment, base: Path) -> list[dict[str, Any]]:
    """With default settings, and with the best C. Its epsilon is pure, a stronger guarantee than required."""

    def fit(C: float, seeds: int) -> Any:
        folder = fresh(base / "privacy-diffprivlib")
        measured = run(federations.diffprivlib(env, write_rows(base / "rows"), EPSILON, C, seeds), folder)
        if not measured["ended"]:
            raise RuntimeError(last_words(folder))
        return json.loads((folder / "models.json").read_text(encoding="utf-8"))

    tries = {C: summary(fit(C, 2))["loss"] for C in CS}
    best = min(tries, key=lambda C: tries[C])
    common = {"trusts": "one centre that holds all rows", "prints": EPSILON, "whole_run": EPSILON}
    common |= {"unit": "a record, the fit, delta = 0"}
    return [
        common | {"contender": "default settings (C = 1)"} | summary(fit(1.0, SEEDS)),
        common | {"contender": f"best C, {best:g}"} | summary(fit(best, SEEDS)),
    ]


def measure_flower(env: Environment, base: Path) -> list[dict[str, Any]]:
    """Central noise for a client, as documented; and central and local noise for a record."""
    B, client, record, local = rows_of_smallest(), [], [], []
    for T, step, share in SMALL:
        client.append(_flower("central", T, step, share * step, multiplier=gaussian_noise(1.0, T, DELTA)))
    for T, step in _pairs(CENTRAL):
        multiplier = 2 * gaussian_noise(1.0, T, DELTA) / (B * WIDE)
        record.append(_flower("central", T, step, WIDE * step, MOMENTUM, multiplier=multiplier))
    for T, step in _pairs(LOCAL):
        mechanism = {"sensitivity": 2 * step / B, "epsilon": _CLASSIC / gaussian_noise(1.0, T, DELTA)}
        local.append(_flower("local", T, step, WIDE * step, MOMENTUM, delta=DELTA, **mechanism))
    found = []
    for name, cases, trusts in (
        ("central noise for a whole client", client, "the server"),
        ("central noise for a record", record, "the server"),
        ("local noise for a record", local, "no other party"),
    ):
        best, models, printed, ladder = _best(env, base, "flower", cases)
        whole = EPSILON
        if name.endswith("client"):  # clipping never increases the distance of two updates
            moved = min(2.0, 2 * best["step"] / (B * best["clip"]))
            whole = gaussian_epsilon(moved / best["multiplier"], best["rounds"], DELTA)
        found.append(
            {"contender": name, "trusts": trusts, "prints": printed[0] if printed else None}
            | {"unit": "a client, whole run" if printed else "nothing", "whole_run": whole}
            | {"setting": _setting(best), "ladder": ladder}
            | summary(models)
        )
    return found


def _flower(
    kind: str, rounds: int, step: float, clip: float, momentum: float = 0.0, **more: float
) -> dict[str, Any]:
    """Settings of Flower. A gradient has norm at most 1. Momentum of released models costs nothing."""
    common = {"kind": kind, "rounds": rounds, "step": step, "clip": clip, "momentum": momentum}
    return common | {"tail": rounds // 2} | more


def _pairs(grid: dict[int, tuple[float, ...]]) -> list[tuple[int, float]]:
    """All pairs (rounds or epochs, step) of a grid."""
    return [(count, step) for count, steps in grid.items() for step in steps]


def measure_appfl(env: Environment, base: Path) -> list[dict[str, Any]]:
    """Laplace noise as in its example, Gaussian noise for a record, and Opacus."""
    B = rows_of_smallest()
    laplace = [
        _appfl(10, step, {"dp_mechanism": "laplace", "epsilon": 1.0, "clip_norm": 1})
        for step in (0.01, 0.1, 1.0, 4.0)
    ]
    gaussian = [
        _appfl(T, step, {"dp_mechanism": "gaussian", "epsilon": B * _CLASSIC / gaussian_noise(1.0, T, DELTA)})
        | {"momentum": MOMENTUM}
        for T, step in _pairs(LOCAL)
    ]
    dp = {"dp_mechanism": "opacus", "dp_config": {"max_grad_norm": 1.0}}  # Opacus sets the noise
    opacus = [
        _appfl(1, step, dp) | {"batch": 256, "epochs": epochs, "target": [EPSILON, DELTA]}
        for epochs, step in _pairs(OPACUS)
    ]
    # A record moves the mean gradient by at most 2 sqrt(d) / B in the 1-norm, and scaling it to norm 1
    # may double that. The noise covers a move by 2.
    whole_laplace = 10 * min(1.0, 2 * math.sqrt(adult().dimension) / B)
    found = []
    for name, cases, unit, whole in (
        ("Laplace noise, epsilon 1 a round, ten rounds", laplace, "nothing", whole_laplace),
        ("Gaussian noise for a record", gaussian, "nothing", EPSILON),
        ("Opacus, one round", opacus, "a record, the site's training", EPSILON),
    ):
        best, models, printed, ladder = _best(env, base, "appfl", cases)
        said = printed[0].partition("= ")[2].partition(",")[0] if printed else None
        found.append(
            {
                "contender": name,
                "trusts": "no other party",
                "prints": float(said) if said else None,
                "unit": unit,
            }
            | {"whole_run": whole, "setting": _setting(best), "ladder": ladder}
            | summary(models)
        )
    return found


def _appfl(rounds: int, step: float, dp: dict[str, Any]) -> dict[str, Any]:
    """Settings of APPFL: one gradient step on all rows per round; a gradient has norm at most 1."""
    clip = {"clip_grad": True, "clip_value": 1.0, "clip_norm": 2}
    common = {
        "rounds": rounds,
        "step": step,
        "momentum": 0.0,
        "batch": None,
        "tail": rounds // 2,
    }
    return common | {"dp": clip | dp}


def _setting(best: dict[str, Any]) -> str:
    rounds = "1 round" if best["rounds"] == 1 else f"{best['rounds']} rounds"
    text = f"{rounds}, step {best['step']:g}"
    if best["momentum"]:
        text += f", momentum {best['momentum']:g}"
    elif "clip" in best:
        text += f", clip {best['clip']:g}"
    return text + (f", {best['epochs']} epochs" if best.get("epochs") else "")


def _best(
    env: Environment, base: Path, peer: str, cases: Cases
) -> tuple[dict[str, Any], Sequence[Any], list[Any], list[list[float]]]:
    """The case with the smallest test loss, its models for all seeds, the epsilon that the peer printed, and
    the smallest loss for every number of rounds (or of epochs, if there is one round)."""
    tried, _ = _in_process(env, base, peer, [case | {"seed": s} for case in cases for s in range(TRIES)])
    losses = [summary(tried[i : i + TRIES])["loss"] for i in range(0, len(tried), TRIES)]
    place = int(np.nanargmin(losses))
    best, first = cases[place], tried[place * TRIES : (place + 1) * TRIES]
    more, printed = _in_process(env, base, peer, [best | {"seed": seed} for seed in range(TRIES, FEWER)])
    least: dict[float, float] = {}
    for case, loss in zip(cases, losses, strict=True):
        count = case.get("epochs", case["rounds"])
        least[count] = min(loss, least.get(count, math.inf))
    return best, [*first, *more], printed, [[count, least[count]] for count in sorted(least)]


def _in_process(env: Environment, base: Path, peer: str, cases: Cases) -> tuple[list[Any], list[Any]]:
    """The models of all cases, computed by several processes; and the peer's messages in the first case."""
    folder = fresh(base / f"privacy-{peer}")
    rows = str(write_rows(base / "rows")[0].parent)
    parts = [cases[i::PROCESSES] for i in range(PROCESSES)]
    for i, part in enumerate(parts):
        facts = {"rows": rows, "cases": part}
        (folder / f"settings-{i}.json").write_text(json.dumps(facts), encoding="utf-8")
    measured = run(federations.in_process(env, peer, folder, PROCESSES), folder)
    done = [folder / f"models-{i}.json" for i in range(PROCESSES)]
    if not measured["ended"] or not all(path.exists() for path in done):
        raise RuntimeError(last_words(folder))
    models: list[Any] = [None] * len(cases)
    for i, path in enumerate(done):
        models[i::PROCESSES] = json.loads(path.read_text(encoding="utf-8"))
    return models, json.loads((folder / "printed-0.json").read_text(encoding="utf-8"))
