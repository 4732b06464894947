"""A report of simulated runs: loss and accuracy by round, their range over repeats, and the privacy cost."""

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

_ELSEWHERE = ("versions", "seed", "simulated")  # settings that are shown in the provenance or in the marks


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
    delta : the delta of the stated (epsilon, delta).
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
    gaps = {
        name: run for name, run in runs.items() if run.consensus_gap.any()
    }  # after masked sums all sites agree
    found = [
        Chart("loss", "Loss", "mean loss, L(t)", _curves(runs, "loss"), private=False, note=note),
        Chart(
            "accuracy",
            "Accuracy",
            "share of records classified correctly",
            _curves(runs, "accuracy"),
            "percent",
            private=False,
            note=note,
        ),
        Chart(
            "gap",
            "Disagreement",
            "largest distance of a site from the mean",
            _curves(gaps, "consensus_gap"),
            log=_wide([run.consensus_gap for run in gaps.values()]),
            note=note,
        ),
    ]
    return [chart for chart in found if chart.curves]


def _curves(runs: Mapping[str, Run], metric: str) -> list[Curve]:
    curves = []
    for name, run in runs.items():
        values: Array = getattr(run, metric)
        if values.size and bool(np.isfinite(values).all()):
            ranged = values.shape[0] > 1
            curves.append(
                Curve(
                    name,
                    range(1, values.shape[1] + 1),
                    values.mean(axis=0).tolist(),
                    values.min(axis=0).tolist() if ranged else (),
                    values.max(axis=0).tolist() if ranged else (),
                )
            )
    return curves


def _wide(values: list[Array]) -> bool:
    """Whether the values differ so much that a linear axis would hide the small values."""
    low = min((part.min() for part in values), default=0.0)
    high = max((part.max() for part in values), default=0.0)
    return bool(0 < 10 * low < high)


def graph_of(settings: Mapping[str, Any]) -> Graph | None:
    """The network that a run recorded; None if the run recorded no network."""
    facts = settings.get("graph")
    return facts and Graph(facts["sites"], tuple((i, j) for i, j in facts["edges"]), facts["name"])


def _settings(each: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that all runs share, then the other settings of each run."""
    plain = {
        name: {key: _shown(key, value) for key, value in facts.items() if key not in _ELSEWHERE}
        for name, facts in each.items()
    }
    first = next(iter(plain.values()))
    shared = {
        key: first[key] for key in first if all(facts.get(key) == first[key] for facts in plain.values())
    }
    own = {
        name: {key: value for key, value in facts.items() if key not in shared}
        for name, facts in plain.items()
    }
    return shared | {name: facts for name, facts in own.items() if facts}


def _shown(key: str, value: Any) -> Any:
    """A setting as it is shown. A graph is shown by name and size; its links are listed with its picture."""
    if key == "graph":
        return f"{value['name']}, {value['sites']} sites, {len(value['edges'])} links"
    return value


def _provenance(runs: Mapping[str, Run], more: Mapping[str, Any]) -> dict[str, Any]:
    seeds = {name: run.settings.get("seed") for name, run in runs.items()}
    found: dict[str, Any] = {}
    if any(seed is not None for seed in seeds.values()):
        alike = len(set(seeds.values())) == 1
        found["seed"] = (
            next(iter(seeds.values())) if alike else "; ".join(f"{n}: {s}" for n, s in seeds.items())
        )
    found.update(more)
    versions = next(iter(runs.values())).settings.get("versions")
    return found | ({"versions": dict(versions)} if versions else {})
