"""Which tests should fail if a file has a fault: tests of the file, of its package, and of its users."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/taciturn"
ROOMS = ("privacy", "methods", "statistics", "sites/rounds", "sites/protocol", "sites/state")

Stages = tuple[tuple[str, ...], ...]

_P, _M = "tests/privacy", "tests/methods"
NEAR: dict[str, tuple[str, ...]] = {
    "privacy/accounting/bounds.py": (f"{_P}/accounting/test_bounds.py", "tests/theory/test_pure_bounds.py"),
    "privacy/accounting/masked_sums.py": (f"{_P}/accounting/test_masked.py",),
    "privacy/accounting/sensitivity.py": (f"{_P}/test_sums.py", f"{_M}/programs/test_sensitivity.py"),
    "privacy/collusion.py": (f"{_P}/certificate/test_masked.py",),
    "privacy/costs.py": (f"{_P}/test_survivors.py", f"{_P}/certificate/test_certificate.py"),
    "privacy/discrete.py": (f"{_P}/test_discrete.py", "tests/theory/test_whole_numbers.py"),
    "privacy/facts.py": (
        f"{_P}/certificate/test_certificate.py",
        f"{_P}/ledger/test_memory.py",
        f"{_M}/test_own_method.py",
    ),
    "privacy/ledger/active.py": (f"{_P}/ledger/test_workers.py", "tests/estimators/test_budget.py"),
    "privacy/ledger/budget.py": (
        f"{_P}/ledger/test_budget.py",
        f"{_P}/ledger/test_workers.py",
        "tests/sites/state/test_account.py",
    ),
    "privacy/ledger/budget_file.py": (f"{_P}/ledger/test_budget.py",),
    "privacy/ledger/filter.py": (f"{_P}/ledger/test_memory.py", f"{_P}/test_survivors.py"),
    "privacy/ledger/pricing.py": (f"{_P}/ledger/test_budget.py", f"{_P}/test_survivors.py"),
    "privacy/noise.py": (f"{_P}/test_noise.py", "tests/contracts/test_noises.py"),
    "methods/programs/glm/regression.py": ("tests/statistics/test_glm.py",),
    "statistics/glm.py": ("tests/statistics/test_glm.py",),
    "statistics/scored_models.py": ("tests/statistics/test_scores.py",),
    "statistics/scores.py": ("tests/statistics/test_scores.py",),
    "methods/admm/theory.py": ("tests/theory/test_theorem_1.py", "tests/theory/test_theorem_2.py"),
}
"""The tests of a file, if they are not in the test file of the same name."""

BESIDE: dict[str, tuple[str, ...]] = {
    "privacy": (
        f"{_P}/test_survivors.py",
        f"{_P}/certificate",
        f"{_P}/ledger",
        "tests/contracts/test_ledgers.py",
    ),
    "privacy/ledger": (
        f"{_P}/ledger",
        "tests/contracts/test_charged.py",
        f"{_P}/test_survivors.py",
        "tests/contracts/test_ledgers.py",
        "tests/estimators/test_budget.py",
        "tests/estimators/test_charging.py",
        "tests/sites/state",
    ),
    "methods/admm": (
        _M,
        "tests/contracts/test_methods.py",
        "tests/contracts/test_engines.py",
        "tests/runtime",
    ),
    "methods": (
        _M,
        "tests/statistics",
        "tests/runtime/test_masked.py",
        f"{_P}/certificate/test_masked.py",
        f"{_P}/certificate/test_attempts.py",
    ),
    "statistics": ("tests/methods/programs", "tests/jobs/test_statistics.py"),
    "sites": ("tests/sites", "tests/system/test_sites.py"),
}
"""For each folder: tests of it and of packages that use it. A file has the tests of its longest folder here.

Only quick tests are run.
"""


def sources(rooms: tuple[str, ...] = ROOMS) -> list[str]:
    """The files to plant faults in, as paths relative to `SOURCE`."""
    found = [path for room in rooms for path in sorted((ROOT / SOURCE / room).rglob("*.py"))]
    return [str(path.relative_to(ROOT / SOURCE)) for path in found if path.name != "__init__.py"]


def stages(source: str) -> Stages:
    """The paths of the tests for a file, in the order in which they are run."""
    path = Path(source)
    own = f"tests/{path.parent}/test_{path.name}"
    near = NEAR.get(source, (own,) if (ROOT / own).exists() else ())
    room = next(f"tests/{folder}" for folder in path.parents if (ROOT / "tests" / folder).exists())
    beside = BESIDE[max((folder for folder in BESIDE if source.startswith(folder + "/")), key=len)]
    wide = dict.fromkeys((room, *beside))
    return tuple(paths for paths in (near, tuple(path for path in wide if path not in near)) if paths)
