"""What several test folders share."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import taciturn as tt
from support.ports import take_ports
from support.problems import make_sites
from taciturn.data import Dataset, load_adult
from taciturn.errors import DataUnavailable, PrivacyLeakWarning
from taciturn.sites.trial import rehearsal

settings.register_profile(  # no test asserts a duration; every run tries the same cases
    "taciturn", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("taciturn"), derandomize=False)
settings.load_profile("taciturn")  # others: pytest --hypothesis-profile explore

rehearsal.free_ports = take_ports  # before any test takes its name from there

os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 starves its workers beside other tests


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is loaded now stays to the end: nothing need look through it for garbage, now or later."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def adult_files() -> Iterator[None]:
    """$TACITURN_DATA where it is set, else the folder beside the repository that may hold it."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("TACITURN_DATA") and (beside / "adult").is_dir():
            patch.setenv("TACITURN_DATA", str(beside))
        yield


@pytest.fixture(scope="session")
def adult(adult_files: None) -> Dataset:
    """Adult as the paper prepares it; skipped where it cannot be had."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            return load_adult(scaling="paper")
    except DataUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def problem():
    """Five sites, 40 rows each, six features."""
    return tt.Problem(make_sites(), loss=tt.Logistic(), C=20.0, regularization=0.5)


@pytest.fixture(scope="session")
def ring():
    return tt.Graph.ring(5)
