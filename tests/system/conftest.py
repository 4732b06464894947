"""What the tests with real processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kernels import compile_kernels
from support.siteprocess import SiteProcess


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
