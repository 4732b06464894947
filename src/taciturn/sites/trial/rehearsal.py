"""A whole network in one folder, on this machine: files, keys and data for every site, to try things out."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import SiteError
from ...jobfile.job_format import KINDS
from ...jobfile.toml_files import write_toml
from ..files.keys import Authority, new_key, pem, signing_request, write_new

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 32_000)
_OWNER = {"approve": {"kinds": list(KINDS), "by_site": True}}  # the rows are generated


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on, below those that the system gives to callers."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as attempt:
            if attempt.connect_ex((LOOPBACK, port)) != 0:
                ports.append(port)
        if len(ports) == count:
            return ports
    raise SiteError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}.")


def issue(authority: Authority, folder: Path, name: str, hosts: Sequence[str]) -> None:
    """A key and a certificate for `name`: <name>.key and <name>.pem."""
    key = new_key(folder / f"{name}.key")
    write_new(folder / f"{name}.pem", pem(authority.sign(signing_request(key, name, hosts))))


def make_network(
    folder: Path,
    shards: Sequence[tuple[Any, Any]],
    links: Sequence[tuple[int, int]],
    *,
    job: Mapping[str, Any],
    site: Mapping[str, Any],
    hosts: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> list[Path]:
    """Write job.toml, a throw-away authority and, per shard (X, y), a folder with site.toml, keys and data.

    `job` and `site` hold the keys of the two files that cannot be worked out here; a job with a seed is said
    to be a rehearsal. Returns the site files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = names or [f"site-{i}" for i in range(len(shards))]
    hosts = hosts or [LOOPBACK] * len(shards)
    ports = free_ports(len(shards))
    entries = [
        {"name": name, "endpoint": f"tls/{host}:{port}", "samples": len(y)}
        for name, host, port, (_, y) in zip(names, hosts, ports, shards, strict=True)
    ]
    facts = {"format": 2, "kind": "train", "dimension": int(np.shape(shards[0][0])[1])} | dict(job)
    facts |= {"sites": entries, "links": [[names[i], names[j]] for i, j in links]}
    write_new(folder / "job.toml", write_toml(facts).encode())
    authority = Authority.throw_away()
    authority.save(folder)
    own = ({"rehearsal": True} if facts.get("seed") is not None else _OWNER) | dict(site)
    if facts.get("seed") is None:
        own["budget"] = {"ledger": "account/budget.sqlite"} | dict(own["budget"])
    return [
        _make_site(folder / name, name, shard, authority, own, host)
        for name, host, shard in zip(names, hosts, shards, strict=True)
    ]


def _make_site(
    folder: Path, name: str, shard: tuple[Any, Any], authority: Authority, site: Mapping[str, Any], host: str
) -> Path:
    folder.mkdir()
    issue(authority, folder, name, [host])
    X, y = shard
    np.savez(folder / "rows.npz", X=np.asarray(X, dtype=np.float64), y=np.asarray(y, dtype=np.float64))
    keys = {"private": f"{name}.key", "certificate": f"{name}.pem", "authority": "../authority.pem"}
    facts = {"site": name, "job": "../job.toml", "data": "rows.npz", "state": "state", "keys": keys} | dict(
        site
    )
    write_new(folder / "site.toml", write_toml(facts).encode())
    return folder / "site.toml"
