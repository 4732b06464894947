"""Stored results are read back unchanged; damaged files count as missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from taciturn.paper.results_store import ResultStore, fingerprint


def test_arrays_come_back_bit_for_bit(tmp_path: Path) -> None:
    store, values = ResultStore(tmp_path / "curves"), {"a": np.random.default_rng(0).normal(size=(3, 4))}
    assert store.get("key") is None
    store.put("key", values)
    found = store.get("key")
    assert found is not None and found["a"].tobytes() == values["a"].tobytes()


@pytest.mark.parametrize("damage", [b"", b"no archive at all", None])
def test_a_damaged_file_counts_as_missing(tmp_path: Path, damage: bytes | None) -> None:
    store = ResultStore(tmp_path)
    store.put("key", {"a": np.arange(1000.0)})
    path = tmp_path / "key.npz"
    path.write_bytes(path.read_bytes()[:200] if damage is None else damage)
    assert store.get("key") is None


def test_a_file_with_changed_bytes_counts_as_missing(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.put("key", {"a": np.random.default_rng(0).integers(0, 4, 300)})
    path = tmp_path / "key.npz"
    content, missing = path.read_bytes(), 0
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        missing += store.get("key") is None
    assert missing > len(content) / 6


def test_a_fingerprint_depends_on_the_facts_and_not_on_their_order() -> None:
    assert fingerprint({"a": 1, "b": [1.5]}) == fingerprint({"b": [1.5], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2}) != fingerprint({"a": 2.5})
