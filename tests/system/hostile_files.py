"""Hostile files. Run as a script with FOLDER; prints as JSON how each of them ended.

It runs with little memory and time; a file that takes too much of either ends it.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from support.sitemasked import JOB as MASKED
from support.sitework import JOB, network
from taciturn.cli.app import run
from taciturn.jobfile.toml_files import write_toml

RED = "\x1b[31mred\r\nnext line"
TABLE = {"dimension": None, "label": {"column": "y", "positive": "a"}}


def job(sites: int = 3, **changes: Any) -> str:
    """The text of a job file."""
    names = [f"site-{k}" for k in range(sites)]
    entries: dict[str, Any] = {
        "format": "taciturn-job/1",
        "dimension": 4,
        "sites": [{"name": name, "endpoint": "tls/127.0.0.1:7447", "samples": 24} for name in names],
        "links": [[one, other] for one, other in pairwise(names)],
    }
    return write_toml({k: v for k, v in (JOB | entries | changes).items() if v is not None})


def fields(count: int, name: str = "f{}") -> dict[str, Any]:
    return {"fields": [{"name": name.format(k), "low": 0, "high": 1} for k in range(count)]}


def job_of(fields: Iterable[str]) -> str:
    """The text of a job with these fields, many as they may be: joined, since writing TOML takes long."""
    return job(**TABLE, schema={"fields": ["@"]}).replace('"@"', ", ".join(fields))


def jobs() -> dict[str, str]:
    """Job files by what is wrong with them."""
    return {
        "rounds": job(1000, rounds=10**6),
        "masked rounds": job(1000, **MASKED | {"rounds": 10**5}),
        "fields": job_of(f'{{ name = "f{k}", low = 0, high = 1 }}' for k in range(200_000)),
        "same fields": job(**TABLE, schema=fields(20_000, RED)),
        "categories": job(**TABLE, schema={"fields": [{"name": "f", "values": ["a"] * 200_000}]}),
        "features": job_of([f'{{ name = "f", values = {json.dumps([str(k) for k in range(1_100_000)])} }}']),
        "sites": job(20_000, C=25.0),
        "lists in lists": "rounds = " + 100_000 * "[",
        "tables in tables": "rounds = " + 10_000 * "{a = " + "1" + 10_000 * "}",
        "a long key": ".".join(50_000 * ["a"]) + " = 1",
        "a long header": "[" + ".".join(50_000 * ['"a"']) + "]",
        "digits": "rounds = " + 10_000 * "9",
        "a step of 400 digits": job(dual_step=10**400),
        "rows of 400 digits": job(sites=3, large_delta=True, delta=0.6, clip=10**400),
        "a masked job of nothing": job(**MASKED | {"C": 5e-324}),
        "a masked job of everything": job(**MASKED | {"epsilon": 1.7e308}),
        "a port that there is not": job(relay={"name": "r", "endpoint": "tls/127.0.0.1:99999"}),
        "a host that there cannot be": job(relay={"name": "r", "endpoint": "tls/a..b:7447"}),
        "a large file": "#" * 20_000_000,
        "a key with escapes": f"{json.dumps(RED)} = 1",
        "a key without end": "k" * 100_000 + " = 1",
        "a name with escapes": job(name=RED),
        "a site with escapes": job(links=[["site-0", RED]]),
        "no text": "\udcff",
    }


def ended(arguments: list[str]) -> dict[str, Any]:
    """How a command ended, and what it said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: int | str = run(arguments)
        except Exception as error:
            code = repr(error)[:200]
    return {"code": code, "err": err.getvalue(), "out": out.getvalue()}


def main(folder: Path) -> dict[str, Any]:
    path = network(folder / "net")[0]
    told = {}
    for label, text in jobs().items():
        (folder / "net" / "job.toml").write_text(text, errors="surrogateescape")
        told[label] = ended(["site", "check", str(path), "--wait", "0"])
    for label, text in {"statement": 100_000 * "[", "proof": 100_000 * '{"site":'}.items():
        (folder / label).write_text(text)
        proof = ["--proof"] if label == "proof" else []
        authority = ["--authority", str(folder / "net" / "authority.pem")]
        told[label] = ended(["site", "verify", *proof, str(folder / label), *authority])
    return told


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
