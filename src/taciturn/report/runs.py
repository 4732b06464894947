"""A report of simulated runs: loss, accuracy (each with its range) and privacy cost, all by round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ParameterError
from ..core.types import Array
from ..graph import Graph
from ..methods.run import Run
from ..privacy.certificate.certificate import Certificate
from .certificates import from_certificates
from .data import Chart, Curve, ReportData

_ELSEWHERE = ("versions", "seed", "simulated")  # other parts of the report show these settings


def from_runs(
    runs: Mapping[str, Run],
    *,
    title: str,
    subtitle: str = "",
    delta: float = 1e-5,
    graph: Graph | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> ReportData:
    """A report of one or more runs.

    Parameters
    ----------
    runs : results of `simulate`, keyed by the names of their curves.
    delta : the delta at which the privacy cost is computed.
    graph : the network to draw; by default the network that the first run recorded.
    provenance : facts about the origin of the numbers, such as the checksum of the data.
    """
    if not runs:
        raise ParameterError("`runs` must contain at least one run; it is empty.")
    return from_certificates(
        {name: Certificate.from_ledger(run.ledger, delta=delta) for name, run in runs.items()},
        title=title,
        subtitle=subtitle,
        graph=graph or graph_of(next(iter(runs.values())).settings),
        charts=_charts(runs),
        settings=_settings({name: run.settings for name, run in runs.items()}),
        provenance=_provenance(runs, provenance or {}),
    )


def _charts(runs: Mapping[str, Run]) -> list[Chart]:
    """The charts of all quantities that the runs recorded."""
    repeats = max(run.consensus_gap.shape[0] for run in runs.values())
    note = f"The line is the mean of {repeats} repeats, the shaded area their range." if repeats > 1 else ""
    apart = {name: run for name, run in runs.items() if run.consensus_gap.any()}  # runs with different models
    gaps = [run.consensus_gap for run in apart.values()]
    low, high = min((gap.min() for gap in gaps), default=0.0), max((gap.max() for gap in gaps), default=0.0)
    wide = bool(0 < 10 * low < high)  # a linear axis would hide the small values
    title, label, form = "Accuracy", "share of records classified correctly", "percent"
    if all(run.ledger.run.loss.kind == "regression" for run in runs.values()):
        title, label, form = "Error", "mean absolute error", "plain"
    distance = "largest distance of a site from the mean"
    loss, accuracy, gap = _curves(runs, "loss"), _curves(runs, "accuracy"), _curves(apart, "consensus_gap")
    found = [
        Chart("loss", "Loss", "mean loss, L(t)", loss, private=False, note=note),
        Chart("accuracy", title, label, accuracy, form, private=False, note=note),
        Chart("gap", "Disagreement", distance, gap, log=wide, note=note),
    ]
    return [chart for chart in found if chart.curves]


def _curves(runs: Mapping[str, Run], metric: str) -> list[Curve]:
    curves = []
    for name, run in runs.items():
        values: Array = getattr(run, metric)
        if values.size and bool(np.isfinite(values).all()):
            parts = [values.mean(axis=0)]
            if values.shape[0] > 1:
                parts += [values.min(axis=0), values.max(axis=0)]
            curves.append(Curve(name, range(1, values.shape[1] + 1), *(part.tolist() for part in parts)))
    return curves


def graph_of(settings: Mapping[str, Any]) -> Graph | None:
    """The network that a run recorded; None if the run recorded no network."""
    facts = settings.get("graph")
    return facts and Graph(facts["sites"], tuple((i, j) for i, j in facts["edges"]), facts["name"])


def _settings(each: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that all runs share, then the other settings of each run.

    A graph is shown by its name and size; its links are listed with its picture.
    """
    plain = {
        name: {key: value for key, value in facts.items() if key not in _ELSEWHERE}
        for name, facts in each.items()
    }
    for facts in plain.values():
        if graph := facts.get("graph"):
            facts["graph"] = f"{graph['name']}, {graph['sites']} sites, {len(graph['edges'])} links"
    first = next(iter(plain.values()))
    shared = {
        key: first[key] for key in first if all(facts.get(key) == first[key] for facts in plain.values())
    }
    own = {
        name: {key: value for key, value in facts.items() if key not in shared}
        for name, facts in plain.items()
    }
    return shared | {name: facts for name, facts in own.items() if facts}


def _provenance(runs: Mapping[str, Run], more: Mapping[str, Any]) -> dict[str, Any]:
    seeds = {name: run.settings.get("seed") for name, run in runs.items()}
    found: dict[str, Any] = {}
    if len(set(seeds.values())) > 1:
        found["seed"] = "; ".join(f"{name}: {seed}" for name, seed in seeds.items())
    elif None not in seeds.values():
        found["seed"] = next(iter(seeds.values()))
    versions = next(iter(runs.values())).settings.get("versions")
    return found | dict(more) | ({"versions": dict(versions)} if versions else {})
