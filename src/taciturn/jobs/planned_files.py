"""Write a plan as files: a job for `taciturn train`, and a job for a network with one file for each site.

The files are valid, with placeholders for what a plan does not know, such as the paths of the rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.errors import ParameterError
from ..core.files import write_whole
from ..data.tables.schema import Schema
from ..jobfile.job_format import FORMAT
from ..jobfile.owner_file import OWNER
from ..jobfile.toml_fields import write_loss
from ..jobfile.toml_files import write_toml
from ..methods.base import Network, RunOptions
from ..objective.softmax import Softmax
from ..planning.request import Plan

TRAINING, NETWORK = "train.toml", "job.toml"
_HEAD = "# Made by `taciturn plan`: names, paths, labels and columns are placeholders.\n"


def write_planned(found: Plan, folder: Path, schema: Schema | None) -> list[Path]:
    """Write train.toml, owner.toml, job.toml and a file for each site. No file is overwritten."""
    names = _names(found)
    texts = {TRAINING: training_entries(found, schema), NETWORK: network_entries(found)}
    texts |= {OWNER: {"rows": {name: f"{name}.csv" for name in names}}}
    texts |= {f"{name}.toml": site_entries(found, i) for i, name in enumerate(names)}
    there = [name for name in texts if (folder / name).exists()]
    if there:
        raise ParameterError(
            f"`--toml` must be a folder without files of an earlier plan; {folder} already has {there[0]}."
        )
    return [write_whole(folder / name, _HEAD + write_toml(entries)) for name, entries in texts.items()]


def training_entries(found: Plan, schema: Schema | None) -> dict[str, Any]:
    """The keys of train.toml, for `taciturn train`: all rows are on one machine."""
    facts = _shared(found) | {"epsilon": min(found.epsilon), **found.for_estimator}
    label: dict[str, Any] = {"column": "label"}
    label |= {"scale": 1.0} if facts["loss"]["kind"] == "log-cosh" else {"classes": ["no", "yes"]}
    columns = max(1, found.certificate.run.dimension - 1)
    fields = [{"name": f"x{k}", "low": 0.0, "high": 1.0} for k in range(columns)]
    table = {"fields": fields if schema is None else list(schema.to_dict()["fields"])}
    return facts | {"label": label, "sites": [{"name": name} for name in _names(found)], "schema": table}


def network_entries(found: Plan) -> dict[str, Any]:
    """The keys of a network's job.toml: the rows are arrays, and each site has its own address."""
    facts = _shared(found) | {"dimension": found.certificate.run.dimension, **found.for_job}
    d, planned = found.certificate.run.dimension, found.certificate.sites
    samples, degrees = zip(*((site.samples, site.degree) for site in planned), strict=True)
    if found.tol is not None:  # a method with a solver: its planned cost depends on clip, grid and tol
        aim = {"loss": found.loss, "C": found.C, "regularization": found.regularization}
        network = Network.without_rows(samples, degrees, total=len(planned), dimension=d, **aim)
        prepared = found.method.prepare(network, found.rounds, RunOptions(real=True, tol=found.tol))
        run = prepared.run_facts(simulated=False, where="network")
        facts |= {"clip": run.clip, "grid": run.grid, "tol": run.tol}
    sites = [
        {"name": name, "endpoint": f"tls/{name}.example:7447", "samples": rows}
        for name, rows in zip(_names(found), samples, strict=True)
    ]
    return facts | {"sites": sites}


def site_entries(found: Plan, i: int) -> dict[str, Any]:
    """The keys of the private file of site i."""
    name = _names(found)[i]
    facts: dict[str, Any] = {"site": name, "job": NETWORK, "data": "rows.npz", "state": "state"}
    facts |= {key: _own(value, i) for key, value in found.for_site.items()}
    budget = {"epsilon": found.epsilon[i], "delta": found.delta}
    keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "authority.pem"}
    return facts | {"budget": budget, "keys": keys}


def _shared(found: Plan) -> dict[str, Any]:
    """The keys that train.toml and job.toml have in common."""
    names = _names(found)
    # in a job file, softmax is the logistic loss with a list of classes
    loss = {"kind": "logistic"} if isinstance(found.loss, Softmax) else write_loss(found.loss)
    facts: dict[str, Any] = {
        "format": FORMAT,
        "kind": "train",
        "name": "planned",
        "delta": found.delta,
        "loss": loss,
        "rounds": found.rounds,
        "C": found.C,
        "regularization": found.regularization,
        "links": [[names[i], names[j]] for i, j in found.graph.edges],
    }
    if found.certificate.run.unit == "person":
        facts |= {"unit": "person", "person": "person"}
    return facts


def _own(entry: Any, i: int) -> Any:
    """The value for site i; `entry` may be a list with one value per site."""
    if isinstance(entry, dict):
        return {key: _own(value, i) for key, value in entry.items()}
    return entry[i] if isinstance(entry, list) else entry


def _names(found: Plan) -> list[str]:
    return [f"site-{i}" for i in range(found.certificate.run.sites)]
