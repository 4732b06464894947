"""Fixtures that several test folders share."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import taciturn as tt
from support.ports import take_ports
from support.problems import make_sites
from taciturn.core.errors import DataUnavailable, PrivacyLeakWarning
from taciturn.data import Dataset, load_adult
from taciturn.privacy.ledger import late_calls
from taciturn.sites.trial import rehearsal

settings.register_profile(  # no test asserts a duration; every run tries the same cases
    "taciturn", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("taciturn"), derandomize=False)
settings.load_profile("taciturn")  # others: pytest --hypothesis-profile explore

rehearsal.free_ports = take_ports  # before any test takes its name from there

os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(
    prefix="taciturn-accounts-"
)  # no test has an account of the user's
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)
if os.path.isdir("/dev/shm"):  # where the keys of masked sites go
    os.environ["RUNTIME_DIRECTORY"] = tempfile.mkdtemp(prefix="taciturn-keys-", dir="/dev/shm")
    atexit.register(shutil.rmtree, os.environ["RUNTIME_DIRECTORY"], ignore_errors=True)

os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 starves its workers beside other tests

TESTS = Path(__file__).resolve().parent
PLACES = {
    "process": (
        "benchmarks/",
        "data/datasets/test_credit.py",
        "data/datasets/test_support.py",
        "docs/test_examples.py",
        "examples/",
        "report/test_browser.py",
        "system/",
        "test_seeded_results.py",
    ),
    "ray": ("runtime/ray/",),
    "slow": (
        "auditing/",
        "cli/jobs/test_train.py",
        "cli/research/test_audit.py",
        "cli/sites/test_check.py",
        "cli/sites/test_run.py",
        "cli/test_data.py",
        "cli/test_demo.py",
        "cli/test_plan.py",
        "contracts/test_canaries.py",
        "data/datasets/test_adult.py",
        "estimators/additive/",
        "estimators/test_colluding.py",
        "estimators/test_intervals.py",
        "estimators/test_lazy_rows.py",
        "estimators/test_personal.py",
        "estimators/test_scikit_learn.py",
        "estimators/test_utility.py",
        "estimators/test_whitened_rows.py",
        "methods/test_seam.py",
        "paper/sweeps/",
        "paper/test_claims.py",
        "paper/test_reproduce.py",
        "planning/test_forecast.py",
        "planning/test_plan.py",
        "privacy/accounting/test_persons.py",
        "privacy/accounting/test_totals.py",
        "privacy/accounting/test_widening.py",
        "privacy/test_discrete.py",
        "questions/test_correlations.py",
        "questions/test_survival.py",
        "runtime/test_masked.py",
        "sites/protocol/test_simulation.py",
        "sites/rounds/test_driver.py",
        "statistical/",
        "statistics/test_glm.py",
        "statistics/test_glm_persons.py",
        "statistics/test_scores.py",
        "test_house.py",
        "test_imports.py",
        "test_parameters.py",
        "theory/",
        "tools/",
    ),
}
"""What marks each test of a folder or a file; what is left is what `make quick` runs."""

STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"})
_without_processes: list[str] = []  # the running test, where it is not marked


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whole files that `-m "not ..."` leaves out are not even read."""
    place, left_out = collection_path.relative_to(TESTS).as_posix(), config.option.markexpr
    parts = tuple(part for mark, places in PLACES.items() if f"not {mark}" in left_out for part in places)
    return True if place in parts or f"{place}/" in parts else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow kinds by where they are, and what runs on a cluster by its parameter."""
    for item in items:
        place = item.path.relative_to(TESTS).as_posix()
        for mark, places in PLACES.items():
            if place.startswith(places):
                item.add_marker(mark)
        case = getattr(item, "callspec", None)
        if case is not None and "ray" in [value for value in case.params.values() if isinstance(value, str)]:
            item.add_marker("ray")


def _refuse_processes(event: str, arguments: Any) -> None:
    fonts = event == "subprocess.Popen" and "fc-list" in arguments[1]  # for matplotlib in a new home
    if event in STARTS and _without_processes and not fonts:
        pytest.fail(f"{_without_processes[0]} starts a process: mark it with @pytest.mark.process.")


sys.addaudithook(_refuse_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test that is not marked `process` or `ray` starts no process."""
    marked = item.get_closest_marker("process") or item.get_closest_marker("ray")
    _without_processes[:] = [] if marked else [item.nodeid]
    try:
        return (yield)
    finally:
        _without_processes.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is loaded now stays to the end: nothing need look through it for garbage, now or later."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _no_late_calls_of_earlier_tests() -> Iterator[None]:
    """After a block ended in some thread, releases of older threads and workers are refused: start afresh."""
    yield
    if late_calls._ended[0]:
        late_calls._alive_at_end.clear()
        late_calls._ended[0] = ""
        workers = getattr(sys.modules.get("joblib.externals.loky.reusable_executor"), "_executor", None)
        if workers is not None:
            workers.shutdown()


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
