"""A network of tables in one folder: a job that asks questions, and a CSV for every site."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.jobfile.toml_files import write_toml
from taciturn.sites.files.keys import Authority, write_new
from taciturn.sites.trial.rehearsal import LOOPBACK, free_ports, issue

NAMES = ("alpha", "beta", "gamma")


def patients(rows: int, seed: int = 0) -> dict[str, list[Any]]:
    """Made-up patients: some cells are missing."""
    rng = np.random.default_rng(seed)
    age = rng.normal(58, 12, rows).round(0)
    sex = rng.choice(["female", "male"], rows, p=[0.4, 0.6])
    pressure = rng.normal(120 + 0.3 * age, 15).round(0)
    time = np.minimum(rng.exponential(60, rows), 48).round(1)
    dead = rng.random(rows) < 0.5
    return {
        "age": ["" if rng.random() < 0.05 else value for value in age.tolist()],
        "sex": sex.tolist(),
        "pressure": pressure.tolist(),
        "months": time.tolist(),
        "died": ["yes" if d else "no" for d in dead],
    }


SCHEMA = {
    "fields": [
        {"name": "age", "low": 0, "high": 110},
        {"name": "sex", "values": ["female", "male"]},
        {"name": "pressure", "low": 60, "high": 240},
        {"name": "months", "low": 0, "high": 48},
        {"name": "died", "kind": "boolean"},
    ]
}


def to_csv(table: Mapping[str, Sequence[Any]]) -> str:
    file = io.StringIO()
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(table)
    lines.writerows(zip(*table.values(), strict=True))
    return file.getvalue()


def make_asked(
    folder: Path,
    tables: Sequence[Mapping[str, Sequence[Any]]],
    *,
    job: Mapping[str, Any],
    site: Mapping[str, Any] | None = None,
    names: Sequence[str] = NAMES,
) -> list[Path]:
    """job.toml and, per table, a folder with site.toml, keys and rows.csv; returns the site files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = names[: len(tables)]
    ports = free_ports(len(tables))
    sites = [
        {"name": n, "endpoint": f"tls/{LOOPBACK}:{p}", "samples": len(next(iter(t.values())))}
        for n, p, t in zip(names, ports, tables, strict=True)
    ]
    facts = {"format": 2, "name": "asked", "schema": SCHEMA, "epsilon": 2.0} | dict(job)
    facts.setdefault("sites", sites)
    write_new(folder / "job.toml", write_toml(facts).encode())
    authority = Authority.throw_away()
    authority.save(folder)
    paths = []
    for name, table in zip(names, tables, strict=True):
        own = folder / name
        own.mkdir()
        issue(authority, own, name, [LOOPBACK])
        (own / "rows.csv").write_text(to_csv(table))
        keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "../authority.pem"}
        entries = {"site": name, "job": "../job.toml", "data": "rows.csv", "state": "state", "keys": keys}
        entries |= {"budget": {"epsilon": 10.0, "large_delta": True}, "patience": 60.0}
        kinds = sorted({one["kind"] for one in facts.get("questions", [facts])})
        entries["approve"] = {"kinds": kinds}
        entries |= {"rehearsal": True} if facts.get("seed") is not None else {}
        write_new(own / "site.toml", write_toml(entries | dict(site or {})).encode())
        paths.append(own / "site.toml")
    return paths
