"""Seeded runs of every kind, each as the SHA-256 of all the numbers that it left behind.

Everything goes through the public names of `taciturn`, so that modules may move. Bits depend on the
processor's instructions, so the runs take place in a process that is held to those of any x86 machine since
2013: another choice of kernels adds in another order.

    python seeded_runs.py                 all runs in this process, and the certificates of some
    python seeded_runs.py ray ADDRESS     some of the same runs on the cluster at this address
    python seeded_runs.py pin             all runs with plain instructions, into seeded_runs.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support.seeded_fits import fit_estimators, make_plans, release_statistics, train_jobs
from support.seeded_rows import Outcome, certified, hash_vectors
from support.seeded_simulations import ON_RAY, simulate_here, simulations

# Nothing from inside the package is needed. What ever is, is imported here, and only here.

HERE = Path(__file__).resolve().parent
PINNED, PINNED_REHEARSALS = HERE / "seeded_runs.json", HERE / "seeded_rehearsals.json"
INSTRUCTIONS = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_NUM_THREADS": "1",
}
PLAIN = INSTRUCTIONS | {"PYTHONPATH": f"{HERE.parents[1] / 'src'}{os.pathsep}{HERE.parent}"}
PARTS: tuple[Callable[[], Iterator[tuple[str, Outcome]]], ...] = (
    simulate_here,
    fit_estimators,
    release_statistics,
    make_plans,
    train_jobs,
)
CERTIFIED = (
    "penalty gaussian",
    "dual, output noise",
    "primal",
    "persons, penalty",
    "masked, intercept",
    "masked against all",
    "persons, masked",
    "softmax",
    "regression, colluding",
    "one against the rest",
    "score, persons",
    "plan",
    "plan, masked",
)


def results() -> dict[str, Any]:
    """Hashes and epsilons of all runs by their names, and the certificates of some of them."""
    runs: dict[str, str] = {}
    certificates: dict[str, Any] = {}
    for part in PARTS:
        for name, outcome in part():
            runs[name] = outcome.hash
            if outcome.certificate is not None:
                runs[name + ", certified"] = repr(outcome.certificate.epsilon)
                if name in CERTIFIED:
                    certificates[name] = certified(outcome.certificate.to_json())
    return {"runs": runs, "certificates": certificates}


def results_on_ray(address: str) -> dict[str, str]:
    """Hashes and epsilons of some simulations, on workers that are held to the same instructions."""
    import ray

    from taciturn.runtime.ray import RayEngine

    ray.init(address, runtime_env={"env_vars": INSTRUCTIONS}, log_to_driver=False, configure_logging=False)
    try:
        runs = {name: simulations()[name].run(engine=RayEngine(shards=2)) for name in ON_RAY}
    finally:
        ray.shutdown()
    vectors = {f"{name}, vectors": hash_vectors(run) for name, run in runs.items()}
    return vectors | {f"{name}, certified": repr(run.certificate(1e-5).epsilon) for name, run in runs.items()}


def run_plainly(*words: str) -> Any:
    """What this file prints in a process that is held to plain instructions."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, *words],
        env=os.environ | PLAIN,
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def show(found: dict[str, Any]) -> str:
    """JSON with one line per number, and per entry of a certificate."""
    parts = []
    for part, entries in found.items():
        lines = [
            f"  {json.dumps(name)}: {_show_entry(entry) if isinstance(entry, dict) else json.dumps(entry)}"
            for name, entry in entries.items()
        ]
        parts.append(f" {json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _show_entry(entry: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"   {json.dumps(k)}: {json.dumps(v)}" for k, v in entry.items()) + "\n  }"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["pin"]:
            PINNED.write_text(show(run_plainly()))
        case ["ray", address]:
            print(json.dumps(results_on_ray(address)))
        case _:
            print(json.dumps(results()))
