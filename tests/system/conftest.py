"""Fixtures of the tests with real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kernels import compile_kernels
from support.siteprocess import SiteProcess
from support.sitering import Ring, ring_network


@pytest.fixture(scope="session", autouse=True)
def machine_code() -> None:
    """Compiled and on disk before the first process that needs it starts its clock."""
    compile_kernels()


@pytest.fixture
def started() -> Iterator[Callable[..., SiteProcess]]:
    """Starts sites, and ends those that are left."""
    running: list[SiteProcess] = []

    def start(path: Path, fault: dict[str, Any] | None = None) -> SiteProcess:
        running.append(SiteProcess(path, fault))
        return running[-1]

    yield start
    for entry in running:
        if entry.process.exitcode is None:
            entry.kill()


@pytest.fixture
def ring_of(tmp_path: Path) -> Iterator[Callable[..., Ring]]:
    """Makes rings of sites, and ends what is left of them."""
    made: list[Ring] = []

    def make(size: int, kind: str, **job: Any) -> Ring:
        made.append(Ring(ring_network(tmp_path / "net", size, kind, **job)))
        return made[-1]

    yield make
    for ring in made:
        ring.stop()
