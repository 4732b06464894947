"""Shared parts of the tests of real sites: small networks on loopback, and handmade frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.sites.files.site import Site, load_site
from taciturn.sites.protocol.frames import NOTHING, Kind, Slot, encode
from taciturn.sites.trial.rehearsal import make_network
from taciturn.sites.wire.trust import Identity, load_identity, load_trust

RING_OF_3 = ((0, 1), (1, 2), (0, 2))
PATH_OF_3 = ((0, 1), (1, 2))

JOB: dict[str, Any] = {
    "name": "trial",
    "rounds": 5,
    "loss": "logistic",
    "C": 10.0,
    "regularization": 0.01,
    "dual_step": 0.5,
    "delta": 1e-5,
    "clip": 64.0,
    "grid": 2.0**-40,  # so fine that it hides no difference between two solves
    "tol": 1e-10,
    "seed": 1,
}
SITE: dict[str, Any] = {
    "penalty": {"kind": "geometric", "start": 0.5, "ratio": 1.04},
    "noise": {"kind": "gaussian", "std": 1.0},
    "budget": {"epsilon": 1000.0},
    "patience": 150.0,  # less than a test waits for a site
}


def shards(sites: int, rows: int = 24, d: int = 4, seed: int = 0) -> list[tuple[Any, Any]]:
    """Rows of norm at most 1 with labels that a line roughly explains."""
    rng = np.random.default_rng(seed)
    dealt = []
    for _ in range(sites):
        X = rng.normal(size=(rows, d))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        dealt.append((X, np.where(X[:, 0] + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)))
    return dealt


def network(
    folder: Path,
    links: Sequence[tuple[int, int]] = RING_OF_3,
    *,
    job: dict[str, Any] | None = None,
    site: dict[str, Any] | None = None,
    data: list[tuple[Any, Any]] | None = None,
    **options: Any,
) -> list[Path]:
    """The site files of a small network in `folder`."""
    dealt = shards(1 + max(max(link) for link in links)) if data is None else data
    return make_network(folder, dealt, links, job=JOB | (job or {}), site=SITE | (site or {}), **options)


def sites(folder: Path, links: Sequence[tuple[int, int]] = RING_OF_3, **options: Any) -> list[Site]:
    """The same, loaded."""
    return [load_site(path) for path in network(folder, links, **options)]


def identity(site: Site) -> Identity:
    """A site's key and certificate."""
    keys = site.file.keys
    trust = load_trust(site.path(keys.authority))
    return load_identity(site.path(keys.private), site.path(keys.certificate), site.name, trust)


def frame(site: Site, kind: Kind, t: int = 0, **changes: Any) -> bytes:
    """A frame that `site` signs; `changes` replace its fields before."""
    who = changes.pop("signer", identity(site))
    fields = {"job": site.job.hash, "attempt": 1, "sender": site.number, "scope": NOTHING} | changes
    slot = Slot(kind, fields["attempt"], t, fields["sender"])
    return who.seal(encode(fields["job"], slot, fields["scope"], fields.get("payload", b"")))


SCHEMA = {"fields": [{"name": "age", "low": 0, "high": 100}, {"name": "sex", "values": ["f", "m"]}]}
TABLE = """age,sex,income,note
50,f,high,secret-1
200,m,low,secret-2
,f,high,secret-3
30,x,,secret-4
short,row
20,m,high,secret-6
"""


def table(folder: Path, text: str, suffix: str = "csv", **job: Any) -> Site:
    """A site that holds a table: `text` as rows.csv."""
    facts = {"schema": SCHEMA, "label": {"column": "income", "positive": "high"}, "C": 1.0, "dimension": None}
    facts["intercept"] = False
    paths = network(
        folder, [(0, 1)], data=shards(2, rows=6), job=JOB | facts | job, site={"data": f"rows.{suffix}"}
    )
    (paths[0].parent / "rows.csv").write_text(text)
    return load_site(paths[0])
