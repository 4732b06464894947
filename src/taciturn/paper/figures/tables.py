"""A figure's numbers: one tidy CSV row per curve, repeat and round, and JSON with all that made them."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np

from ...core.versions import versions
from .attack_runner import AttackFigureResult
from .build import load_rows
from .runner import CurveResult, FigureResult

COLUMNS = (
    "figure",
    "panel",
    "curve",
    "method",
    "repeat",
    "round",
    "loss",
    "accuracy",
    "consensus_gap",
    "distance",
    "paper_epsilon",
    "pure_epsilon",
    "epsilon",
)

ATTACK_COLUMNS = (
    "figure",
    "noise",
    "observer",
    "rounds",
    "repeat",
    "record",
    "cosine",
    "label_found",
    "eta_ratio",
)


def to_csv(drawn: FigureResult | AttackFigureResult) -> str:
    """One row per curve, repeat and round; the privacy columns are the same in every repeat."""
    if isinstance(drawn, AttackFigureResult):
        return _attack_csv(drawn)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for outcome in drawn.outcomes:
        run, curve = outcome.run, outcome.curve
        for repeat in range(run.loss.shape[0]):
            for t in range(run.loss.shape[1]):
                at = repeat, t
                values = (run.loss[at], run.accuracy[at], run.consensus_gap[at], outcome.distance[at])
                spent = (outcome.paper[t], outcome.pure[t], outcome.epsilon[t])
                names = (drawn.figure.name, curve.panel, curve.name, curve.method, repeat, t + 1)
                writer.writerow([*names, *(_cell(value) for value in (*values, *spent))])
    return buffer.getvalue()


def _attack_csv(attacked: AttackFigureResult) -> str:
    """One row per level of noise, observer, number of rounds, repeat and record."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(ATTACK_COLUMNS)
    for noise, result in attacked.results.items():
        for i, j, repeat, record in np.ndindex(*result.cosine.shape):
            at = i, j, repeat, record
            names = (attacked.figure.name, noise, result.observers[i], result.rounds[j], repeat)
            cosine, ratio = float(result.cosine[at]), float(result.eta_ratio[at])
            values = (_cell(cosine), int(result.label[at]), _cell(ratio))
            writer.writerow([*names, attacked.figure.run.records[record], *values])
    return buffer.getvalue()


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def to_json(drawn: FigureResult | AttackFigureResult, *, quick: bool) -> str:
    """Settings, seed, versions, the data's checksum, and each curve's last numbers."""
    figure = drawn.figure
    return json.dumps(
        {
            "figure": figure.name,
            "quick": quick,
            "seed": figure.run.seed,
            "settings": figure.model_dump(),
            "data_sha256": provenance(drawn)["data_sha256"],
            "versions": versions(),
            "results": _results(drawn),
        },
        indent=2,
        allow_nan=False,
    )


def _results(drawn: FigureResult | AttackFigureResult) -> list[dict[str, Any]]:
    if isinstance(drawn, FigureResult):
        return [summary(outcome) for outcome in drawn.outcomes]
    return [
        {
            "noise": noise,
            "epsilon": _finite(drawn.epsilon[noise]),
            "chance": result.chance,
            "prior": result.prior,
            "prior_label": result.prior_label,
            "table": result.table(),
        }
        for noise, result in drawn.results.items()
    ]


def summary(outcome: CurveResult) -> dict[str, Any]:
    """One curve after its last round; null where there is no finite number."""
    loss = outcome.run.loss[:, -1]
    return {
        "panel": outcome.curve.panel,
        "curve": outcome.curve.name,
        "method": repr(outcome.method),
        "key": outcome.key,
        "loss_mean": float(loss.mean()),
        "loss_range": float(np.ptp(loss)),
        "accuracy_mean": float(outcome.run.accuracy[:, -1].mean()),
        "consensus_gap": float(outcome.run.consensus_gap[:, -1].max()),
        "distance": _finite(float(outcome.distance[:, -1].max())),
        "optimal_loss": outcome.optimal_loss,
        "paper_epsilon": _finite(float(outcome.paper[-1])),
        "pure_epsilon": _finite(float(outcome.pure[-1])),
        "epsilon": _finite(float(outcome.epsilon[-1])),
        "delta": outcome.delta,
        "worst_site": outcome.certificate.worst_site if outcome.private else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def provenance(drawn: FigureResult | AttackFigureResult) -> dict[str, Any]:
    """Where the numbers come from: the checksum of the data, and the file that was run."""
    facts = drawn.figure.data
    rows = load_rows(facts)
    return {"data": facts.name, "data_sha256": dict(rows.sha256), "figure": drawn.figure.name}
