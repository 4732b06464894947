"""Made-up rows for seeded runs; the digest of a run, and its certificate without texts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import taciturn as tt

Rows = tuple[Any, np.ndarray]
WORDS = ("format", "status", "statement", "theorems", "conditions", "sha256", "ledger_head", "tables")
"""Entries of a certificate that say the rest in words, depend on versions, or stand for others."""


@dataclass(frozen=True)
class Outcome:
    """What a run left behind as one hash, and its certificate if it has one."""

    hash: str
    certificate: tt.Certificate | None = None


def rows(seed: int, B: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """B made-up rows of norm at most 1, and their labels."""
    made = np.random.default_rng(seed)
    X = made.normal(size=(B, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(X @ made.normal(size=d) + 0.1 * made.normal(size=B) > 0, 1.0, -1.0)


def with_constant(sites: list[Rows], constant: float = 0.5) -> list[Rows]:
    """The same rows, shorter, with a last column that is the same everywhere."""
    return [(np.column_stack([0.75 * X, np.full(len(X), constant)]), y) for X, y in sites]


def with_classes(sites: list[Rows], classes: int) -> list[Rows]:
    """The same rows in several classes, by their first columns."""
    return [(X, X[:, :classes].argmax(axis=1).astype(float)) for X, _ in sites]


def with_targets(sites: list[Rows]) -> list[Rows]:
    """The same rows with real numbers to learn."""
    return [(X, 2.0 * X[:, 0] - X[:, 1] + 0.1 * y) for X, y in sites]


def as_sparse(sites: list[Rows]) -> list[Rows]:
    """The same rows without their small entries, as sparse matrices."""
    return [(sparse.csr_array(np.where(np.abs(X) > 0.3, X, 0.0)), y) for X, y in sites]


def digest(*arrays: Any) -> str:
    """SHA-256 over the bytes of some arrays."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return whole.hexdigest()


def digest_of_text(values: Any) -> str:
    """SHA-256 over plain values as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def hash_run(run: tt.Run) -> str:
    """All numbers of a run."""
    return digest(run.loss, run.accuracy, run.consensus_gap, run.coef)


def hash_vectors(run: tt.Run) -> str:
    """What a run has to the last bit on any engine; a cluster adds up disagreement in another order."""
    return digest(run.loss, run.accuracy, run.coef)


FORMAT_2 = ("charged_epsilon", "released")
"""What format 2 of a certificate added; the pins are of format 1, as are the sites' `planned_` schedules."""


def certified(text: str) -> dict[str, Any]:
    """The numbers and facts of a certificate, without words; every site with its own schedules."""
    stated = json.loads(text)
    tables = stated["tables"]
    found = {key: value for key, value in stated.items() if key not in (*WORDS, *FORMAT_2)}
    found["run"] = {k: v for k, v in stated["run"].items() if k not in ("versions", "relation", "marks")}
    found["run"]["marks"] = len(stated["run"]["marks"])
    found["sites"] = [
        {key: _unfold(key, value, tables) for key, value in site.items() if not key.startswith("planned_")}
        for site in stated["sites"]
    ]
    return found


def _unfold(key: str, value: Any, tables: list[Any]) -> Any:
    """A site's entry, with the schedule itself in place of its number."""
    schedule = key == "dual_step" or (key.startswith("charged_") and key != "charged_rounds")
    return tables[value] if schedule and value is not None else value
