"""A plan as files to begin with: a training job, or a network's job and one site file for each site.

They are valid as they stand. What a plan cannot know, such as where the rows lie, has a placeholder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data.tables.schema import Schema
from ..diskfile import write_whole
from ..errors import ParameterError
from ..objective.softmax import Softmax
from ..planning.masked_plan import MaskedPlan
from ..planning.privacy_plan import PrivacyPlan
from ..sites.files.toml import write_toml
from ..sites.files.toml_fields import write_loss

TRAINING, NETWORK = "train.toml", "job.toml"
_HEAD = "# Made by `taciturn plan`: names, paths, labels and columns are placeholders.\n"
_EXACT = {"clip": 64.0, "grid": 2.0**-34, "tol": 1e-10}  # as in the templates of `taciturn site init`


def write_planned(found: PrivacyPlan | MaskedPlan, folder: Path, schema: Schema | None) -> list[Path]:
    """train.toml, job.toml and a site file for each site, in a folder that has none of them yet."""
    texts = {TRAINING: training_entries(found, schema), NETWORK: network_entries(found)}
    texts |= {f"{name}.toml": site_entries(found, i) for i, name in enumerate(_names(found))}
    there = [name for name in texts if (folder / name).exists()]
    if there:
        raise ParameterError(f"`--toml` must be a folder without {there[0]}; got {folder}.")
    return [write_whole(folder / name, _HEAD + write_toml(entries)) for name, entries in texts.items()]


def training_entries(found: PrivacyPlan | MaskedPlan, schema: Schema | None) -> dict[str, Any]:
    """What `taciturn train` reads: all rows on one machine."""
    plain, names = found.to_dict(), _names(found)
    asked = plain["budget"]["epsilon"]
    loss = _loss(found)["kind"]
    facts: dict[str, Any] = {
        "format": "taciturn-training/1",
        "name": "planned",
        "epsilon": float(min(asked) if isinstance(asked, list) else asked),
        "delta": found.delta,
        "loss": loss,
        "rounds": found.rounds,
        "links": [[names[i], names[j]] for i, j in _edges(found)],
    }
    facts |= _person(found)
    if isinstance(found, MaskedPlan):
        facts["colluding"] = found.method.colluding
    else:
        facts |= {"C": found.C, "regularization": found.regularization, "noise": found.blueprint.run.noise}
    label: dict[str, Any] = {"column": "label"}
    label |= {"scale": 1.0} if loss == "log-cosh" else {"classes": ["no", "yes"]}
    fields = _fields(schema, found.certificate.run.dimension)
    sites = [{"name": name, "data": f"{name}.csv"} for name in names]
    return facts | {"label": label, "sites": sites, "schema": {"fields": fields}}


def network_entries(found: PrivacyPlan | MaskedPlan) -> dict[str, Any]:
    """What all sites of a network agree on: arrays of rows, each site at an address of its own."""
    run, names = found.certificate.run, _names(found)
    samples = [facts.samples for facts in found.certificate.sites]
    facts: dict[str, Any] = {
        "format": "taciturn-job/1",
        "name": "planned",
        "rounds": found.rounds,
        "loss": _loss(found),
        "C": found.C,
        "regularization": found.regularization,
        "delta": found.delta,
        "dimension": run.dimension,
        **_person(found),
    }
    if isinstance(found, MaskedPlan):
        facts |= {"method": "masked", "epsilon": found.method.epsilon, "colluding": found.method.colluding}
    else:
        facts |= {"dual_step": found.to_dict()["dual_step"], **_EXACT}
    sites = [
        {"name": name, "endpoint": f"tls/{name}.example:7447", "samples": rows}
        for name, rows in zip(names, samples, strict=True)
    ]
    links = [[names[i], names[j]] for i, j in _edges(found)]
    return facts | {"sites": sites, "links": links}


def site_entries(found: PrivacyPlan | MaskedPlan, i: int) -> dict[str, Any]:
    """What site i keeps to itself."""
    name, plain = _names(found)[i], found.to_dict()
    asked = plain["budget"]["epsilon"]
    facts: dict[str, Any] = {"site": name, "job": NETWORK, "data": "rows.npz", "state": "state"}
    if isinstance(found, PrivacyPlan):
        facts["penalty"] = _own(plain["penalty"], i)
        facts["noise"] = {key: _own(value, i) for key, value in plain["noise"].items()}
        facts["output_noise"] = plain["output_noise"]
    budget = {"epsilon": float(_own(asked, i)), "delta": found.delta}
    keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "authority.pem"}
    return facts | {"budget": budget, "keys": keys}


def _person(found: PrivacyPlan | MaskedPlan) -> dict[str, Any]:
    """The column that says whose row it is, where persons are protected."""
    return {"person": "person"} if found.certificate.run.unit == "person" else {}


def _own(entry: Any, i: int) -> Any:
    return entry[i] if isinstance(entry, list) else entry


def _names(found: PrivacyPlan | MaskedPlan) -> list[str]:
    return [f"site-{i}" for i in range(found.certificate.run.sites)]


def _edges(found: PrivacyPlan | MaskedPlan) -> list[tuple[int, int]]:
    return list(found.graph.edges)


def _loss(found: PrivacyPlan | MaskedPlan) -> dict[str, Any]:
    """The loss as files write it; for several classes at once they say logistic, and list the classes."""
    if isinstance(found, PrivacyPlan):
        facts = found.certificate.run.loss
        return {"kind": facts.name, **facts.parameters}
    loss = found.facts.loss
    return {"kind": "logistic"} if isinstance(loss, Softmax) else write_loss(loss)


def _fields(schema: Schema | None, dimension: int) -> list[dict[str, Any]]:
    if schema is not None:
        return list(schema.to_dict()["fields"])
    return [{"name": f"x{k}", "low": 0.0, "high": 1.0} for k in range(max(1, dimension - 1))]
