"""Which tests are to fail when a file has a fault: those nearest to it first, then those that lean on it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "src/taciturn"
ROOMS = ("privacy", "admm", "sites/rounds")

Stages = tuple[tuple[str, ...], ...]

_P, _A, _S, _F = "tests/privacy", "tests/privacy/accounting", "tests/sites/rounds", "tests/sites/files"
_CERTIFICATES = (
    f"{_P}/certificate",
    f"{_P}/test_survivors.py",
    "tests/cli/test_certify.py",
)
_BOUNDS = (f"{_A}/test_bounds.py", f"{_A}/test_whole_range.py", f"{_P}/test_survivors.py")
_RUNS = ("tests/engines/test_local.py", "tests/engines/test_train.py", "tests/test_seeded_results.py")

NEAR: dict[str, tuple[str, ...]] = {
    "privacy/accounting/bounds.py": (f"{_A}/test_bounds.py", "tests/theory/test_pure_bounds.py"),
    "privacy/accounting/rounding.py": _BOUNDS,
    "privacy/discrete.py": (f"{_P}/test_discrete.py", "tests/theory/test_whole_numbers.py"),
    "privacy/noise.py": (f"{_P}/test_noise.py", "tests/contracts/test_noises.py"),
    "privacy/sums.py": (f"{_P}/test_sums.py", "tests/masked/test_method.py"),
    "privacy/collusion.py": (f"{_P}/certificate/test_masked.py",),
    "privacy/costs.py": (f"{_P}/test_survivors.py", f"{_P}/certificate/test_certificate.py"),
    "privacy/facts.py": (f"{_P}/certificate/test_certificate.py", f"{_P}/ledger/test_memory.py"),
    "privacy/facts_json.py": (f"{_P}/certificate/test_document.py", f"{_P}/certificate/test_forged.py"),
    "privacy/loss_facts.py": (f"{_P}/certificate/test_forged.py", f"{_P}/certificate/test_certificate.py"),
    "privacy/release.py": ("tests/admm/test_node.py", "tests/theory/test_whole_numbers.py"),
    "privacy/ledger/chain.py": (f"{_P}/ledger/test_disk.py",),
    "privacy/ledger/filter.py": (f"{_P}/ledger/test_memory.py", f"{_P}/test_survivors.py"),
    "admm/tables.py": ("tests/admm/test_methods.py", "tests/admm/test_node.py"),
    "admm/leaving.py": ("tests/admm/test_node.py", "tests/admm/test_batch.py"),
    "admm/run.py": ("tests/engines/test_simulate.py",),
    "admm/theory.py": ("tests/theory/test_theorem_1.py", "tests/theory/test_theorem_2.py"),
    "admm/updates.py": ("tests/admm/test_node.py", "tests/admm/test_original.py"),
    **{
        f"sites/rounds/{name}.py": (f"{_S}/test_driver.py", f"{_S}/test_store.py")
        for name in ("ending", "evidence", "exchange", "opening", "prepare")
    },
    **{
        f"sites/rounds/masked/{name}.py": (
            f"{_S}/test_masked_store.py",
            f"{_F}/test_masked_job.py",
        )
        for name in ("keys", "part", "rounds")
    },
    "sites/rounds/store.py": (f"{_S}/test_store.py",),
    "sites/rounds/results.py": (f"{_S}/test_results.py", f"{_S}/test_model.py"),
    "sites/rounds/masked/store.py": (f"{_S}/test_masked_store.py",),
}
"""Where the test of a file is not called after it."""

WIDE: dict[str, tuple[str, ...]] = {
    "privacy/accounting": (_A, f"{_P}/certificate/test_certificate.py"),
    "privacy/certificate": _CERTIFICATES,
    "privacy/ledger": (f"{_P}/ledger", "tests/contracts/test_ledgers.py", *_CERTIFICATES),
    "privacy": (_P, "tests/theory/test_whole_numbers.py", "tests/engines/test_train.py"),
    "admm": ("tests/admm", "tests/contracts/test_methods.py", *_RUNS),
    "sites/rounds/masked": ("tests/sites/rounds", "tests/system/test_sites_masked.py"),
    "sites/rounds": ("tests/sites", "tests/system/test_abort.py", "tests/system/test_sites.py"),
}
"""By folder, the longest that fits."""


def sources(rooms: tuple[str, ...] = ROOMS) -> list[str]:
    """The files to plant faults in, as they are called below `SOURCE`."""
    found = [path for room in rooms for path in sorted((ROOT / SOURCE / room).rglob("*.py"))]
    return [str(path.relative_to(ROOT / SOURCE)) for path in found if path.name != "__init__.py"]


def stages(source: str) -> Stages:
    """Test paths, those to be tried first first."""
    wide = max((folder for folder in WIDE if source.startswith(folder + "/")), key=len)
    own = f"tests/{Path(source).parent}/test_{Path(source).name}"
    near = NEAR.get(source, (own,) if (ROOT / own).exists() else ())
    return tuple(paths for paths in (near, tuple(p for p in WIDE[wide] if p not in near)) if paths)
