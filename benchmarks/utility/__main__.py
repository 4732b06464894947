"""`python -m benchmarks.utility`: the contest, and docs/utility.md with its table and frontier."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

from taciturn.objective import one_blas_thread

from .contest import Result, contest
from .rivals import Case, rivals
from .tasks import load

DELTA = 1e-5
FRONTIER = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.utility", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Adult, five sites, two seeds; prints only")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--diffprivlib", metavar="PYTHON", help="an interpreter that has diffprivlib")
    parser.add_argument(
        "--results", type=Path, help="a JSON-lines file that keeps what is done, and goes on from it"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs", help="where to write")
    options = parser.parse_args()
    names, sizes = (("adult",), (5,)) if options.quick else (("adult", "credit", "support"), (5, 20))
    tasks = {name: load(name) for name in names}
    cases = [Case(tasks[name], sites, 1.0, DELTA) for name in names for sites in sizes]
    if not options.quick:
        cases += [Case(tasks["adult"], 5, epsilon, DELTA) for epsilon in FRONTIER if epsilon != 1.0]
    seeds = 2 if options.quick else options.seeds
    found = _done(options.results)
    start = time.perf_counter()
    with one_blas_thread():
        for case in cases:
            found += _pooled(found, case)
            done = [(result.contender, result.blind) for result in found if _same(result, case)]
            field = list(rivals(options.diffprivlib, quick=options.quick))
            for result in contest(case, field, seeds, done):
                print(_line(result), f"{time.perf_counter() - start:7.0f} s", flush=True)
                found.append(result)
                if options.results:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result.to_dict()) + "\n")
    if not options.quick:
        from .page import write_page

        print(write_page(found, options.out))


def _done(path: Path | None) -> list[Result]:
    if path is None or not path.exists():
        return []
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Result(**{**entry, "setting": tuple(entry["setting"])}) for entry in entries]


def _same(result: Result, case: Case) -> bool:
    return (result.data, result.sites, result.epsilon) == (case.task.name, case.sites, case.epsilon)


def _pooled(found: list[Result], case: Case) -> list[Result]:
    """What does not depend on the number of sites is measured once."""
    known = [result.contender for result in found if _same(result, case)]
    return [
        replace(result, sites=case.sites)
        for result in found
        if not result.decentralised
        and (result.data, result.epsilon) == (case.task.name, case.epsilon)
        and result.contender not in known
    ]


def _line(result: Result) -> str:
    return (
        f"{result.data:8} {result.sites:3} sites, epsilon {result.epsilon:4g}  {result.contender:34} "
        f"loss {result.loss:.4f} +- {result.loss_std:.4f}  accuracy {result.accuracy:.4f}  {result.setting}"
        f"{' chosen blindly' if result.blind else ''}"
    )


main()
