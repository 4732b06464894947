"""Calls of questions, for the test that every parameter matters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import taciturn as tt
from support.parameters import Entry


class _Installed(tt.Program):
    """A program with a private half."""

    steps = start = query = advance = result = None  # type: ignore[assignment]

    def __init__(self, private: Any) -> None:
        self.private = private


def _purity(X: Any) -> Iterator[Entry]:
    rng = np.random.default_rng(0)

    def stateful(row: Any, parameters: Any) -> Any:
        return row * rng.uniform()

    pure = _Installed(lambda row, parameters: row * parameters["w"])
    base = {"program": pure, "X": X, "length": 2, "parameters": {"w": [1.0, 1.0]}}
    changed = {"program": _Installed(stateful), "X": "?", "length": 0, "parameters": {"w": "?"}, "seed": -1}
    yield Entry("check_purity", "installed", lambda **k: tt.check_purity(**k), base, changed)


def ask_curves(X: Any, table: dict[str, Any], counted: dict[str, Any]) -> Iterator[Entry]:
    """Survival and correlations."""

    def told(found: Any) -> Any:
        return [repr(found.certificate.run), found.certificate.sites, found.table()]

    half = {name: value for name, value in counted.items() if name != "bins"}
    ranges = {"a": (-1.0, 1.0), "b": (-1.0, 1.0)}
    base = {"table": table, "schema": ranges, "epsilon": 5.0, "random_state": 0}
    rows = {"table": table | {"a": -X[:, 0]}, "schema": {"a": (-2.0, 1.0), "b": (-1.0, 1.0)}}
    yield Entry(
        "private_correlations", "sums", lambda **k: told(tt.private_correlations(**k)), base, rows | half
    )
    time = 5 * np.abs(X[:, 0])
    kind = table["kind"]
    base = {"time": time, "event": kind == "x", "group": kind, "groups": ["x", "y"], "horizon": 4.0}
    base |= {"epsilon": 5.0, "random_state": 0}
    rows = {"time": time[::-1], "event": kind == "y", "horizon": 3.0}
    rows |= {"group": kind[::-1], "groups": ["y", "x"]}
    yield from _purity(X)
    yield Entry(
        "private_survival", "counts", lambda **k: told(tt.private_survival(**k)), base, rows | counted
    )
