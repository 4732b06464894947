"""The differences between two jobs, key by key. All keys and values of job.toml are public.

A neighbour with a different job sends the keys and values of that job. This site shows them to its operator
and uses them for nothing else.
"""

from __future__ import annotations

import json
from typing import Any

from ...core.canonical import canonical, digest
from ...core.errors import one_line
from .job import HASH_FORM, NetworkJob

FORMAT = "taciturn-job-keys/1"
LONGEST = 60  # characters of a value; a longer value is shown as its hash
MOST = 5  # the most keys that the text about a difference lists


def show_keys(job: NetworkJob) -> bytes:
    """The keys of a job with their values, or with hashes of long values, for a neighbour."""
    facts = {"format": FORMAT, "hash": HASH_FORM, "keys": _texts(job)}
    return canonical(facts).encode()


def difference(job: NetworkJob, shown: bytes) -> str:
    """How the job of a neighbour differs from `job`, as text; `show_keys` returned `shown` there."""
    try:
        facts: dict[str, Any] = json.loads(shown)
        form, theirs = facts["hash"], dict(facts["keys"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return "it does not say how its job differs"
    if form != HASH_FORM:
        return one_line(f"its release writes jobs in format {form!r:.20}, this release in format {HASH_FORM}")
    ours = _texts(job)
    keys = [key for key in dict.fromkeys([*ours, *theirs]) if ours.get(key) != theirs.get(key)]
    if not keys:
        return "it states the same keys and values, but signs another job"
    more = f" and {len(keys) - MOST} more" if len(keys) > MOST else ""
    return ", ".join(_words(key, ours.get(key), theirs.get(key)) for key in keys[:MOST]) + more


def _texts(job: NetworkJob) -> dict[str, str]:
    texts = {key: canonical(value) for key, value in job.facts.items()}
    return {
        key: text if len(text) <= LONGEST else f"hash {digest(job.facts[key])[:12]}"
        for key, text in texts.items()
    }


def _words(key: str, ours: str | None, theirs: object) -> str:
    there = "not set in its job" if theirs is None else f"{theirs!s:.{LONGEST}} in its job"
    here = "not set in this site's" if ours is None else f"{ours} in this site's"
    return one_line(f"`{key:.{LONGEST}}` is {there}, {here}")
